package relay_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// TestS05_HungDestinationHoldsOnlyItsOwn: what hangs at one relay or destination keeps nobody else waiting.
func TestS05_HungDestinationHoldsOnlyItsOwn(t *testing.T) {
	inWorld(t, func(w *world) {
		hang := sinkFunc(func(ctx context.Context, _ *relay.Message) relay.Outcome {
			<-ctx.Done()
			return relay.Unknown("timeout", "")
		})
		good := &recorder{}
		cfg := w.config("a", hang)
		cfg.Destinations = append(cfg.Destinations, relay.Destination{Name: "other", Sink: good, Width: testWidth})
		cfg.Routes = append([]relay.Route{{Match: "good", To: "other"}}, cfg.Routes...)
		w.insert(50, "hang")
		w.start(cfg)
		for range 20 {
			ids := w.insert(5, "good")
			w.untilAll(time.Second, ids, relay.Finished)
			time.Sleep(3 * time.Second)
		}
	})
}

// TestSinkIgnoresItsDeadline: the outcome is unknown soon after the deadline, the lease is not renewed for ever, and the
// message keeps its place, so that what hangs is bounded by the width.
func TestSinkIgnoresItsDeadline(t *testing.T) {
	inWorld(t, func(w *world) {
		forever := make(chan struct{})
		defer close(forever)
		var running atomic.Int64
		sink := sinkFunc(func(context.Context, *relay.Message) relay.Outcome {
			running.Add(1)
			<-forever
			return relay.Done("")
		})
		cfg := w.config("a", sink)
		cfg.Routes[0].Policy.Timeout = time.Second
		ids := w.insert(20, "x")
		w.start(cfg)
		w.until(10*time.Second, "the first outcomes", func() bool {
			return slices.ContainsFunc(ids, func(id string) bool { return w.table.Row(id).Attempts == 1 })
		})
		time.Sleep(10 * time.Minute)
		if n := running.Load(); n > testWidth {
			t.Errorf("%d sends hang, the width is %d", n, testWidth)
		}
		if leases := w.table.Leases(); len(leases) > 0 {
			t.Errorf("leases are still held: %+v", leases)
		}
	})
}

// TestBytes: no more bytes are held than the destination may hold, and a larger message goes alone.
func TestBytes(t *testing.T) {
	inWorld(t, func(w *world) {
		const limit = 1000
		var mu sync.Mutex
		held, most := 0, 0
		sink := sinkFunc(func(_ context.Context, m *relay.Message) relay.Outcome {
			mu.Lock()
			held += m.Bytes
			if m.Bytes > limit && held > m.Bytes {
				t.Errorf("%d bytes beside a message of %d", held-m.Bytes, m.Bytes)
			} else if m.Bytes <= limit {
				most = max(most, held)
			}
			mu.Unlock()
			time.Sleep(100 * time.Millisecond)
			mu.Lock()
			held -= m.Bytes
			mu.Unlock()
			return relay.Done("")
		})
		var seeds []relaytest.Seed
		for i := range 100 {
			size := 300
			if i%10 == 3 {
				size = 5000
			}
			seeds = append(seeds, relaytest.Seed{Type: "x", Payload: make([]byte, size)})
		}
		cfg := w.config("a", sink)
		cfg.Destinations[0].MaxBytes = limit
		ids := w.table.Insert(seeds...)
		w.start(cfg)
		w.untilAll(time.Minute, ids, relay.Finished)
		if most > limit {
			t.Errorf("%d bytes held, %d allowed", most, limit)
		}
	})
}

// TestLargeMessageGetsItsTurn: a message that must go alone is sent although small ones never cease.
func TestLargeMessageGetsItsTurn(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config("a", sinkFunc(func(context.Context, *relay.Message) relay.Outcome {
			time.Sleep(100 * time.Millisecond)
			return relay.Done("")
		}))
		cfg.Destinations[0].MaxBytes, cfg.Destinations[0].Width = 1000, 64
		w.start(cfg)
		var large []string
		w.until(10*time.Second, "the large message is sent", func() bool {
			w.insert(4, "small")
			if large == nil && len(w.table.Leases()) > 0 { // small ones are under way
				large = w.table.Insert(relaytest.Seed{Type: "large", Payload: make([]byte, 5000)})
			}
			return large != nil && w.all(large, relay.Finished)
		})
	})
}

// TestHungSendsHoldTheirBytes: a send that does not end keeps its bytes as it keeps its place, so that what hangs never
// holds more memory than the destination may.
func TestHungSendsHoldTheirBytes(t *testing.T) {
	inWorld(t, func(w *world) {
		forever := make(chan struct{})
		defer close(forever)
		sink := &recorder{answer: func(context.Context, *relay.Message) relay.Outcome {
			<-forever
			return relay.Done("")
		}}
		cfg := w.config("a", sink)
		cfg.Destinations[0].MaxBytes = 1000
		cfg.Routes[0].Policy.Timeout = time.Second
		w.table.Insert(slices.Repeat([]relaytest.Seed{{Type: "x", Payload: make([]byte, 900)}}, testWidth)...)
		w.start(cfg)
		time.Sleep(time.Minute)
		if n := sink.all(); n != 1 {
			t.Errorf("%d messages of 900 bytes hang, 1000 bytes are allowed", n)
		}
	})
}
