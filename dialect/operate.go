package dialect

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// Operator applies operations for one relay. It is what every engine's Store embeds as its relay.Operator.
type Operator struct {
	Inspector *Inspector
	Relay     string // its name, for the applier column
	Own       string // its instance; "": none
}

var _ relay.Operator = (*Operator)(nil)

// Operations implements relay.Operator.
func (o *Operator) Operations(ctx context.Context) ([]relay.Operation, error) {
	var rows []struct {
		ID, Op, Filter, Actor, Note string
		DryRun                      bool `json:"dry_run"`
	}
	if err := o.Inspector.selectAll(ctx, "operations", &rows, o.Inspector.Operations.Open); err != nil {
		return nil, err
	}
	operations := make([]relay.Operation, len(rows))
	for i, r := range rows {
		op := relay.Operation{ID: r.ID, Op: relay.Op(r.Op), Actor: r.Actor, Note: r.Note, DryRun: r.DryRun}
		op.Order, op.Err = relay.ParseOrder(op.Op, r.Filter, r.Note)
		operations[i] = op
	}
	return operations, nil
}

// Operate implements relay.Operator. What the database refuses, such as a row that somebody's trigger watches, is found by
// smaller and smaller steps and left out.
func (o *Operator) Operate(ctx context.Context, op relay.Operation, judge func(relay.Candidate) relay.Verdict, most int) (relay.Step, error) {
	step, err := o.step(ctx, op, judge, most)
	switch {
	case errors.Is(err, ErrFilter):
		op.Err = err
		return o.step(ctx, op, judge, most)
	case refused(err) && op.Op.Steers():
		op.Err = errors.New("the database refuses it: is the name too long?")
		return o.step(ctx, op, judge, most)
	case refused(err) && most > 1:
		return o.Operate(ctx, op, judge, most/2)
	case refused(err):
		return o.step(ctx, op, func(relay.Candidate) relay.Verdict { return relay.Verdict{Why: relay.SkipRefused} }, 1)
	}
	return step, err
}

// stepping is one step at an operation: its transaction, and how far the operation has come.
type stepping struct {
	*Inspector
	relay.Progress
	relay.Detail

	q        sqlx.ExtContext
	op       relay.Operation
	judge    func(relay.Candidate) relay.Verdict
	affected int
	now      int64 // microseconds since 1970, by the database's clock
}

// step is one transaction. The lock on the operation's row is what keeps relays from doing the same twice: it ends with
// the relay, and what was done is written where it is held.
func (o *Operator) step(ctx context.Context, op relay.Operation, judge func(relay.Candidate) relay.Verdict, most int) (step relay.Step, err error) {
	err = o.Inspector.Write(ctx, func(q sqlx.ExtContext) error {
		s := &stepping{Inspector: o.Inspector, q: q, op: op, judge: judge}
		ok, err := s.lock(ctx)
		if err != nil || !ok {
			step.Elsewhere = !ok
			return err
		}
		before := s.affected
		switch {
		case s.op.Err != nil:
			s.Refused, step.Finished, step.Refused = s.op.Err.Error(), true, true
		case op.Op == relay.OpDrill:
			step.Finished = true
		case op.Op.Steers():
			step.Finished, err = true, s.steer(ctx)
		default:
			step.Finished, step.Wait, err = s.walk(ctx, most)
		}
		if err != nil || step.Wait > 0 && s.Tries == 0 {
			return err
		}
		if step.Affected = s.affected - before; step.Affected > 0 {
			s.At = s.now
		}
		return s.advance(ctx, o.Relay, step.Finished)
	})
	return step, o.Inspector.Wrap("operate", err)
}

func (s *stepping) find(ctx context.Context, rows any, query string, args ...any) error {
	return s.selectOn(ctx, s.q, rows, query, args...)
}

func (s *stepping) exec(ctx context.Context, statement string, args ...any) error {
	return s.execOn(ctx, s.q, statement, args...)
}

// lock takes the operation, unless another relay has it or it is applied.
func (s *stepping) lock(ctx context.Context) (ok bool, err error) {
	var rows []struct {
		Progress, Detail string
		Affected         int
		Now              int64
	}
	if err := s.find(ctx, &rows, s.Operations.Lock, s.op.ID); err != nil || len(rows) == 0 {
		return false, err
	}
	s.affected, s.now = rows[0].Affected, rows[0].Now
	for text, to := range map[string]any{rows[0].Progress: &s.Progress, rows[0].Detail: &s.Detail} {
		if text != "" && json.Unmarshal([]byte(text), to) != nil {
			s.op.Err = errors.New("its progress or detail is not what a relay wrote: ask again, with both left out")
		}
	}
	return true, nil
}

// advance writes how far the operation has come.
func (s *stepping) advance(ctx context.Context, applier string, finished bool) error {
	progress, err := json.Marshal(s.Progress)
	if err != nil {
		return err
	}
	detail, err := json.Marshal(s.Detail)
	if err != nil {
		return err
	}
	if string(detail) == "{}" {
		detail = nil
	}
	return s.exec(ctx, s.Operations.Advance, string(progress), s.affected, string(detail), applier, finished, s.op.ID)
}

