package relaytest

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// Operations implements relay.Operator.
func (s *Memory) Operations(ctx context.Context) (open []relay.Operation, err error) {
	err = s.locked(ctx, func(t *Table, now time.Time) {
		for _, steering := range []bool{true, false} {
			for _, o := range t.operations {
				if o.applied.IsZero() && !o.requested.After(now) && o.Op.Steers() == steering {
					open = append(open, o.Operation)
				}
			}
		}
	})
	return open, err
}

// Operate implements relay.Operator.
func (s *Memory) Operate(ctx context.Context, op relay.Operation, judge func(relay.Candidate) relay.Verdict, most int) (step relay.Step, err error) {
	err = s.locked(ctx, func(t *Table, now time.Time) {
		o := t.operation(op.ID)
		if o == nil || !o.applied.IsZero() {
			step.Elsewhere = true
			return
		}
		before := o.affected
		switch {
		case op.Err != nil:
			o.Refused, step.Finished, step.Refused = op.Err.Error(), true, true
		case op.Op == relay.OpDrill:
			step.Finished = true
		case op.Op.Steers():
			step.Finished = true
			t.steer(o, now)
		default:
			step.Finished, step.Wait = t.operate(o, judge, most, now)
		}
		if step.Wait > 0 && o.Tries == 0 {
			return
		}
		o.applier = s.relay
		if step.Affected = o.affected - before; step.Affected > 0 {
			o.At = now.UnixMicro()
		}
		if step.Finished {
			o.applied = now
		}
	})
	return step, err
}

func (t *Table) operation(id string) *operation {
	for _, o := range t.operations {
		if o.ID == id {
			return o
		}
	}
	return nil
}

// operate changes one page of messages, in the order of seq.
func (t *Table) operate(o *operation, judge func(relay.Candidate) relay.Verdict, most int, now time.Time) (finished bool, wait time.Duration) {
	since := time.Duration(-1)
	if o.At > 0 {
		since = now.Sub(time.UnixMicro(o.At))
	}
	n, wait := o.Order.Allow(most, o.affected, since)
	if wait > 0 {
		return false, wait
	}
	if o.Tries > 0 {
		return t.again(o, judge, n, now)
	}
	page, more := t.search(o, n)
	t.change(o, page, judge, now)
	if len(page) > 0 {
		o.Place = []string{strconv.FormatInt(page[len(page)-1].Seq, 10)}
	}
	switch {
	case more:
	case len(o.Later) > 0:
		o.Tries++
		return false, relay.LaterPause
	default:
		o.AddUnmatched(t.named(o), o.affected)
	}
	return !more || o.Order.Reached(o.affected), 0
}

// again tries what was in flight or locked when its turn came.
func (t *Table) again(o *operation, judge func(relay.Candidate) relay.Verdict, most int, now time.Time) (finished bool, wait time.Duration) {
	before := o.affected
	var page []*message
	for _, m := range o.TakeLater(most) {
		page = append(page, t.messages[m.ID])
	}
	t.change(o, page, judge, now)
	if len(o.Later) == 0 {
		o.AddUnmatched(t.named(o), o.affected)
		return true, 0
	}
	if o.affected == before {
		o.Tries++
		wait = relay.LaterPause
	}
	return o.Order.Reached(o.affected), wait
}

func (t *Table) change(o *operation, page []*message, judge func(relay.Candidate) relay.Verdict, now time.Time) {
	for _, m := range page {
		if m.locked > 0 && !o.DryRun {
			if !o.PutOff(o.Operation, relay.Later{ID: m.ID, Seq: m.Seq}) {
				o.Add(relay.SkipLocked, 1)
			}
			continue
		}
		v := judge(t.candidate(m, o, now))
		if !o.DryRun && refuses(v.Emit) {
			v = relay.Verdict{Why: relay.SkipRefused}
		}
		if v.Effect == relay.Skipped {
			if m.State != relay.InFlight || !o.PutOff(o.Operation, relay.Later{ID: m.ID, Seq: m.Seq}) {
				o.Add(v.Why, 1)
			}
			continue
		}
		o.affected++
		if !o.DryRun {
			t.apply(o, m, v, now)
		}
	}
}

// search returns the next messages of an operation, and whether there are more.
func (t *Table) search(o *operation, limit int) (page []*message, more bool) {
	var after int64
	if len(o.Place) > 0 {
		after, _ = strconv.ParseInt(o.Place[0], 10, 64)
	}
	scope := o.Scope()
	for _, m := range t.messages {
		_, corrected := t.corrections[correctionKey{o.ID, m.ID}]
		if m.Seq > after && m.matches(scope) && (corrected || o.Op != relay.OpCorrect) {
			page = append(page, m)
		}
	}
	slices.SortFunc(page, func(a, b *message) int { return cmp.Compare(a.Seq, b.Seq) })
	if len(page) > limit {
		return page[:limit], true
	}
	return page, false
}

