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

// crashable is a Database that is gone for its relay once crashed: the process behind it was killed.
type crashable struct {
	relay.Database
	mu    sync.Mutex
	fault func(call string) error
}

func (d *crashable) set(fault func(call string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = fault
}

func (d *crashable) check(call string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault == nil {
		return nil
	}
	return d.fault(call)
}

func (d *crashable) Claim(ctx context.Context, l relay.LeaseID, length time.Duration, q []relay.Quota) ([]relay.Claim, error) {
	if err := d.check("claim"); err != nil {
		return nil, err
	}
	return d.Database.Claim(ctx, l, length, q)
}

func (d *crashable) Load(ctx context.Context, c []relay.Claim) ([]relay.Message, error) {
	if err := d.check("load"); err != nil {
		return nil, err
	}
	return d.Database.Load(ctx, c)
}

func (d *crashable) Settle(ctx context.Context, s []relay.Settlement) ([]relay.Unsettled, error) {
	if err := d.check("settle"); err != nil {
		return nil, err
	}
	return d.Database.Settle(ctx, s)
}

func (d *crashable) Renew(ctx context.Context, l []relay.LeaseID) ([]relay.LeaseID, error) {
	if err := d.check("renew"); err != nil {
		return nil, err
	}
	return d.Database.Renew(ctx, l)
}

func (d *crashable) Finish(ctx context.Context, l []relay.LeaseID) error {
	if err := d.check("finish"); err != nil {
		return err
	}
	return d.Database.Finish(ctx, l)
}

func (d *crashable) Watch(ctx context.Context) (string, []relay.Lease, error) {
	if err := d.check("watch"); err != nil {
		return "", nil, err
	}
	return d.Database.Watch(ctx)
}

func (d *crashable) Waiting(ctx context.Context, l relay.Look) ([]relay.Waiting, error) {
	if err := d.check("waiting"); err != nil {
		return nil, err
	}
	return d.Database.Waiting(ctx, l)
}

func (d *crashable) RoutingKeys(ctx context.Context) ([]string, error) {
	if err := d.check("routing_keys"); err != nil {
		return nil, err
	}
	return d.Database.RoutingKeys(ctx)
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
	w.run.Wait()
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
