package integration

import (
	"fmt"
	"testing"
	"time"
)

// The figures of an outage: times are scaled, a second is 50 ms.
const (
	outagePause = 50 * time.Millisecond // of the breaker, from first to last
	outageRate  = 200                   // a second
	outageWidth = 16
)

// TestOutage: a receiver is away for 600 pauses of the breaker while messages wait, and comes back. It is hardly asked
// meanwhile, no message pays for it more than twice, and afterwards all go out at no more than their rate and width.
func TestOutage(t *testing.T) {
	besideOthers(t)
	for _, relays := range []int{1, 4} {
		t.Run(fmt.Sprintf("refuses, relays %d", relays), func(t *testing.T) {
			besideOthers(t)
			o := newOutage(t, relays)
			o.r.refuse()
			o.start(t)
			o.stayAway(t, o.refused)
			o.r.open(t)
			o.comeBack(t)
			o.expect(t, o.n, "SELECT count(*) FROM outbox WHERE attempts = 1")
		})
		t.Run(fmt.Sprintf("answers 503, relays %d", relays), func(t *testing.T) {
			besideOthers(t)
			o := newOutage(t, relays)
			full := make(chan struct{}) // the first requests are answered together
			o.r.answers(func(one *request) reply {
				if one.before == 0 && one.beside == outageWidth {
					close(full)
				}
				return reply{status: 503, takes: 2 * time.Millisecond, until: full}
			})
			o.start(t)
			o.stayAway(t, o.answered)
			o.comeBack(t)
			o.expect(t, 0, "SELECT count(*) FROM outbox WHERE attempts > 3")
			o.expectSpread(t)
		})
	}
}

// besideOthers runs a test in parallel, but not where times are asserted.
func besideOthers(t *testing.T) {
	t.Helper()
	if !bounds() {
		t.Parallel()
	}
}

// outage is a receiver that is away, and relays that want to send to it.
type outage struct {
	*database
	r      *receiver
	names  []string
	relays []*process
	n      int // messages
	before int // requests when the receiver came back
}

func newOutage(t *testing.T, relays int) *outage {
	t.Helper()
	o := &outage{database: newDatabase(t), r: newReceiver(t, nil), n: scale(10_000)}
	for i := range relays {
		o.names = append(o.names, fmt.Sprintf("relay-%d", i))
	}
	return o
}

// start starts the relays, and then writes the messages: each relay has its share of the width and the rate by then.
func (o *outage) start(t *testing.T) {
	t.Helper()
	for _, name := range o.names {
		o.relays = append(o.relays, o.relayTo(t, name, o.r, shop{
			fmt.Sprintf("dedupe: 24h, headers: {X-Relay: %s}", name),
			fmt.Sprintf("width: %d, rate: %d/s, breaker: {run: 5, pause: %s, cap: %s}", outageWidth, outageRate, outagePause, outagePause),
			"base: 50ms, cap: 3m",
		}))
	}
	for i, p := range o.relays {
		eventually(t, patience, func() error {
			if got := p.figure(t, `outboxd_in_flight_limit{destination="shop"}`); got != float64(outageWidth/len(o.relays)) {
				return fmt.Errorf("%s may have %v sends under way", o.names[i], got)
			}
			return nil
		})
	}
	o.insert(t, o.n, "charge_order")
}

// refused and answered are how many sends of a relay the receiver did not take until now.
func (o *outage) refused(t *testing.T, relay int) int {
	return int(o.relays[relay].figure(t, `outboxd_send_errors_total{destination="shop",error_class="refused"}`))
}

func (o *outage) answered(_ *testing.T, relay int) (n int) {
	for _, one := range o.r.seen() {
		if one.header.Get("X-Relay") == o.names[relay] {
			n++
		}
	}
	return n
}

