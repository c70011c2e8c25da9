package dialect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// Operator applies operations for one relay. It is what every engine's Store embeds as its relay.Operator.
type Operator struct {
	Inspector *Inspector
	Relay     string // its name, for the applier column
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
	case refused(err) && most > 1:
		return o.Operate(ctx, op, judge, most/2)
	case refused(err):
		return o.step(ctx, op, func(relay.Candidate) relay.Verdict { return relay.Verdict{Why: relay.SkipRefused} }, 1)
	}
	return step, err
}

// standing is how far an operation has come.
type standing struct {
	relay.Progress
	relay.Detail
	affected int
	now      int64 // microseconds since 1970, by the database's clock
}

// step is one transaction. The lock on the operation's row is what keeps relays from doing the same twice: it ends with
// the relay, and what was done is written where it is held.
func (o *Operator) step(ctx context.Context, op relay.Operation, judge func(relay.Candidate) relay.Verdict, most int) (step relay.Step, err error) {
	err = o.Inspector.Write(ctx, func(q sqlx.ExtContext) error {
		s, ok, err := o.lock(ctx, q, op.ID)
		if err != nil || !ok {
			step.Elsewhere = !ok
			return err
		}
		before := s.affected
		switch {
		case op.Err != nil:
			s.Refused, step.Finished = op.Err.Error(), true
		case op.Op.Steers():
			step.Finished = true
			err = o.steer(ctx, q, op, s)
		default:
			step.Finished, step.Wait, err = o.walk(ctx, q, op, s, judge, most)
		}
		if err != nil || step.Wait > 0 {
			return err
		}
		step.Affected = s.affected - before
		return o.advance(ctx, q, op.ID, s, step.Finished)
	})
	return step, o.Inspector.Wrap("operate", err)
}

// lock takes the operation, unless another relay has it or it is applied.
func (o *Operator) lock(ctx context.Context, q sqlx.ExtContext, id string) (*standing, bool, error) {
	var rows []struct {
		Progress, Detail string
		Affected         int
		Now              int64
	}
	if err := o.Inspector.selectOn(ctx, q, &rows, o.Inspector.Operations.Lock, id); err != nil || len(rows) == 0 {
		return nil, false, err
	}
	s := &standing{affected: rows[0].Affected, now: rows[0].Now}
	for text, to := range map[string]any{rows[0].Progress: &s.Progress, rows[0].Detail: &s.Detail} {
		if text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(text), to); err != nil {
			return nil, false, fmt.Errorf("operation %s: its progress or detail is not what a relay wrote: %w", id, err)
		}
	}
	return s, true, nil
}

func (o *Operator) advance(ctx context.Context, q sqlx.ExtContext, id string, s *standing, finished bool) error {
	s.At = s.now
	progress, err := json.Marshal(s.Progress)
	if err != nil {
		return err
	}
	detail, err := json.Marshal(s.Detail)
	if err != nil {
		return err
	}
	told := string(detail)
	if told == "{}" {
		told = ""
	}
	return o.Inspector.execOn(ctx, q, o.Inspector.Operations.Advance, string(progress), s.affected, told, o.Relay, finished, id)
}

// walk goes on where the operation is, and changes one page of messages.
func (o *Operator) walk(ctx context.Context, q sqlx.ExtContext, op relay.Operation, s *standing, judge func(relay.Candidate) relay.Verdict, most int) (finished bool, wait time.Duration, err error) {
	since := time.Duration(-1)
	if s.At > 0 {
		since = FromMicros(s.now - s.At)
	}
	n, wait := op.Order.Allow(most, s.affected, since)
	if wait > 0 {
		return false, wait, nil
	}
	search := o.Inspector.searchOf(op, n)
	if len(s.Place) != len(search.Start) {
		s.Place = search.Start
	}
	found, next, err := o.Inspector.page(ctx, q, search, s.Place)
	if err != nil {
		return false, 0, wrongID(o.Inspector.Wrap("operate", err))
	}
	changed, err := o.change(ctx, q, op, found, judge, &s.Detail)
	if err != nil {
		return false, 0, err
	}
	s.affected += changed
	s.Place = next
	if next == nil {
		s.AddUnmatched(op, s.affected)
	}
	return next == nil || op.Order.Reached(s.affected), 0, nil
}

// change locks messages, lets judge decide, and does it, all of one verdict at once. It returns how many it changed.
func (o *Operator) change(ctx context.Context, q sqlx.ExtContext, op relay.Operation, found []Listed, judge func(relay.Candidate) relay.Verdict, detail *relay.Detail) (changed int, err error) {
	texts := o.Inspector.Operations
	query := texts.LockCandidates
	if op.DryRun {
		query = texts.Candidates
	}
	candidates, err := o.Inspector.candidates(ctx, q, query, op.ID, found)
	if err != nil {
		return 0, err
	}
	detail.Add(relay.SkipLocked, len(found)-len(candidates))
	verdicts := map[relay.Verdict][]relay.Candidate{}
	for _, c := range candidates {
		v := judge(c)
		verdicts[v] = append(verdicts[v], c)
	}
	for v, of := range verdicts {
		if v.Effect == relay.Skipped {
			detail.Add(v.Why, len(of))
			continue
		}
		changed += len(of)
		if op.DryRun {
			continue
		}
		if err := o.apply(ctx, q, op.ID, v, texts.Keys(of)); err != nil {
			return 0, err
		}
	}
	return changed, nil
}

// apply does to messages, whose rows are locked, what the verdict says.
func (o *Operator) apply(ctx context.Context, q sqlx.ExtContext, operation string, v relay.Verdict, keys any) error {
	t := o.Inspector.Operations
	exec := func(statement string, args ...any) error { return o.Inspector.execOn(ctx, q, statement, args...) }
	if v.Payload {
		if err := errors.Join(exec(t.KeepPayload, operation, keys), exec(t.Correct, operation, keys)); err != nil {
			return err
		}
	}
	switch v.Effect {
	case relay.Revived:
		return exec(t.Revive, v.KeepExpiry, v.ForgetUnknown, v.NewKey, keys)
	case relay.Hastened:
		return exec(t.Hasten, keys)
	case relay.Withdrawn:
		return exec(t.Withdraw, keys)
	case relay.Resolved:
		return exec(t.Resolve, keys)
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
