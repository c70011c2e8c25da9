package relaytest

import (
	"slices"
	"time"

	"github.com/outboxd/outboxd/relay"
)

func removeCases() []storeCase {
	return []storeCase{
		{"final messages go, and no others", removeFinal},
		{"what is younger than its time stays", removeYoung},
		{"kept for ever", removeForever},
		{"page by page, each once", removePages},
		{"a dry run counts, and removes nothing", removeDryRun},
		{"a locked message is passed over, and goes later", removeLocked},
		{"no message goes while an operation on final ones is open", removeHeld},
		{"attempts go by their own time", removeAttempts},
		{"attempts of a message that is not final stay", removeAttemptsWaiting},
		{"operations go once they are applied, with their corrections", removeOperations},
		{"by several relays at once", removeAtOnce},
	}
}

var (
	nothingKept = relay.Retention{}
	keptAnHour  = relay.Retention{Done: time.Hour, Resolved: time.Hour, Attempts: time.Hour, Operations: time.Hour}
	keptForEver = relay.Retention{Done: relay.Forever, Resolved: relay.Forever, Attempts: relay.Forever, Operations: relay.Forever}
)

// remove walks from the beginning to the end and tells how many rows went.
func (s *suite) remove(r relay.Removal) (gone int) {
	s.Helper()
	for range 100 {
		removed, err := s.a.Remove(s.Context(), r)
		s.must("Remove", err)
		if removed.Looked > r.Most || removed.Gone > 2*r.Most {
			s.Fatalf("a page of %d looked at %d rows and removed %d", r.Most, removed.Looked, removed.Gone)
		}
		gone += removed.Gone
		if removed.Next == "" {
			return gone
		}
		if removed.Next == r.After {
			s.Fatalf("the page after %s goes on after the same row", r.After)
		}
		r.After = removed.Next
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // the database's clock goes on between two pages, as it does in life
	}
	s.Fatal("the walk finds no end")
	return gone
}

func (s *suite) removed(what relay.Kept, keep relay.Retention, want int) {
	s.Helper()
	if gone := s.remove(relay.Removal{What: what, Keep: keep, Most: 500}); gone != want {
		s.Fatalf("%d rows went of %s, want %d", gone, what, want)
	}
}

// everyKind is a message of each kind there is; gone are those that may go.
func (s *suite) everyKind() (gone, stay []string) {
	s.Helper()
	finished, failed, resolved, retried, flying := s.claimed(Seed{}), s.claimed(Seed{}), s.claimed(Seed{}), s.claimed(Seed{}), s.claimed(Seed{})
	s.settle(done(finished), decide(rejected, nil)(failed), decide(rejected, nil)(resolved), decide(exhausted, nil)(retried))
	s.apply(s.order(relay.OpResolve, ofID(resolved.ID)), 1, nil)
	pending := s.Insert(Seed{Type: orders}, Seed{Type: orders, Delay: time.Hour})
	cancelled := s.Insert(Seed{Type: orders})[0]
	s.apply(s.order(relay.OpCancel, ofID(cancelled)), 1, nil)
	replayed := s.claimed(Seed{})
	s.settle(done(replayed))
	s.apply(s.order(relay.OpReplay, `{"state":"done",`+ofID(replayed.ID)[1:]), 1, nil)
	return []string{finished.ID, resolved.ID, cancelled}, append(pending, failed.ID, retried.ID, flying.ID, replayed.ID)
}

func (s *suite) haveGone(ids ...string) {
	s.Helper()
	for _, id := range ids {
		if row := s.Row(id); row.ID != "" {
			s.Errorf("message %s is there still: %s", id, row.State)
		}
	}
}

func removeFinal(s *suite) {
	gone, stay := s.everyKind()
	before := s.rows(stay...)
	s.removed(relay.KeptMessages, nothingKept, len(gone))
	s.haveGone(gone...)
	s.unchanged(before...)
	s.removed(relay.KeptMessages, nothingKept, 0)
}

func removeYoung(s *suite) {
	gone, stay := s.everyKind()
	before := s.rows(append(gone, stay...)...)
	s.removed(relay.KeptMessages, keptAnHour, 0)
	s.unchanged(before...)
	keptResolved := keptAnHour
	keptResolved.Done = 0
	s.removed(relay.KeptMessages, keptResolved, 1)
	s.haveGone(gone[0])
	keptDone := keptAnHour
	keptDone.Resolved = 0
	s.removed(relay.KeptMessages, keptDone, 2)
	s.haveGone(gone...)
}

func removeForever(s *suite) {
	gone, stay := s.everyKind()
	before := s.rows(append(gone, stay...)...)
	for _, what := range []relay.Kept{relay.KeptMessages, relay.KeptAttempts, relay.KeptOperations} {
		s.removed(what, keptForEver, 0)
	}
	s.unchanged(before...)
	if _, err := s.a.Remove(s.Context(), relay.Removal{What: "leases", Keep: keptForEver, Most: 1}); err == nil {
		s.Error("what cannot be removed was")
	}
}

func removePages(s *suite) {
	s.Insert(repeat(120, Seed{Type: orders})...)
	claims := s.claim(ofOrders)
	s.settle(allDone(claims[10:])...)
	before := s.rows(ids(claims[:10])...)
	if gone := s.remove(relay.Removal{What: relay.KeptMessages, Most: 7}); gone != 110 {
		s.Errorf("%d messages went, want 110", gone)
	}
	s.haveGone(ids(claims[10:])...)
	s.unchanged(before...)
}

