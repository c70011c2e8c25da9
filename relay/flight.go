package relay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"
)

const (
	maxLoadBytes = 4 << 20     // payloads and headers of one load
	sinkGrace    = time.Second // for a Sink to come back after its deadline
)

// flight is the messages of one claim that go to one destination. Each message holds, and gives back exactly once:
//
//	a place of the destination   from claim (reserve)      until the Sink returned, or it is settled unsent (free)
//	bytes of the destination     from fly (hold)           with its place (drop)
//	a share of the lease         from claim (leases.add)   until it is settled or lost (close)
//	the breaker's probe, if any  from dueProbe             with its outcome (count), or with none (voidProbe)
type flight struct {
	dest  *destination
	lease *lease
	since time.Time // when the claim was asked for
	probe *breaker  // not nil: the only message is this breaker's probe
}

// fly is the path of claimed messages: load → admit → send → decide → settle. No transaction is open in any of it. While
// loading fails, ever fewer are loaded at once, so that one row that cannot be read stops only itself.
func (r *Relay) fly(f flight, claims []Claim) {
	for most, wait := maxBatch, firstRepeat; len(claims) > 0; {
		chunk, bytes := nextChunk(claims[:min(most, len(claims))], f.dest.MaxBytes)
		if !r.maySend(f) || f.dest.hold(f.lease.ctx, bytes) != nil {
			r.release(f, claims)
			return
		}
		messages, err := r.load(f, chunk)
		if err == nil {
			r.startAll(f, chunk, messages, bytes)
			claims, most, wait = claims[len(chunk):], min(2*most, maxBatch), firstRepeat
			continue
		}
		f.dest.drop(bytes)
		if len(chunk) == 1 && f.lease.ctx.Err() == nil {
			r.unstarted(f, chunk[0], Decide(Try{Claim: chunk[0], Outcome: Unsent("other", "the database could not read it: see the relay's log")}))
			claims = claims[1:]
		}
		most = max(1, len(chunk)/2)
		sleep(f.lease.ctx, wait)
		wait = min(2*wait, lastRepeat)
	}
}

