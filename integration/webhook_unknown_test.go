package integration

import (
	"crypto/tls"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestNeverTwice: a destination that remembers no key, and a relay that is killed again and again. No message is sent
// twice; each ends done, or, if it was under way at a kill, failed for a person to look at.
func TestNeverTwice(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	r := newReceiver(t, func(one *request) reply {
		return reply{takes: 20 * time.Millisecond, cut: one.beside == 8} // some answers are lost, too
	})
	kills := d.killAgainAndAgain(t, r, "dedupe: never", scale(10_000))
	wrong := 0
	for key, came := range r.byKey() {
		if len(came) > 1 {
			if wrong++; wrong <= 5 {
				t.Errorf("message %s was sent %d times", key, len(came))
			}
		}
	}
	d.expect(t, 0, "SELECT count(*) FROM outbox WHERE NOT (state = 'done' OR state = 'failed' AND reason = 'unknown')")
	const unrecorded = "NOT EXISTS (SELECT 1 FROM outbox_attempt WHERE message_id = id AND outcome IN ('lapse', 'unknown'))"
	d.expect(t, 0, "SELECT count(*) FROM outbox WHERE state = 'failed' AND "+unrecorded)
	lapses := d.count(t, "SELECT count(*) FROM outbox_attempt WHERE outcome = 'lapse'")
	t.Logf("%d messages were under way at %d kills", lapses, kills)
	if most := kills * killWidth; lapses == 0 || lapses > most {
		t.Errorf("%d messages were under way at %d kills, want 1 to %d", lapses, kills, most)
	}
	d.expect(t, 0, "SELECT count(*) FROM outbox WHERE state = 'done' AND {unknown}")
}

// TestNoLateRepeat: a destination that remembers a key for ten seconds, and a relay that is killed again and again, whose
// answers get lost. Nothing that may have taken effect is sent later than that.
func TestNoLateRepeat(t *testing.T) {
	t.Parallel()
	const window = 10 * time.Second
	d := newDatabase(t)
	r := newReceiver(t, func(one *request) reply {
		return reply{takes: 20 * time.Millisecond, cut: one.beside%4 == 0}
	})
	d.killAgainAndAgain(t, r, "dedupe: 10s", scale(5000))
	d.expect(t, 0, "SELECT count(*) FROM outbox WHERE NOT (state = 'done' OR state = 'failed' AND reason = 'unknown')")
	repeats := d.expectNoneLate(t, r, window)
	t.Logf("%d repeats in time; %d messages are failed(unknown)", repeats, d.count(t, "SELECT count(*) FROM outbox WHERE state = 'failed'"))
	if repeats == 0 {
		t.Error("nothing was sent again")
	}
}

// killWidth is how many sends may be under way at a kill.
const killWidth = 16

// killAgainAndAgain starts a relay anew whenever it was killed, every 3 s, until all of n messages are final, and returns
// how often it was killed.
func (d *database) killAgainAndAgain(t *testing.T, r *receiver, webhook string, n int) (kills int) {
	t.Helper()
	d.insert(t, n, "charge_order")
	for ; d.count(t, notFinal) > 0; kills++ {
		before, _, _ := r.figures()
		p := d.relayTo(t, "a", r, shop{webhook, fmt.Sprint("width: ", killWidth), "budget: 100, base: 200ms, cap: 2s"})
		eventually(t, patience, func() error {
			if came, _, _ := r.figures(); came > before || d.count(t, notFinal) == 0 {
				return nil
			}
			return fmt.Errorf("nothing was sent after %d kills", kills)
		})
		select {
		case <-time.After(scaleDuration(3 * time.Second)):
		case <-t.Context().Done():
		}
		if p.kill(t); kills == 0 && d.count(t, notFinal) == 0 {
			t.Fatal("all was sent before the first kill")
		}
	}
	return kills
}

// expectNoneLate holds every repeat against the database's clock, and returns how many there were.
func (d *database) expectNoneLate(t *testing.T, r *receiver, window time.Duration) (repeats int) {
	t.Helper()
	ahead := d.ahead(t)
	since := map[string]time.Time{}
	for _, row := range d.rows(t, "SELECT id, extract(epoch FROM unknown_since) * 1000000 FROM outbox WHERE {unknown}") {
		var micros float64
		if _, err := fmt.Sscan(row[1], &micros); err != nil {
			t.Fatal(err)
		}
		since[row[0]] = time.UnixMicro(int64(micros))
	}
	for key, came := range r.byKey() {
		for _, one := range came[1:] {
			repeats++
			if late := one.at.Add(ahead).Sub(since[key].Add(window)); late > 0 {
				t.Errorf("message %s was sent again (%d) %s after the window", key, one.nth, late)
			}
		}
	}
	return repeats
}

// ahead is how far the database's clock is ahead of ours, or a little less.
func (d *database) ahead(t *testing.T) time.Duration {
	t.Helper()
	asked := time.Now()
	var micros float64
	d.read(t, "SELECT extract(epoch FROM {now}) * 1000000", &micros)
	return time.UnixMicro(int64(micros)).Sub(asked) - time.Since(asked)
}

// TestNoRepeatBehindASlowConnect: the answer to each message is lost, and the connection for its repeat takes so long that
// the receiver may have forgotten the key by then: nothing is written on it.
func TestNoRepeatBehindASlowConnect(t *testing.T) {
	t.Parallel()
	const n = 8
	window := max(scaleDuration(10*time.Second), 3*time.Second)
	d := newDatabase(t)
	ca := newAuthority(t)
	gate := make(chan struct{})
	release := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(release)
	var answered atomic.Bool
	var slow atomic.Int64
	secure := ca.server(t)
	secure.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if answered.Load() {
			slow.Add(1)
			<-gate
		}
		return nil, nil
	}
	lose := make(chan struct{})
	r := newSecureReceiver(t, secure, always(reply{until: lose, cut: true}))
	d.insert(t, n, "charge_order")
	d.relayTo(t, "a", r, shop{
		fmt.Sprintf("dedupe: %s, connect_timeout: 5m, tls: {ca_file: %q}", window, ca.file), "width: 8, timeout: 5m, breaker: {run: 100}", "base: 10ms",
	})
	r.waitUnderWay(t, n)
	answered.Store(true)
	close(lose)
	eventually(t, patience, func() error {
		if waits, sent := int(slow.Load()), d.count(t, notFinal); waits != sent {
			return fmt.Errorf("%d of %d messages wait for a connection", waits, sent)
		}
		return nil
	})
	if slow.Load() == 0 {
		t.Fatal("no message was to be sent again")
	}
	d.waitCount(t, patience, n, fmt.Sprintf("SELECT count(*) FROM outbox WHERE unknown_since < {now} - %d * {second}", window/time.Second))
	d.expect(t, 0, "SELECT count(*) FROM outbox WHERE state = 'done'")
	release()
	d.waitCount(t, patience, n, "SELECT count(*) FROM outbox WHERE state = 'failed' AND reason = 'unknown' AND attempts = 1")
	if came, _, _ := r.figures(); came != n {
		t.Errorf("%d requests came, want %d", came, n)
	}
}