func removeDryRun(s *suite) {
	gone, stay := s.everyKind()
	before := s.rows(append(gone, stay...)...)
	dry := relay.Removal{What: relay.KeptMessages, Most: 500, DryRun: true}
	if n := s.remove(dry); n != len(gone) {
		s.Errorf("%d messages would go, want %d", n, len(gone))
	}
	dry.What = relay.KeptAttempts
	if n := s.remove(dry); n == 0 {
		s.Error("no attempt would go")
	}
	dry.What = relay.KeptOperations
	if n := s.remove(dry); n != 3 {
		s.Errorf("%d operations would go, want 3", n)
	}
	s.unchanged(before...)
}

func removeLocked(s *suite) {
	s.Insert(repeat(3, Seed{Type: orders})...)
	claims := s.claim(ofOrders)
	s.settle(allDone(claims)...)
	unlock := s.Lock(claims[1].ID)
	s.removed(relay.KeptMessages, nothingKept, 2)
	unlock()
	s.removed(relay.KeptMessages, nothingKept, 1)
}

func removeHeld(s *suite) {
	c := s.claimed(Seed{})
	s.settle(done(c))
	for _, op := range []relay.Op{relay.OpReplay, relay.OpCorrect, relay.OpResolve} {
		o := s.order(op, `{"type":"none"}`)
		s.removed(relay.KeptMessages, nothingKept, 0)
		s.apply(o, 0, nil)
	}
	s.order(relay.OpPause, `{"everything":true,"indefinitely":true}`)
	s.removed(relay.KeptMessages, nothingKept, 1)
}

func removeAttempts(s *suite) {
	c := s.claimed(Seed{})
	s.settle(decide(rejected, nil)(c))
	before := s.Attempts(c.ID)
	s.removed(relay.KeptAttempts, keptAnHour, 0)
	if got := s.Attempts(c.ID); len(before) != 1 || !slices.EqualFunc(got, before, sameAttempt) {
		s.Fatalf("the attempts are %+v, want %+v", got, before)
	}
	s.removed(relay.KeptAttempts, nothingKept, 1)
	if got := s.Attempts(c.ID); len(got) > 0 {
		s.Errorf("the attempts are %+v, want none", got)
	}
}

// removeAttemptsWaiting: by its attempts alone a correction knows that something of a message went out which was charged none.
func removeAttemptsWaiting(s *suite) {
	c, over := s.claimed(Seed{Payload: []byte("old")}), s.claimed(Seed{})
	uncharged := func(t *relay.Try) { t.Opened = true }
	s.settle(decide(relay.Retry("http_5xx", "http_5xx happened"), uncharged)(c), decide(rejected, nil)(over))
	if gone := s.remove(relay.Removal{What: relay.KeptAttempts, Most: 2}); gone != 1 || len(s.Attempts(c.ID)) != 1 {
		s.Errorf("%d attempts went and %d of the pending message are there, want 1 and 1", gone, len(s.Attempts(c.ID)))
	}
	s.apply(s.correct(`{}`, c.ID), 1, nil)
	if row := s.Row(c.ID); row.Replays != 1 || row.SendID == "" {
		s.Errorf("the new payload goes out in life %d under the key %q, want a new life and key: the old payload went out", row.Replays, row.SendID)
	}
}

func sameAttempt(a, b Attempt) bool { return a.Outcome == b.Outcome && a.StartedAt.Equal(b.StartedAt) }

func removeOperations(s *suite) {
	c := s.claimed(Seed{Payload: []byte("old")})
	s.settle(decide(rejected, nil)(c))
	applied, open := s.correct(`{}`, c.ID), s.correct(`{}`, c.ID)
	s.apply(applied, 1, nil)
	s.removed(relay.KeptOperations, keptAnHour, 0)
	if !s.Operation(applied.ID).Applied {
		s.Fatal("an operation went before its time")
	}
	// Where corrections and operation go in two steps, what is left goes with the next walk.
	if gone := s.remove(relay.Removal{What: relay.KeptOperations, Most: 500}) + s.remove(relay.Removal{What: relay.KeptOperations, Most: 500}); gone != 2 {
		s.Errorf("%d rows went, want the operation and its correction", gone)
	}
	if o := s.Operation(applied.ID); o.Op != "" {
		s.Errorf("the operation is there still: %+v", o)
	}
	if old := s.OldPayload(applied.ID, c.ID); old != nil {
		s.Errorf("its correction is there still, with %q", old)
	}
	s.apply(open, 1, nil)
}

func removeAtOnce(s *suite) {
	s.Insert(repeat(400, Seed{Type: orders})...)
	s.settle(allDone(s.claim(ofOrders))...)
	gone := make(chan int)
	stores := []relay.Database{s.a, s.Store("b"), s.Store("c")}
	for _, store := range stores {
		go func() {
			n, after := 0, ""
			for {
				removed, err := store.Remove(s.Context(), relay.Removal{What: relay.KeptMessages, After: after, Most: 50})
				if err != nil {
					s.Errorf("Remove: %v", err)
				}
				n += removed.Gone
				if after = removed.Next; after == "" || err != nil {
					gone <- n
					return
				}
			}
		}()
	}
	total := 0
	for range stores {
		total += <-gone
	}
	if total += s.remove(relay.Removal{What: relay.KeptMessages, Most: 500}); total != 400 {
		s.Errorf("%d messages went, want 400, each once", total)
	}
}
