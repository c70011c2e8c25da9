package relay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"
)

// steerEvery is between looks for pauses: one relay applies what was asked for within it, and all see it within another.
const steerEvery = 400 * time.Millisecond

// steer applies pauses and resumes, in the order in which they were asked for, and follows them.
func (r *Relay) steer(ctx context.Context) {
	for sleep(ctx, steerEvery) {
		r.ticks.mark("steer")
		_ = r.steerOnce(ctx) // what is paused stays so until the database answers again
	}
}

// prepare is all that comes before the first claim: what is paused is known, and with Config.Paused everything is.
func (r *Relay) prepare(ctx context.Context) error {
	if err := r.steerOnce(ctx); err != nil || r.cfg.Paused == "" {
		return err
	}
	pause := r.pauseAtStart()
	if err := r.call(ctx, "ask", func(ctx context.Context) error { return r.cfg.Database.Ask(ctx, pause) }); err != nil {
		return err
	}
	open, err := r.operations(ctx)
	if err == nil && slices.ContainsFunc(open, func(o Operation) bool { return o.ID == pause.ID }) {
		return errNotNow // until this relay or another one has applied it
	}
	if err == nil {
		err = r.readPauses(ctx)
	}
	return err
}

// steerOnce reads what is paused whatever becomes of what was asked for: an operation that cannot be applied holds up none
// of the relay's work.
func (r *Relay) steerOnce(ctx context.Context) error {
	r.applySteering(ctx)
	return r.readPauses(ctx)
}

func (r *Relay) applySteering(ctx context.Context) {
	open, err := r.operations(ctx)
	if err != nil {
		return
	}
	held := map[Target]bool{}
	for _, op := range open {
		target := op.Order.Target()
		if !op.Op.Steers() || held[target] {
			continue
		}
		step, err := r.operateOn(ctx, op, nil, 0)
		// Where another relay is at it, or it fails, what was asked later of the same target waits for it.
		held[target] = err != nil || !step.Finished
	}
}

// readPauses follows what is paused, and asks for a resume of what has ended: the one relay that applies it also frees
// what waits.
func (r *Relay) readPauses(ctx context.Context) error {
	var told []Pause
	err := r.call(ctx, "pauses", func(ctx context.Context) (err error) {
		told, err = r.cfg.Database.Pauses(ctx)
		return err
	})
	if err != nil {
		return err
	}
	begun, ended := r.pauses.set(told, time.Now())
	for _, t := range begun {
		r.log.Info("paused", "target", t.String())
	}
	for _, t := range ended {
		r.log.Info("no longer paused", "target", t.String())
	}
	if len(ended) > 0 {
		r.wakeUp()
	}
	for _, p := range told {
		if !p.Endless && p.Left <= 0 {
			_ = r.call(ctx, "ask", func(ctx context.Context) error { return r.cfg.Database.Ask(ctx, r.resumeOf(p)) })
		}
	}
	return nil
}

// askForPause pauses a destination that asks for no more messages, until somebody resumes it. Sends that were under way
// say the same, so it is asked for once.
func (r *Relay) askForPause(d *destination, c Claim, o Outcome) {
	if r.pauses.lane(d.Name, "") || !r.faults.due("pause "+d.Name) {
		return
	}
	op := Operation{
		ID: operationID(fmt.Sprintf("pause %s after %s under %d", d.Name, c.ID, c.Lease)), Op: OpPause, Actor: r.actor(), Note: clean(o.Err, maxResultBytes),
		Order: Order{Destination: d.Name, Indefinitely: true},
	}
	ctx, cancel := context.WithTimeout(r.sending, leaveTime) // a stop does not wait for it
	defer cancel()
	_ = r.call(ctx, "ask", func(ctx context.Context) error { return r.cfg.Database.Ask(ctx, op) }) // the next answer asks again
}

// pauseAtStart pauses everything until somebody resumes it. It is asked for once under each start, and one that was applied
// is not applied again, so that a relay which is made anew under the same start takes no resume back.
func (r *Relay) pauseAtStart() Operation {
	return Operation{
		ID: operationID("pause at the start " + r.cfg.Paused), Op: OpPause, Actor: r.actor(),
		Note: "started paused", Order: Order{Everything: true, Indefinitely: true},
	}
}

// resumeOf ends a pause whose time is over. All relays ask for it under the same id, so that there is one.
func (r *Relay) resumeOf(p Pause) Operation {
	order := p.Order()
	order.Ended = true
	return Operation{
		ID: operationID("resume " + p.String() + " of " + p.Operation),
		Op: OpResume, Actor: r.actor(), Note: "its time is over", Order: order,
	}
}

// newConfiguration makes due at once what no policy accepted until now: one operation for each configuration, whichever of
// its relays asks first.
func (r *Relay) newConfiguration(hash string) Operation {
	return Operation{
		ID: operationID("retry_now of configuration " + hash), Op: OpRetryNow, Actor: r.actor(),
		Note: "configuration " + hash + " is new", Order: Order{Filter: Filter{ErrorClass: ClassNoPolicy}},
	}
}

func (r *Relay) askForNoPolicy(ctx context.Context, hash string) error {
	return r.call(ctx, "ask", func(ctx context.Context) error { return r.cfg.Database.Ask(ctx, r.newConfiguration(hash)) })
}

func (r *Relay) actor() string { return "relay " + r.cfg.Name }

// operationID is a UUID made of what is asked for (RFC 9562, version 8), so that relays that ask for the same ask once.
func operationID(what string) string {
	h := sha256.Sum256([]byte(what))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80
	text := hex.EncodeToString(h[:16])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}