// stayAway waits until every relay has found out that the receiver is away, and then for 600 probes of each. There is one a
// pause and relay, and nothing else.
func (o *outage) stayAway(t *testing.T, sends func(*testing.T, int) int) {
	t.Helper()
	for i, p := range o.relays {
		eventually(t, patience, func() error {
			if p.figure(t, `outboxd_destination_state{destination="shop",state="open"}`) == 1 && p.figure(t, `outboxd_in_flight{destination="shop"}`) <= 1 {
				return nil
			}
			return fmt.Errorf("%s is not open", o.names[i])
		})
	}
	began, first := make([]time.Time, len(o.relays)), make([]int, len(o.relays))
	for i := range o.relays {
		began[i], first[i] = time.Now(), sends(t, i)
	}
	want := scale(600)
	for i := range o.relays {
		probes := 0
		eventually(t, 5*patience, func() error {
			if probes = sends(t, i) - first[i]; probes < want {
				return fmt.Errorf("%s sent %d probes, want %d", o.names[i], probes, want)
			}
			return nil
		})
		if most := int(time.Since(began[i])/outagePause) + 2; probes > most {
			t.Errorf("%s sent %d probes in %s, want %d at most", o.names[i], probes, time.Since(began[i]), most)
		}
	}
	o.expect(t, 0, "SELECT count(*) FROM outbox WHERE state NOT IN ('pending', 'in_flight')")
}

// comeBack has the receiver answer again, slowly at first, and waits until all is done.
func (o *outage) comeBack(t *testing.T) {
	t.Helper()
	o.before, _, _ = o.r.figures()
	o.r.answers(func(one *request) reply {
		if one.before-o.before < 4*len(o.relays) {
			return reply{takes: 100 * time.Millisecond}
		}
		return reply{takes: 20 * time.Millisecond}
	})
	o.waitCount(t, 5*patience, o.n, "SELECT count(*) FROM outbox WHERE state = 'done'")
	o.expectGrowth(t)
	o.expectRate(t)
	o.r.expectSends(t, o.database)
}

// expectGrowth: each relay's width is 1 after its probe, and grows by one with each done message.
func (o *outage) expectGrowth(t *testing.T) {
	t.Helper()
	seen := o.r.seen()
	var most int
	for i, one := range seen[o.before:] {
		most = max(most, one.beside)
		if limit := len(o.relays) + one.before - o.before; one.beside > limit {
			t.Errorf("request %d after the outage is one of %d at once, when %d were done", i, one.beside, one.before-o.before)
			break
		}
	}
	if _, _, ever := o.r.figures(); ever > outageWidth {
		t.Errorf("%d requests at once, the width is %d", ever, outageWidth)
	}
	t.Logf("%d relays, after the outage: %d requests at once", len(o.relays), most)
}

// expectRate holds the rate, over the whole of the test. The receiver sees arrivals, and what waits on its way arrives in a
// heap: 50 ms of it are allowed on a machine that does nothing else, half a second on a busy one.
func (o *outage) expectRate(t *testing.T) {
	t.Helper()
	var times []time.Time
	for _, one := range o.r.seen() {
		times = append(times, one.at)
	}
	most, limit := inAnySecond(times), outageRate+len(o.relays)
	t.Logf("%d requests in %s, %d in one second", len(times), times[len(times)-1].Sub(times[0]).Round(time.Millisecond), most)
	if bounds() {
		limit += outageRate / 20
	} else {
		limit += outageRate / 2
	}
	if most > limit {
		t.Errorf("%d requests in one second, the rate is %d", most, outageRate)
	}
	back := times[o.before:]
	if least := time.Duration(len(back)-len(o.relays)-1) * time.Second / outageRate; back[len(back)-1].Sub(back[0]) < least*9/10 {
		t.Errorf("%d requests in %s, the rate is %d a second", len(back), back[len(back)-1].Sub(back[0]), outageRate)
	}
}

// expectSpread: what was under way when a breaker opened, by five failures, is free. Probes go to the least charged, from both
// ends of what waits, so that they are paid by many.
func (o *outage) expectSpread(t *testing.T) {
	t.Helper()
	probes := len(o.r.seen()) - o.n
	if paid, free := o.count(t, "SELECT sum(attempts) FROM outbox")-o.n, outageWidth-5*len(o.relays); paid > probes-free {
		t.Errorf("%d of %d sends in vain were charged, want %d less", paid, probes, free)
	}
	payers := o.count(t, "SELECT count(*) FROM outbox WHERE attempts > 1")
	t.Logf("%d sends in vain, paid by %d messages: %v", probes, payers, o.rows(t, "SELECT attempts, count(*) FROM outbox GROUP BY attempts ORDER BY attempts"))
	if 2*payers < probes {
		t.Errorf("%d sends in vain were paid by %d messages only", probes, payers)
	}
}
