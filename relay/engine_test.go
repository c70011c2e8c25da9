package relay_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sinkFunc is a destination that is one function.
type sinkFunc func(ctx context.Context, m *relay.Message) relay.Outcome

func (f sinkFunc) Send(ctx context.Context, m *relay.Message) relay.Outcome { return f(ctx, m) }
func (sinkFunc) Close(context.Context) error                                { return nil }

// recorder counts the sends of each message and answers by a function.
type recorder struct {
	answer func(ctx context.Context, m *relay.Message) relay.Outcome

	mu    sync.Mutex
	sends map[string]int
	total int
}

func (s *recorder) Send(ctx context.Context, m *relay.Message) relay.Outcome {
	s.mu.Lock()
	if s.sends == nil {
		s.sends = map[string]int{}
	}
	s.sends[m.WireKey]++
	s.total++
	s.mu.Unlock()
	if s.answer == nil {
		return relay.Done("")
	}
	return s.answer(ctx, m)
}

func (s *recorder) Close(context.Context) error { return nil }

func (s *recorder) all() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

func (s *recorder) of(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sends[id]
}

// crashable is a Database whose calls fail as long as a fault is set: it is away, or the process before it was killed.
type crashable struct {
	*relaytest.Faulty
	mu    sync.Mutex
	fault func(call relaytest.Call) error
}

func newCrashable(db relay.Database) *crashable {
	c := &crashable{}
	c.Faulty = &relaytest.Faulty{Next: db, BeforeFunc: func(_ context.Context, call relaytest.Call) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.fault == nil {
			return nil
		}
		return c.fault(call)
	}}
	return c
}

// set sets or ends the fault, which is asked under a lock and may keep state.
func (c *crashable) set(fault func(call relaytest.Call) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = fault
}

// faulty lets a test fail or delay the calls of a relay's database.
func faulty(cfg *relay.Config, before func(ctx context.Context, call relaytest.Call) error) {
	cfg.Database = &relaytest.Faulty{Next: cfg.Database, BeforeFunc: before}
}

// world is one table and the relays on it, under a fake clock.
type world struct {
	t     *testing.T
	table *relaytest.Table
	run   sync.WaitGroup
	ctx   context.Context
	stop  context.CancelFunc
}

// inWorld runs a test under a fake clock and stops its relays at the end.
func inWorld(t *testing.T, test func(w *world)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, table: relaytest.NewTable()}
		w.ctx, w.stop = context.WithCancel(context.Background())
		defer w.stopAll() // also where the test gave up: no goroutine may outlive it
		test(w)
	})
}

func (w *world) stopAll() {
	w.stop()
	if !w.ended(time.Hour) {
		panic(w.t.Name() + ": a relay has not ended an hour after its stop") // a fake clock would run for ever
	}
}

// ended tells whether all relays end within a time.
func (w *world) ended(limit time.Duration) bool {
	ended := make(chan struct{})
	go func() {
		w.run.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-time.After(limit):
		return false
	}
}

// untilEnded fails the test where the relays have not ended, by themselves or after their stop, within the time.
func (w *world) untilEnded(limit time.Duration) {
	w.t.Helper()
	if !w.ended(limit) {
		w.t.Fatalf("not ended within %s", limit)
	}
}

const (
	testLease = 2 * time.Second
	testWidth = 8
)

// config is a relay of one destination that takes all routing keys.
func (w *world) config(name string, sink relay.Sink) relay.Config {
	return relay.Config{
		Name: name, Database: w.table.Store(name), Lease: testLease, StopTimeout: 5 * time.Second,
		Log:          slog.New(slog.NewTextHandler(w.t.Output(), nil)),
		Destinations: []relay.Destination{{Name: "dest", Sink: sink, Width: testWidth}},
		Routes:       []relay.Route{{Match: "*", To: "dest", Policy: relay.Policy{Budget: 3}}},
	}
}

// start runs a relay until stop is called or the test ends.
func (w *world) start(cfg relay.Config) (stop context.CancelFunc) {
	w.t.Helper()
	r, err := relay.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.ctx)
	w.run.Go(func() { r.Run(ctx) })
	return stop
}

// dead claims messages under a lease that nobody renews.
func (w *world) dead(lease relay.LeaseID, quota relay.Quota) {
	w.t.Helper()
	if _, err := w.table.Store("dead").Claim(w.t.Context(), lease, testLease, []relay.Quota{quota}); err != nil {
		w.t.Fatal(err)
	}
}

// insert adds n due messages of one type.
func (w *world) insert(n int, typ string) []string {
	seeds := make([]relaytest.Seed, n)
	for i := range seeds {
		seeds[i] = relaytest.Seed{Type: typ, Payload: fmt.Appendf(nil, `{"n":%d}`, i)}
	}
	return w.table.Insert(seeds...)
}

// all tells whether every message is in the state.
func (w *world) all(ids []string, state relay.State) bool {
	for _, id := range ids {
		if w.table.Row(id).State != state {
			return false
		}
	}
	return true
}

// until lets the fake clock run until a condition holds, and fails the test where it does not within the time.
func (w *world) until(limit time.Duration, what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

func (w *world) untilAll(limit time.Duration, ids []string, state relay.State) {
	w.t.Helper()
	w.until(limit, "all messages "+string(state), func() bool { return w.all(ids, state) })
}
