package relay

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// routed is a claimer of one destination, of which a test sets the known routing keys.
type routed struct {
	*claimer
	t *testing.T
}

func newRouted(t *testing.T) *routed {
	t.Helper()
	r, err := New(Config{
		Name: "a", Database: struct{ Database }{},
		Destinations: []Destination{{Name: "dest", Sink: struct{ Sink }{}, Width: 8, PerKey: true}},
		Routes:       []Route{{Match: "named", To: "dest"}, {Match: "order*", To: "dest"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &routed{&claimer{Relay: r}, t}
}

// route routes, and demands these lanes, made anew or left as they were.
func (r *routed) route(anew bool, want ...string) {
	r.t.Helper()
	const mark = "a mark that lanes made anew do not have"
	if r.lanes != nil {
		r.lanes[mark] = &lane{}
	}
	r.claimer.route()
	if left := r.lanes[mark] != nil; left == anew {
		r.t.Errorf("lanes made anew: %t, want %t", !left, anew)
	}
	delete(r.lanes, mark)
	if got := slices.Sorted(maps.Keys(r.lanes)); !slices.Equal(got, want) {
		r.t.Errorf("lanes %q, want %q", got, want)
	}
}

// TestRoute_OnlyWhenKeysChange: lanes are made anew when a routing key comes or goes and not otherwise, because each round
// of the claims asks; a lane that stays keeps what it knows.
func TestRoute_OnlyWhenKeysChange(t *testing.T) {
	t.Parallel()
	r := newRouted(t)
	now := time.Now()
	r.route(true, "named")
	r.route(false, "named")

	r.known.add([]string{"order_paid", "parcel"}, now)
	r.route(true, "named", "order_paid") // no route takes parcel
	paid := r.lanes["order_paid"]
	r.known.add([]string{"order_paid"}, now.Add(time.Minute))
	r.route(false, "named", "order_paid")

	r.known.add([]string{"order_sent"}, now.Add(11*time.Minute)) // and parcel goes: there are as many as before
	r.route(true, "named", "order_paid", "order_sent")
	if r.lanes["order_paid"] != paid {
		t.Error("a lane that stays was made anew")
	}
	r.known.add([]string{"order_sent"}, now.Add(12*time.Minute))
	r.route(true, "named", "order_sent")
	r.route(false, "named", "order_sent")
}

// TestRoute_ForgetsBreakers: with its routing key goes the breaker of a lane, so that a topic which nobody writes to any
// more does not make its cluster look open for ever.
func TestRoute_ForgetsBreakers(t *testing.T) {
	t.Parallel()
	r := newRouted(t)
	d, now := r.destinations[0], time.Now()
	r.known.add([]string{"order_paid"}, now)
	r.route(true, "named", "order_paid")
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		d.count(now, Claim{ID: id, RoutingKey: "order_paid"}, Unsent("not_found", "unknown topic"), nil, 0)
	}
	if s := r.Snapshot().Destinations[0].State; s != "open" {
		t.Fatalf("the destination is %s, want open", s)
	}
	r.known.add(nil, now.Add(11*time.Minute))
	r.route(true, "named")
	if s := r.Snapshot().Destinations[0].State; s != "ok" {
		t.Errorf("the destination is %s, want ok", s)
	}
}