// walk goes on where the operation is, and changes one page of messages.
func (s *stepping) walk(ctx context.Context, most int) (finished bool, wait time.Duration, err error) {
	since := time.Duration(-1)
	if s.At > 0 {
		since = FromMicros(s.now - s.At)
	}
	n, wait := s.op.Order.Allow(most, s.affected, since)
	if wait > 0 {
		return false, wait, nil
	}
	if s.Tries > 0 {
		return s.again(ctx, n)
	}
	search := s.searchOf(s.op, n)
	if len(s.Place) != len(search.Start) {
		s.Place = search.Start
	}
	found, next, err := s.page(ctx, s.q, search, s.Place)
	if err != nil {
		return false, 0, wrongID(s.op.Order.Filter, s.Wrap("operate", err))
	}
	if err := s.change(ctx, found); err != nil {
		return false, 0, err
	}
	s.Place = next
	if next == nil && len(s.Later) > 0 {
		s.Tries++
		return false, relay.LaterPause, nil
	}
	return s.end(ctx, next == nil)
}

// addUnmatched counts, at the end, ids and corrections that are of no message which the filter matches.
func (s *stepping) addUnmatched(ctx context.Context) error {
	named := len(s.op.Order.IDs)
	if s.op.Op == relay.OpCorrect {
		var counts []struct{ N int }
		if err := s.find(ctx, &counts, s.Operations.CountCorrections, s.op.ID); err != nil {
			return err
		}
		named = counts[0].N
	}
	s.AddUnmatched(named, s.affected)
	return nil
}

// change locks messages, lets judge decide, and does it, all of one verdict at once.
func (s *stepping) change(ctx context.Context, found []Listed) error {
	query := s.Operations.LockCandidates
	if s.op.DryRun {
		query = s.Operations.Candidates
	}
	candidates, err := s.candidates(ctx, s.q, query, s.op.ID, found)
	if err != nil {
		return err
	}
	s.skipLocked(found, candidates)
	if err := s.markChanged(ctx, candidates); err != nil {
		return err
	}
	verdicts := map[relay.Verdict][]relay.Candidate{}
	for _, c := range candidates {
		v := s.judge(c)
		verdicts[v] = append(verdicts[v], c)
	}
	for v, of := range verdicts {
		if v.Effect == relay.Skipped {
			s.skip(v.Why, of)
			continue
		}
		s.affected += len(of)
		if s.op.DryRun {
			continue
		}
		if err := s.apply(ctx, v, s.Operations.Keys(of)); err != nil {
			return err
		}
	}
	return nil
}

// markChanged compares, for a correction, the payloads of messages with those that it was made from.
func (s *stepping) markChanged(ctx context.Context, candidates []relay.Candidate) error {
	if s.op.Op != relay.OpCorrect || len(candidates) == 0 {
		return nil
	}
	var changed []string
	if err := s.find(ctx, &changed, s.Operations.Changed, s.op.ID, s.Operations.Keys(candidates)); err != nil {
		return err
	}
	for i, c := range candidates {
		candidates[i].Changed = slices.Contains(changed, c.ID)
	}
	return nil
}

// apply does to messages, whose rows are locked, what the verdict says.
func (s *stepping) apply(ctx context.Context, v relay.Verdict, keys any) error {
	t := s.Operations
	if v.Payload {
		if err := s.exec(ctx, t.KeepPayload, s.op.ID, keys); err != nil {
			return err
		}
		if err := s.exec(ctx, t.Correct, s.op.ID, keys); err != nil {
			return err
		}
	}
	switch v.Effect {
	case relay.Revived:
		return s.exec(ctx, t.Revive, v.KeepExpiry, v.ForgetUnknown, v.NewKey, keys)
	case relay.Hastened:
		return s.exec(ctx, t.Hasten, keys)
	case relay.Withdrawn:
		if err := s.exec(ctx, t.Withdraw, keys); err != nil || v.Emit.Type == "" {
			return err
		}
		return s.exec(ctx, t.Tell, v.Emit.AggregateType, v.Emit.Type, keys)
	case relay.Resolved:
		return s.exec(ctx, t.Resolve, keys)
	case relay.Skipped, relay.Corrected:
	}
	return nil
}

// searchOf is what an operation looks through, oldest first.
func (i *Inspector) searchOf(op relay.Operation, limit int) search {
	f := op.Scope()
	w := i.Texts.Walk(f, true)
	if op.Op == relay.OpCorrect && op.ID != "" {
		w = i.Operations.Corrections(op.ID)
	}
	return search{f, w, limit, max(4*limit, 1000)}
}

// candidates reads messages as an operation of that id sees them; nil: as one that is asked for now.
func (i *Inspector) candidates(ctx context.Context, q sqlx.ExtContext, query string, operation any, found []Listed) ([]relay.Candidate, error) {
	if len(found) == 0 {
		return nil, nil
	}
	keys := make([]relay.Candidate, len(found))
	for n, m := range found {
		keys[n] = relay.Candidate{ID: m.ID, Seq: m.Seq}
	}
	var rows []candidate
	if err := i.selectOn(ctx, q, &rows, query, operation, i.Operations.Keys(keys)); err != nil {
		return nil, err
	}
	candidates := make([]relay.Candidate, len(rows))
	for n, r := range rows {
		candidates[n] = r.candidate()
	}
	return candidates, nil
}
