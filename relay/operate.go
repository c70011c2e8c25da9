package relay

import (
	"context"
	"time"
)

const (
	operateEvery = time.Second // between looks for operations
	operateBatch = 500         // messages a step
)

// operator is the loop that applies operations on messages, each of them step by step and all of them by turns, so that a
// slow one holds up no other. Between its rounds it rests as long as they took: half of one connection is all that
// operations may use. Relays may work at the same operation: its row is locked for each step, and says where to go on.
type operator struct {
	*Relay
	turns map[string]*opTurn
}

// opTurn is when an operation has its next step, and how large that may be.
type opTurn struct {
	at   time.Time
	most int
}

func (r *Relay) operate(ctx context.Context) {
	o := &operator{Relay: r, turns: map[string]*opTurn{}}
	asked := "" // of which configuration
	for wait := time.Duration(0); sleep(ctx, wait); {
		r.ticks.mark("operate")
		if !r.seat.ours() {
			wait = operateEvery
			continue
		}
		if hash := r.routing.Load().hash; hash != asked && r.askForNoPolicy(ctx, hash) == nil {
			asked = hash
		}
		began := time.Now()
		next := o.round(ctx)
		wait = max(time.Since(began), min(time.Until(next), operateEvery))
	}
}

// round makes a step of each operation whose turn it is, and tells when the next one has its turn.
func (o *operator) round(ctx context.Context) (next time.Time) {
	next = time.Now().Add(operateEvery)
	open, err := o.operations(ctx)
	if err != nil {
		return next
	}
	turns, idle := make(map[string]*opTurn, len(open)), true
	for _, op := range open {
		if op.Op.Steers() {
			continue
		}
		t := o.turns[op.ID]
		if t == nil {
			t = &opTurn{most: operateBatch}
		}
		turns[op.ID] = t
		if !time.Now().Before(t.at) {
			idle = o.step(ctx, op, t) && idle
		}
		if t.at.Before(next) {
			next = t.at
		}
	}
	o.turns = turns
	o.idle.Store(idle)
	return next
}

// step makes one step of an operation, and tells whether there is nothing more to do for this relay now. After a fault the
// next step is smaller.
func (o *operator) step(ctx context.Context, op Operation, t *opTurn) (idle bool) {
	o.ticks.mark("operate")
	judge := func(c Candidate) Verdict { return o.judge(op, c) }
	step, err := o.operateOn(ctx, op, judge, t.most)
	now := time.Now()
	switch {
	case err != nil:
		t.most, t.at = max(1, t.most/2), now.Add(operateEvery)
		return false
	case step.Elsewhere, step.Finished:
		t.at = now.Add(operateEvery)
		idle = true
	case step.Wait > 0:
		t.at = now.Add(step.Wait)
		idle = true
	default:
		t.most, t.at = min(2*t.most, operateBatch), now
	}
	if step.Affected > 0 {
		o.wakeUp()
	}
	return idle
}

func (r *Relay) operations(ctx context.Context) (open []Operation, err error) {
	err = r.call(ctx, "operations", func(ctx context.Context) (err error) {
		open, err = r.cfg.Database.Operations(ctx)
		return err
	})
	return open, err
}

// operateOn makes one step, and tells of an operation that is applied.
func (r *Relay) operateOn(ctx context.Context, op Operation, judge func(Candidate) Verdict, most int) (step Step, err error) {
	err = r.call(ctx, "operate", func(ctx context.Context) (err error) {
		step, err = r.cfg.Database.Operate(ctx, op, judge, most)
		return err
	})
	if err == nil {
		r.observe(toldOf(op, step))
	}
	if err == nil && step.Finished {
		r.log.Info("operation applied", "id", op.ID, "op", op.Op, "actor", op.Actor)
	}
	return step, err
}

// judge is Judge with what the configuration says of the message.
func (r *Relay) judge(op Operation, c Candidate) Verdict {
	route := r.routing.Load().routeOf(c.RoutingKey)
	if route == nil {
		return Judge(op, c, Dedupe{})
	}
	v := Judge(op, c, r.destination(route.To).dedupe())
	if v.Effect == Withdrawn {
		v.Emit = route.policy(c.Type).Emit
	}
	return v
}

// toldOf is what metrics hear of a step. What a dry run counts, or a pause, is no message that changed.
func toldOf(op Operation, step Step) Event {
	e := Event{Kind: EventOperation, Op: op.Op, Count: step.Affected}
	if op.DryRun || op.Op.Steers() {
		e.Count = 0
	}
	switch {
	case !step.Finished:
	case step.Refused:
		e.Result = ResultRefused
	case op.DryRun:
		e.Result = ResultDryRun
	default:
		e.Result = ResultApplied
	}
	return e
}
