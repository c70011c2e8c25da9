package relaytest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// Remove implements relay.Remover.
func (s *Memory) Remove(ctx context.Context, r relay.Removal) (removed relay.Removed, err error) {
	ended := s.locked(ctx, func(t *Table, now time.Time) {
		switch r.What {
		case relay.KeptMessages:
			removed = t.removeMessages(r, now)
		case relay.KeptAttempts:
			removed = t.removeAttempts(r, now)
		case relay.KeptOperations:
			removed = t.removeOperations(r, now)
		default:
			err = fmt.Errorf("remove: nothing is called %q", r.What)
		}
	})
	return removed, cmp.Or(ended, err)
}

func (t *Table) removeMessages(r relay.Removal, now time.Time) (removed relay.Removed) {
	after, _ := strconv.ParseInt(r.After, 10, 64)
	var page []*message
	for _, m := range t.messages {
		if m.Seq > after {
			page = append(page, m)
		}
	}
	slices.SortFunc(page, func(a, b *message) int { return cmp.Compare(a.Seq, b.Seq) })
	if len(page) > r.Most {
		page = page[:r.Most]
		removed.Next = strconv.FormatInt(page[r.Most-1].Seq, 10)
	}
	removed.Looked = len(page)
	held := slices.ContainsFunc(t.operations, func(o *operation) bool {
		return o.applied.IsZero() && slices.Contains([]relay.Op{relay.OpReplay, relay.OpCorrect, relay.OpResolve}, o.Op)
	})
	for _, m := range page {
		if held || !m.old(r.Keep, now) || m.locked > 0 && !r.DryRun {
			continue
		}
		removed.Gone++
		if !r.DryRun {
			delete(t.messages, m.ID)
		}
	}
	return removed
}

func (m *message) old(keep relay.Retention, now time.Time) bool {
	switch m.State {
	case relay.Finished:
		return now.Sub(m.DoneAt) >= keep.Done
	case relay.Failed:
		return !m.ResolvedAt.IsZero() && now.Sub(m.ResolvedAt) >= keep.Resolved
	case relay.Pending, relay.InFlight:
	}
	return false
}

// removeAttempts looks at all of them at once. Those of a message that is not final stay.
func (t *Table) removeAttempts(r relay.Removal, now time.Time) (removed relay.Removed) {
	for id, all := range t.attempts {
		removed.Looked += len(all)
		if m := t.messages[id]; m != nil && (m.State == relay.Pending || m.State == relay.InFlight) {
			continue
		}
		young := slices.DeleteFunc(slices.Clone(all), func(a Attempt) bool { return now.Sub(a.StartedAt.Add(a.Duration)) >= r.Keep.Attempts })
		removed.Gone += len(all) - len(young)
		if !r.DryRun {
			t.attempts[id] = young
		}
	}
	return removed
}

// removeOperations looks at all of them at once.
func (t *Table) removeOperations(r relay.Removal, now time.Time) (removed relay.Removed) {
	removed.Looked = len(t.operations)
	var stay []*operation
	for _, o := range t.operations {
		if o.applied.IsZero() || now.Sub(o.applied) < r.Keep.Operations {
			stay = append(stay, o)
			continue
		}
		removed.Gone++
		for key := range t.corrections {
			if key.operation == o.ID && !r.DryRun {
				delete(t.corrections, key)
				removed.Gone++
			}
		}
	}
	if !r.DryRun {
		t.operations = stay
	}
	return removed
}
