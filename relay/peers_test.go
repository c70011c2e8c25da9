package relay

import (
	"log/slog"
	"testing"
	"time"
)

// TestPeers_LateBeat: a relay has joined when others can see it, not when it asked for that.
func TestPeers_LateBeat(t *testing.T) {
	t.Parallel()
	p := &peers{own: "b", seen: map[string]sighting{}}
	asked := time.Now()
	there := asked.Add(4 * time.Second)
	p.beat(asked, there, true)
	p.watch([]Peer{{Name: "a", Seen: "1", Destinations: []string{"d"}}}, there)
	if got := p.part(p.serving("d", there), there.Add(joinAfter-time.Second)); got.places(8) != 0 || got.standby(8) {
		t.Errorf("%+v, want nothing yet", got)
	}
	if got := p.part(p.serving("d", there), there.Add(joinAfter)); got.places(8) != 4 || got.rate(8) != 0.5 {
		t.Errorf("%+v, want half", got)
	}
}

// TestPeers_Gap: who was not seen to beat for as long as makes a relay dead joins anew.
func TestPeers_Gap(t *testing.T) {
	t.Parallel()
	for gap, places := range map[time.Duration]int{peerAlive - time.Second: 4, peerAlive: 0} {
		p := &peers{own: "b", seen: map[string]sighting{}}
		first := time.Now()
		p.beat(first, first, true)
		p.beat(first.Add(time.Minute), first.Add(time.Minute), true)
		joined := p.joined
		p.joined = first // long ago
		again := first.Add(time.Minute + gap)
		p.beat(again, again, true)
		p.watch([]Peer{{Name: "a", Seen: "1", Destinations: []string{"d"}}}, again)
		if got := p.part(p.serving("d", again), again.Add(time.Second)); got.places(8) != places || joined.Equal(first) {
			t.Errorf("after a gap of %s: %+v, want %d places", gap, got, places)
		}
	}
}

// TestRamp_WithoutAShare: a destination that has just come back is not knocked over because the share was lost meanwhile.
func TestRamp_WithoutAShare(t *testing.T) {
	t.Parallel()
	now := time.Now()
	cfg := Destination{Name: "d", Width: 8, Shared: true, Breaker: BreakerConfig{Run: 5, Pause: time.Second, Cap: time.Second}}
	d := newDestination(cfg, slog.New(slog.DiscardHandler), func() {})
	d.take(whole, now.Add(time.Hour))
	d.whole.trip(now)
	d.whole.probed(now, KindDone, "")
	d.reserve("x")
	d.take(part{}, now.Add(time.Hour))
	d.count(now, Claim{ID: "1", RoutingKey: "x"}, Done(""), nil, d.openings("x"))
	d.free("x", false)
	d.take(whole, now.Add(time.Hour))
	if all, _ := d.room("x"); all != 2 {
		t.Errorf("room for %d, want 2", all)
	}
}
