package relay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

const (
	maxLoadBytes = 4 << 20     // payloads and headers of one load
	sinkGrace    = time.Second // for a Sink to come back after its deadline
)

// flight is the messages of one claim that go to one destination. Each holds a place of the destination.
type flight struct {
	dest  *destination
	lease *lease
	since time.Time // when the claim was asked for
	probe *breaker  // not nil: the only message is this breaker's probe
}

// fly is the path of claimed messages: load → admit → send → decide → settle. No transaction is open in any of it.
func (r *Relay) fly(f flight, claims []Claim) {
	for len(claims) > 0 {
		chunk, bytes := nextChunk(claims, f.dest.MaxBytes)
		if !r.maySend(f) || f.dest.hold(f.lease.ctx, bytes) != nil {
			r.release(f, claims)
			return
		}
		claims = claims[len(chunk):]
		r.deliverAll(f, chunk, bytes)
	}
}

// nextChunk takes the claims from the front whose bytes fit one load.
func nextChunk(claims []Claim, maxBytes int) (chunk []Claim, bytes int) {
	limit := min(maxLoadBytes, maxBytes)
	n := 0
	for n < len(claims) && (n == 0 || bytes+claims[n].Bytes <= limit) {
		bytes += claims[n].Bytes
		n++
	}
	return claims[:n], bytes
}

// deliverAll loads the messages of a chunk and starts their sends, each in a goroutine of its own.
func (r *Relay) deliverAll(f flight, chunk []Claim, bytes int) {
	var messages []Message
	err := r.persist(f.lease.ctx, "load", func(ctx context.Context) (err error) {
		messages, err = r.cfg.Database.Load(ctx, chunk)
		return err
	})
	if err != nil {
		f.dest.drop(bytes)
		r.release(f, chunk)
		return
	}
	gone := make(map[string]Claim, len(chunk))
	for _, c := range chunk {
		gone[c.ID] = c
	}
	for i := range messages {
		m := &messages[i]
		delete(gone, m.ID)
		bytes -= m.Bytes
		r.flights.Go(func() { r.deliver(f, m) })
	}
	f.dest.drop(bytes)
	for _, c := range gone { // no longer ours: whoever has it now decides
		r.log.Warn("lease lost", "id", c.ID, "lease_id", c.Lease, "step", "load")
		r.observe(Event{Kind: EventLost, Destination: f.dest.Name, RoutingKey: c.RoutingKey})
		f.voidProbe()
		r.land(f, c)
		r.close(f.lease, c)
	}
}

// deliver walks one loaded message to its settlement.
func (r *Relay) deliver(f flight, m *Message) {
	defer f.dest.drop(m.Bytes)
	defer f.voidProbe()
	policy := r.policy(m.RoutingKey, m.Type)
	if s, turned := Admit(Admission{Claim: m.Claim, Policy: policy, Window: f.dest.Window, Since: time.Since(f.since)}); turned {
		r.land(f, m.Claim)
		r.settle(f, m.Claim, s)
		return
	}
	if !r.maySend(f) {
		r.release(f, []Claim{m.Claim})
		return
	}
	began := time.Now()
	outcome, hangs := r.send(f, m, policy.Timeout)
	t := Try{Claim: m.Claim, Outcome: outcome, Policy: *policy, Took: time.Since(began), Draw: rand.Float64()}
	t.CutOff = f.lease.ctx.Err() != nil && (outcome.Kind == KindUnknown || outcome.Kind == KindUnsent)
	if !t.CutOff {
		t.Opened, t.Pause = f.dest.count(time.Now(), m.Claim, outcome, f.probe)
	}
	if !hangs {
		r.land(f, m.Claim)
	}
	r.observe(Event{
		Kind: EventSend, Destination: f.dest.Name, RoutingKey: m.RoutingKey, Type: m.Type, Outcome: outcome.Kind,
		Class: outcome.Class, Took: t.Took,
	})
	r.settle(f, m.Claim, Decide(t))
}

// send makes one try, within the policy's time-out and the lease. A Sink that hangs past its deadline is not waited for:
// the outcome is unknown, and the message keeps its place at the destination until the Sink returns, so that what hangs
// stays bounded.
func (r *Relay) send(f flight, m *Message, timeout time.Duration) (o Outcome, hangs bool) {
	headers, err := parseHeaders(m.RawHeaders)
	if err != nil {
		return Fail(Rejected, "invalid", err.Error()), false
	}
	m.Headers = headers
	ctx, cancel := context.WithTimeout(f.lease.ctx, timeout)
	defer cancel()
	result := make(chan Outcome, 1)
	go func() { result <- sendOnce(ctx, f.dest.Sink, m) }()
	select {
	case o := <-result:
		return o, false
	case <-ctx.Done():
	}
	grace := time.NewTimer(sinkGrace)
	defer grace.Stop()
	select {
	case o := <-result:
		return o, false
	case <-grace.C:
	}
	r.log.Warn("destination does not return after its deadline", "destination", f.dest.Name, "id", m.ID)
	go func() {
		<-result
		r.land(f, m.Claim)
	}()
	return Unknown("timeout", fmt.Sprintf("no answer within %s, and the send does not end", timeout)), true
}

// sendOnce makes a panic that message's outcome: something may have gone out.
func sendOnce(ctx context.Context, sink Sink, m *Message) (o Outcome) {
	defer func() {
		if p := recover(); p != nil {
			o = Unknown("other", fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	return sink.Send(ctx, m)
}

// maySend tells whether a send may start: not after a stop, and not near the lease's end.
func (r *Relay) maySend(f flight) bool { return r.working.Err() == nil && r.leases.alive(f.lease) }

// release gives messages back that were not started.
func (r *Relay) release(f flight, claims []Claim) {
	for _, c := range claims {
		r.land(f, c)
		r.settle(f, c, Release(c))
	}
	f.voidProbe()
}

// settle hands a settlement to the writers.
func (r *Relay) settle(f flight, c Claim, s Settlement) {
	r.settler.add(settling{Settlement: s, claim: c, lease: f.lease, dest: f.dest, since: f.since})
}

// land gives back the place that a message had at its destination.
func (r *Relay) land(f flight, c Claim) { f.dest.free(c.RoutingKey) }

// close says that a message needs nothing more from this relay: its outcome is written, or it is no longer ours. Only then
// may the next suspect be claimed, which might kill us.
func (r *Relay) close(l *lease, c Claim) {
	if c.Lapses > 0 {
		r.lapsed.Add(-1)
	}
	r.leases.closed(l, 1)
}

func (f flight) voidProbe() {
	if f.probe != nil {
		f.dest.voidProbe(time.Now(), f.probe)
	}
}