func (r *Relay) load(f flight, chunk []Claim) (messages []Message, err error) {
	err = r.call(f.lease.ctx, "load", func(ctx context.Context) (err error) {
		messages, err = r.cfg.Database.Load(ctx, chunk)
		return err
	})
	return messages, err
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

// startAll starts the sends of the messages of a chunk, each in a goroutine of its own.
func (r *Relay) startAll(f flight, chunk []Claim, messages []Message, bytes int) {
	gone := make(map[string]Claim, len(chunk))
	for _, c := range chunk {
		gone[c.ID] = c
	}
	for i := range messages {
		m := &messages[i]
		delete(gone, m.ID)
		bytes -= m.Bytes
		r.flights.Add(1) // until carry has settled it, which may be before it returns
		go r.carry(f, m)
	}
	f.dest.drop(bytes)
	for _, c := range gone { // no longer ours: whoever has it now decides
		r.log.Warn("lease lost", "id", c.ID, "lease_id", c.Lease, "step", "load")
		r.observe(Event{Kind: EventLost, Destination: f.dest.Name, RoutingKey: c.RoutingKey})
		f.voidProbe()
		f.dest.free(c.RoutingKey, false)
		r.close(f.lease, c)
	}
}

// carry walks one loaded message to its settlement, and gives its place back once the Sink has returned.
func (r *Relay) carry(f flight, m *Message) {
	terms, s, ready := r.ready(f, m)
	if !ready {
		f.dest.drop(m.Bytes)
		r.unstarted(f, m.Claim, s)
		r.flights.Done()
		return
	}
	before, began := f.dest.openings(m.RoutingKey), time.Now()
	r.send(f, m, terms.policy.Timeout, func(o Outcome) {
		t := Try{Claim: m.Claim, Outcome: o, Policy: terms.policy, Never: terms.dedupe.Never, Took: time.Since(began), Draw: rand.Float64()}
		r.conclude(f, m, before, began, t)
		r.flights.Done()
	})
	f.dest.drop(m.Bytes)
	f.dest.free(m.RoutingKey, true)
}

// terms are what a send is bounded and decided by: as they stood when it was admitted, whatever is reloaded meanwhile.
type terms struct {
	policy Policy
	dedupe Dedupe
}

// terms are those of a message now. There are none where its route, since it was claimed for the destination, leads to
// another one or is gone.
func (r *Relay) terms(d *destination, m *Message) (t terms, ok bool) {
	route := r.routing.Load().routeOf(m.RoutingKey)
	if route == nil || route.To != d.Name {
		return t, false
	}
	return terms{route.policy(m.Type), d.dedupe()}, true
}

// conclude tells the breakers what a send came to that began at that moment, decides and settles. A fail that is the sink's
// own verdict is no news of the destination.
func (r *Relay) conclude(f flight, m *Message, before int, began time.Time, t Try) {
	t.CutOff = f.lease.ctx.Err() != nil && (t.Outcome.Kind == KindUnknown || t.Outcome.Kind == KindUnsent)
	if t.CutOff || t.Outcome.Ours {
		f.voidProbe()
	} else {
		t.Opened, t.Pause = f.dest.count(time.Now(), m.Claim, t.Outcome, f.probe, before)
	}
	r.tellFailure(f, m, t)
	r.settler.add(settling{
		Settlement: Decide(t), claim: m.Claim, lease: f.lease, dest: f.dest, since: f.since, began: began,
		outcome: t.Outcome.Kind, class: t.Outcome.Class, took: t.Took,
	})
	if t.Outcome.Pause {
		r.askForPause(f.dest, m.Claim, t.Outcome)
	}
}

// tellFailure logs a send that will be tried again; of a destination and error class one line each logEvery.
func (r *Relay) tellFailure(f flight, m *Message, t Try) {
	o := t.Outcome
	if o.Kind == KindDone || o.Kind == KindFail || !r.faults.due("send "+f.dest.Name+" "+o.Class) {
		return
	}
	r.log.Warn("send failed", "destination", f.dest.Name, "routing_key", m.RoutingKey, "type", m.Type, "id", m.ID,
		"attempt", m.Attempt(), "outcome", o.Kind, "error_class", o.Class, "err", clean(o.Err, maxErrorBytes))
}

// ready makes a message ready for its send, or says what becomes of it without one. A header that is no string is our
// verdict, not the destination's: no breaker hears of it.
func (r *Relay) ready(f flight, m *Message) (t terms, s Settlement, ready bool) {
	t, ok := r.terms(f.dest, m)
	if !ok {
		return t, Release(m.Claim), false
	}
	s, turned := Admit(Admission{
		Claim: m.Claim, Policy: &t.policy, Dedupe: t.dedupe, Since: time.Since(f.since),
		Paused: !r.pauses.accepts(m.Type, m.SchemaVersion),
	})
	if turned {
		return t, s, false
	}
	headers, err := parseHeaders(m.RawHeaders)
	if err != nil {
		return t, ended(m.Claim, Rejected, "invalid", err.Error()).telling(t.policy.Emit), false
	}
	if r.begin(f, m.RoutingKey) != nil {
		return t, Release(m.Claim), false
	}
	m.Headers = headers
	if window := t.dedupe.Window; m.Unknown && window > 0 {
		m.StartBy = f.since.Add(window - m.UnknownFor)
	}
	return t, Settlement{}, true
}

// begin waits until the destination's rate allows a send. It gives an error where that may not be made any more: while
// the message was loaded, or waited for its turn, all that let it be claimed may have ended.
func (r *Relay) begin(f flight, key string) error {
	ctx, cancel := context.WithCancel(f.lease.ctx)
	defer cancel()
	defer context.AfterFunc(r.working, cancel)()
	return f.dest.begin(ctx, func() bool { return r.maySend(f) && !r.pauses.lane(f.dest.Name, key) })
}

// send makes one try, within the policy's time-out and the lease, and concludes it exactly once. A Sink that hangs past its
// deadline is not waited for: the outcome is unknown. send still returns with the Sink, so that the message keeps its place
// at the destination and what hangs stays bounded.
func (r *Relay) send(f flight, m *Message, timeout time.Duration, conclude func(Outcome)) {
	ctx, cancel := context.WithTimeout(f.lease.ctx, timeout)
	defer cancel()
	var once sync.Once
	unwatch := context.AfterFunc(ctx, func() {
		time.AfterFunc(sinkGrace, func() {
			once.Do(func() {
				r.log.Warn("destination does not return after its deadline", "destination", f.dest.Name, "id", m.ID)
				conclude(Unknown("timeout", fmt.Sprintf("no answer within %s, and the send does not end", timeout)))
			})
		})
	})
	outcome := sendOnce(ctx, f.dest.Sink, m)
	unwatch()
	once.Do(func() { conclude(outcome) })
}

// sendOnce makes a panic that message's outcome: something may have gone out.
func sendOnce(ctx context.Context, sink Sink, m *Message) (o Outcome) {
	defer func() {
		if p := recover(); p != nil {
			o = Unknown("other", fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	o = sink.Send(ctx, m)
	switch o.Kind {
	case KindDone, KindRetry, KindFail, KindUnknown, KindUnsent:
	default:
		o.Kind = KindUnknown
	}
	return o
}

// maySend tells whether a send may start: not after a stop, and not near the lease's end.
func (r *Relay) maySend(f flight) bool { return r.working.Err() == nil && r.leases.alive(f.lease) }

// release gives messages back that were not started.
func (r *Relay) release(f flight, claims []Claim) {
	for _, c := range claims {
		r.unstarted(f, c, Release(c))
	}
}

// unstarted settles a message that was not sent.
func (r *Relay) unstarted(f flight, c Claim, s Settlement) {
	f.voidProbe()
	f.dest.free(c.RoutingKey, false)
	r.settler.add(settling{Settlement: s, claim: c, lease: f.lease, dest: f.dest, since: f.since})
}

// close says that a message needs nothing more from this relay: its outcome is written, or it is no longer ours. Only then
// may the next suspect be claimed, which might kill us.
func (r *Relay) close(l *lease, c Claim) {
	if c.Lapses > 0 {
		r.lapsed.Add(-1)
	}
	r.leases.closed(l, 1)
}

// voidProbe says that the message came to no outcome, where it was a probe.
func (f flight) voidProbe() {
	if f.probe != nil {
		f.dest.voidProbe(time.Now(), f.probe)
	}
}
