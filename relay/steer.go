package relay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// resumeOf ends a pause whose time is over. All relays ask for it under the same id, so that there is one.
func (r *Relay) resumeOf(p Pause) Operation {
	h := sha256.Sum256([]byte("resume " + p.String() + " of " + p.Operation))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80 // RFC 9562, version 8
	text := hex.EncodeToString(h[:16])
	order := p.Order()
	order.Ended = true
	return Operation{
		ID: text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:],
		Op: OpResume, Actor: "relay " + r.cfg.Name, Note: "its time is over", Order: order,
	}
}
