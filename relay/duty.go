package relay

import (
	"context"
	"time"
)

// longestDuty is how long a duty of one relay may stand still, at most, before another takes it.
const longestDuty = 30 * time.Second

// duty is a Duty as this relay watches or keeps it. Whether who has it is dead it finds out by watching, as with leases: no wall
// clock takes part. A failover that takes a renewal away may let two relays have it for a moment: it is for what may be done
// twice.
type duty struct {
	*Relay
	seen   Duty
	since  time.Time // seen is unchanged since then, by our monotonic clock
	looked time.Time // when the last look was asked for
	epoch  int64     // of the last time that we took it; 0: never
	until  time.Time // it is ours for so long, if nobody takes it
}

func (r *Relay) newDuty(kind, name string) *duty {
	return &duty{Relay: r, seen: Duty{Kind: kind, Name: name}}
}

// length is how long it may stand still while it is ours.
func (d *duty) length() time.Duration { return min(d.cfg.Lease, longestDuty) }

// ours tells that we took it and that nobody else is known to have taken it since.
func (d *duty) ours() bool {
	return d.epoch != 0 && d.seen.Relay == d.cfg.Name && d.seen.Epoch == d.epoch
}

// keep takes the duty where nobody has it or who has it is dead, and renews it where it is ours. A look that fails starts the
// watch anew, as does one that comes too late: this process may have been frozen, and the database away meanwhile.
func (d *duty) keep(ctx context.Context) {
	asked := time.Now()
	anew := asked.Sub(d.looked) > max(d.seen.Length, shortestLease)/3
	d.looked = asked
	want := d.seen
	switch {
	case d.ours():
		want.Beats++
	case want.Relay == "", !anew && asked.Sub(d.since) >= max(want.Length, shortestLease): // somebody may have written the row by hand
		want.Relay, want.Length, want.Beats = d.cfg.Name, d.length(), 0
		want.Epoch++
	}
	now, err := d.swap(ctx, want)
	if err != nil || anew || now != d.seen {
		d.since = time.Now()
	}
	if err != nil {
		return
	}
	taken := now == want && want.Epoch != d.seen.Epoch
	d.seen = now
	if taken {
		d.epoch = now.Epoch
		d.log.Info("duty taken", "duty", now.Kind, "name", now.Name)
	}
	if now == want && d.ours() {
		d.until = asked.Add(d.length() * 9 / 10)
	}
}

// leave gives the duty up, at a stop.
func (d *duty) leave(ctx context.Context) {
	if !d.ours() {
		return
	}
	want := d.seen
	want.Relay, want.Beats = "", 0
	_, _ = d.swap(ctx, want) // else others wait until it has stood still for long enough
}

func (d *duty) swap(ctx context.Context, want Duty) (now Duty, err error) {
	err = d.call(ctx, "duty", func(ctx context.Context) (err error) {
		now, err = d.cfg.Database.SwapDuty(ctx, d.seen, want)
		return err
	})
	return now, err
}
