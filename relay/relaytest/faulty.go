package relaytest

import (
	"context"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// Call names a method of relay.Database, as its queries are named.
type Call string

// All calls that a Faulty sees.
const (
	CallClaim       Call = "claim"
	CallLoad        Call = "load"
	CallSettle      Call = "settle"
	CallRenew       Call = "renew"
	CallFinish      Call = "finish"
	CallRoutingKeys Call = "routing_keys"
	CallWaiting     Call = "waiting"
	CallWatch       Call = "watch"
	CallTake        Call = "take"
	CallMove        Call = "move"
	CallOrphans     Call = "orphans"
	CallBeat        Call = "beat"
	CallPeers       Call = "peers"
	CallLeave       Call = "leave"
	CallOperations  Call = "operations"
	CallOperate     Call = "operate"
	CallPauses      Call = "pauses"
	CallAsk         Call = "ask"
	CallDepths      Call = "depths"
	CallTotals      Call = "totals"
	CallDuty        Call = "duty"
	CallInstance    Call = "instance"
	CallRemove      Call = "remove"
)

// Faulty passes every call on to Next, and lets a test fail it, delay it or lose its answer. The funcs may block, run in
// the caller's goroutine, and are set before the first call; nil does nothing.
type Faulty struct {
	Next relay.Database
	// BeforeFunc runs before a call; where it gives an error, the call is not made.
	BeforeFunc func(ctx context.Context, call Call) error
	// AfterFunc runs after a call that worked; where it gives an error, the call was made and its answer is lost.
	AfterFunc func(ctx context.Context, call Call) error
}

var _ relay.Database = (*Faulty)(nil)

// do makes one call between the two funcs. Where it gives an error, nothing else that the call gave may be passed on.
func (f *Faulty) do(ctx context.Context, call Call, next func() error) error {
	if f.BeforeFunc != nil {
		if err := f.BeforeFunc(ctx, call); err != nil {
			return err
		}
	}
	err := next()
	if err == nil && f.AfterFunc != nil {
		err = f.AfterFunc(ctx, call)
	}
	return err
}

// ask is do for a call with an answer, which is lost where there is an error.
func ask[T any](ctx context.Context, f *Faulty, call Call, next func() (T, error)) (answer T, err error) {
	err = f.do(ctx, call, func() (err error) {
		answer, err = next()
		return err
	})
	if err != nil {
		return *new(T), err
	}
	return answer, nil
}

// Claim implements relay.Store.
func (f *Faulty) Claim(ctx context.Context, lease relay.LeaseID, length time.Duration, quotas []relay.Quota) ([]relay.Claim, error) {
	return ask(ctx, f, CallClaim, func() ([]relay.Claim, error) { return f.Next.Claim(ctx, lease, length, quotas) })
}

// Load implements relay.Store.
func (f *Faulty) Load(ctx context.Context, claims []relay.Claim) ([]relay.Message, error) {
	return ask(ctx, f, CallLoad, func() ([]relay.Message, error) { return f.Next.Load(ctx, claims) })
}

// Settle implements relay.Store.
func (f *Faulty) Settle(ctx context.Context, settlements []relay.Settlement) ([]relay.Unsettled, error) {
	return ask(ctx, f, CallSettle, func() ([]relay.Unsettled, error) { return f.Next.Settle(ctx, settlements) })
}

// Renew implements relay.Store.
func (f *Faulty) Renew(ctx context.Context, leases []relay.LeaseID) ([]relay.LeaseID, error) {
	return ask(ctx, f, CallRenew, func() ([]relay.LeaseID, error) { return f.Next.Renew(ctx, leases) })
}

// Finish implements relay.Store.
func (f *Faulty) Finish(ctx context.Context, leases []relay.LeaseID) error {
	return f.do(ctx, CallFinish, func() error { return f.Next.Finish(ctx, leases) })
}

// RoutingKeys implements relay.Scout.
func (f *Faulty) RoutingKeys(ctx context.Context) ([]string, error) {
	return ask(ctx, f, CallRoutingKeys, func() ([]string, error) { return f.Next.RoutingKeys(ctx) })
}

// Waiting implements relay.Scout.
func (f *Faulty) Waiting(ctx context.Context, look relay.Look) ([]relay.Waiting, error) {
	return ask(ctx, f, CallWaiting, func() ([]relay.Waiting, error) { return f.Next.Waiting(ctx, look) })
}

// Watch implements relay.Reclaimer.
func (f *Faulty) Watch(ctx context.Context) (era string, leases []relay.Lease, err error) {
	leases, err = ask(ctx, f, CallWatch, func() (leases []relay.Lease, err error) {
		era, leases, err = f.Next.Watch(ctx)
		return leases, err
	})
	return era, leases, err
}

// Take implements relay.Reclaimer.
func (f *Faulty) Take(ctx context.Context, lease relay.Lease) (was string, ok bool, err error) {
	ok, err = ask(ctx, f, CallTake, func() (ok bool, err error) {
		was, ok, err = f.Next.Take(ctx, lease)
		return ok, err
	})
	return was, ok, err
}

// Move implements relay.Reclaimer.
func (f *Faulty) Move(ctx context.Context, lease relay.LeaseID, was string) (moved []relay.Moved, left bool, err error) {
	moved, err = ask(ctx, f, CallMove, func() (moved []relay.Moved, err error) {
		moved, left, err = f.Next.Move(ctx, lease, was)
		return moved, err
	})
	return moved, left && err == nil, err
}

// Orphans implements relay.Reclaimer.
func (f *Faulty) Orphans(ctx context.Context, after string) (moved []relay.Moved, next string, err error) {
	moved, err = ask(ctx, f, CallOrphans, func() (moved []relay.Moved, err error) {
		moved, next, err = f.Next.Orphans(ctx, after)
		return moved, err
	})
	return moved, next, err
}

// Beat implements relay.Presence.
func (f *Faulty) Beat(ctx context.Context, b relay.Beat) error {
	return f.do(ctx, CallBeat, func() error { return f.Next.Beat(ctx, b) })
}

// Peers implements relay.Presence.
func (f *Faulty) Peers(ctx context.Context) ([]relay.Peer, error) {
	return ask(ctx, f, CallPeers, func() ([]relay.Peer, error) { return f.Next.Peers(ctx) })
}

// Leave implements relay.Presence.
func (f *Faulty) Leave(ctx context.Context) error {
	return f.do(ctx, CallLeave, func() error { return f.Next.Leave(ctx) })
}

// Operations implements relay.Operator.
func (f *Faulty) Operations(ctx context.Context) ([]relay.Operation, error) {
	return ask(ctx, f, CallOperations, func() ([]relay.Operation, error) { return f.Next.Operations(ctx) })
}

// Operate implements relay.Operator.
func (f *Faulty) Operate(ctx context.Context, o relay.Operation, judge func(relay.Candidate) relay.Verdict, most int) (relay.Step, error) {
	return ask(ctx, f, CallOperate, func() (relay.Step, error) { return f.Next.Operate(ctx, o, judge, most) })
}

// Pauses implements relay.Operator.
func (f *Faulty) Pauses(ctx context.Context) ([]relay.Pause, error) {
	return ask(ctx, f, CallPauses, func() ([]relay.Pause, error) { return f.Next.Pauses(ctx) })
}

// Ask implements relay.Operator.
func (f *Faulty) Ask(ctx context.Context, o relay.Operation) error {
	return f.do(ctx, CallAsk, func() error { return f.Next.Ask(ctx, o) })
}

// Depths implements relay.Gauger.
func (f *Faulty) Depths(ctx context.Context, routingKeys []string, limit int) ([]relay.Depth, error) {
	return ask(ctx, f, CallDepths, func() ([]relay.Depth, error) { return f.Next.Depths(ctx, routingKeys, limit) })
}

// Totals implements relay.Gauger.
func (f *Faulty) Totals(ctx context.Context, limit int) (relay.Totals, error) {
	return ask(ctx, f, CallTotals, func() (relay.Totals, error) { return f.Next.Totals(ctx, limit) })
}

// SwapDuty implements relay.Gauger.
func (f *Faulty) SwapDuty(ctx context.Context, seen, want relay.Duty) (relay.Duty, error) {
	return ask(ctx, f, CallDuty, func() (relay.Duty, error) { return f.Next.SwapDuty(ctx, seen, want) })
}

// Instance implements relay.Instances.
func (f *Faulty) Instance(ctx context.Context) (string, error) {
	return ask(ctx, f, CallInstance, func() (string, error) { return f.Next.Instance(ctx) })
}

// Remove implements relay.Remover.
func (f *Faulty) Remove(ctx context.Context, r relay.Removal) (relay.Removed, error) {
	return ask(ctx, f, CallRemove, func() (relay.Removed, error) { return f.Next.Remove(ctx, r) })
}