// named is how many messages an operation names, by its ids or by corrections.
func (t *Table) named(o *operation) (n int) {
	if o.Op != relay.OpCorrect {
		return len(o.Order.IDs)
	}
	for key := range t.corrections {
		if key.operation == o.ID {
			n++
		}
	}
	return n
}

func (m *message) matches(f relay.Filter) bool {
	at := m.CreatedAt
	if m.final() {
		at = m.finalAt()
	}
	return (len(f.IDs) == 0 || slices.Contains(f.IDs, m.ID)) && fits(f.RoutingKey, m.RoutingKey) && fits(f.Type, m.seed.Type) &&
		fits(f.SchemaVersion, m.seed.SchemaVersion) && fits(f.State, m.State) && fits(f.Reason, m.Reason) &&
		fits(f.ErrorClass, m.ErrorClass) && (f.Key == "" || m.seed.AggregateID != nil && *m.seed.AggregateID == f.Key) &&
		(f.Since == nil || !at.Before(*f.Since)) && (f.Until == nil || at.Before(*f.Until))
}

// fits tells whether a value is what a filter wants, which is anything where it is empty.
func fits[T comparable](want, value T) bool { return want == *new(T) || want == value }

func (m *message) final() bool { return m.State == relay.Finished || m.State == relay.Failed }

func (m *message) finalAt() time.Time {
	if m.State == relay.Failed {
		return m.FailedAt
	}
	return m.DoneAt
}

// cameTo is when a message came to its state: the end of its last attempt, where it is not final.
func (t *Table) cameTo(m *message) time.Time {
	if m.final() {
		return m.finalAt()
	}
	var last time.Time
	for _, a := range t.attempts[m.ID] {
		if end := a.StartedAt.Add(a.Duration); end.After(last) {
			last = end
		}
	}
	return last
}

func (t *Table) candidate(m *message, o *operation, now time.Time) relay.Candidate {
	c := relay.Candidate{
		ID: m.ID, Seq: m.Seq, RoutingKey: m.RoutingKey, Type: m.seed.Type, State: m.State, Reason: m.Reason, ErrorClass: m.ErrorClass, Lease: m.LeaseID,
		Due: m.State == relay.Pending && !m.DueAt.After(now), Resolved: !m.ResolvedAt.IsZero(),
		Late: t.cameTo(m).After(o.requested), Unknown: !m.UnknownSince.IsZero(),
		Went: m.Attempts > 0 || slices.ContainsFunc(t.attempts[m.ID], func(a Attempt) bool { return a.Life == m.Replays }),
	}
	if made := t.corrections[correctionKey{o.ID, m.ID}]; made != nil && made.old != nil {
		c.Changed = !bytes.Equal(made.old, m.seed.Payload)
	}
	if c.Unknown {
		c.UnknownFor = now.Sub(m.UnknownSince)
	}
	return c
}

func (t *Table) apply(o *operation, m *message, v relay.Verdict, now time.Time) {
	if v.Payload {
		c := t.corrections[correctionKey{o.ID, m.ID}]
		c.old, m.seed.Payload = m.seed.Payload, slices.Clone(c.payload)
	}
	switch v.Effect {
	case relay.Revived:
		t.revive(m, v, now)
	case relay.Hastened:
		m.DueAt = now
	case relay.Withdrawn:
		m.State, m.Reason, m.DueAt, m.FailedAt, m.ResolvedAt = relay.Failed, relay.Cancelled, time.Time{}, now, now
		t.tell(m, v.Emit, now)
	case relay.Resolved:
		m.ResolvedAt = now
	case relay.Skipped, relay.Corrected:
	}
}

func (t *Table) revive(m *message, v relay.Verdict, now time.Time) {
	m.State, m.DueAt, m.Attempts, m.Lapses = relay.Pending, now, 0, 0
	m.Replays++
	m.DoneAt, m.FailedAt, m.ResolvedAt, m.Reason, m.Result = time.Time{}, time.Time{}, time.Time{}, "", ""
	if !v.KeepExpiry {
		m.ExpiresAt = time.Time{}
	}
	if v.ForgetUnknown {
		m.UnknownSince = time.Time{}
	}
	if v.NewKey {
		t.lastSeq++
		m.SendID = timeOrderedUUID(now, t.lastSeq)
	}
}
