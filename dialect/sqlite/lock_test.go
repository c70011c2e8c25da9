package sqlite

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/outbox"
	"github.com/outboxd/outboxd/relay"
)

// TestLongWriter has an application that holds the file's write lock: what reads goes on, what writes says that it is
// locked, and all of it works again afterwards.
func TestLongWriter(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	f.fill(t, orders, 20)
	s := f.relayStore(t, "a", time.Hour)
	if _, err := s.db.writer.ExecContext(t.Context(), "PRAGMA busy_timeout = 50"); err != nil { // waits no longer
		t.Fatal(err)
	}
	claims := claim(t, s, testQuota(10))
	leases := []relay.LeaseID{claims[0].Lease}
	unlock := f.lock(t)

	reads := map[string]func() error{
		"Load":        func() error { _, err := s.Load(t.Context(), claims); return err },
		"RoutingKeys": func() error { _, err := s.RoutingKeys(t.Context()); return err },
		"Waiting": func() error {
			_, err := s.Waiting(t.Context(), relay.Look{RoutingKeys: []string{orders}, Limit: 9})
			return err
		},
		"Watch":   func() error { _, _, err := s.Watch(t.Context()); return err },
		"Orphans": func() error { _, _, err := s.Orphans(t.Context(), ""); return err },
		"an empty claim": func() error {
			_, err := s.Claim(t.Context(), 1, time.Minute, []relay.Quota{{RoutingKey: "x", Limit: 1}})
			return err
		},
		"CheckSchema": func() error { _, err := s.db.CheckSchema(t.Context()); return err },
		"Status":      func() error { _, err := s.db.Status(t.Context()); return err },
	}
	for name, read := range reads {
		if err := read(); err != nil {
			t.Errorf("%s while another process writes: %v", name, err)
		}
	}
	writes := map[string]func() error{
		"Claim":      func() error { _, err := s.Claim(t.Context(), 1, time.Minute, []relay.Quota{testQuota(10)}); return err },
		"Renew":      func() error { _, err := s.Renew(t.Context(), leases); return err },
		"Finish":     func() error { return s.Finish(t.Context(), []relay.LeaseID{2}) },
		"Take":       func() error { _, _, err := s.Take(t.Context(), relay.Lease{ID: 2, Renewed: "1"}); return err },
		"Move":       func() error { _, _, err := s.Move(t.Context(), 2, "b"); return err },
		"Beat":       func() error { return s.Beat(t.Context(), relay.Beat{}) },
		"Leave":      func() error { return s.Leave(t.Context()) },
		"Write":      func() error { _, err := s.db.Write(t.Context(), outbox.Message{Type: "a"}); return err },
		"CheckShape": func() error { return s.db.CheckShape(t.Context()) },
	}
	for name, write := range writes {
		err := write()
		if dialect.ClassOf(err) != dialect.Locked || !strings.Contains(err.Error(), "another process writes to the database file") {
			t.Errorf("%s while another process writes: %v, want class %s", name, err, dialect.Locked)
		}
	}
	back, err := s.Settle(t.Context(), settleDone(claims))
	if err != nil || len(back) != len(claims) || back[0].Why != relay.Locked {
		t.Errorf("Settle while another process writes gave back %d, %v, want all as locked", len(back), err)
	}

	unlock()
	for name, write := range writes {
		if err := write(); err != nil {
			t.Errorf("%s after the other process: %v", name, err)
		}
	}
	if back, err := s.Settle(t.Context(), settleDone(claims)); err != nil || len(back) > 0 {
		t.Errorf("Settle after the other process gave back %v, %v", back, err)
	}
}

// TestWaitsForTheWriter has a writer that ends in time: nobody hears of it.
func TestWaitsForTheWriter(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	f.fill(t, orders, 20)
	s := f.relayStore(t, "a", time.Hour)
	unlock := f.lock(t)
	errs := make(chan error, 2)
	go func() {
		_, err := s.Claim(t.Context(), 1, time.Minute, []relay.Quota{testQuota(10)})
		errs <- err
	}()
	go func() { errs <- s.Beat(t.Context(), relay.Beat{}) }()
	eventually(t, "both to want to write", func() bool { return s.db.writer.Stats().WaitCount > 0 })
	unlock()
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestWaitEndsWithItsContext has a caller that gives up before the writer ends.
func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	f.fill(t, orders, 1)
	s := f.relayStore(t, "a", time.Hour)
	defer f.lock(t)()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Claim(ctx, 1, time.Minute, []relay.Quota{testQuota(1)}); dialect.ClassOf(err) != dialect.Cancelled {
		t.Errorf("Claim: %v, want class %s", err, dialect.Cancelled)
	}
}

// TestOwnWritersDoNotCollide claims, settles and renews in one process from several goroutines and relays.
func TestOwnWritersDoNotCollide(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	const messages = 500
	f.fill(t, orders, messages)
	stores := []*Store{f.relayStore(t, "a", time.Hour), f.relayStore(t, "b", time.Hour)}
	taken := make(chan int64, messages)
	var group sync.WaitGroup
	for _, s := range append(stores, stores...) {
		group.Go(func() {
			for {
				claims, err := s.Claim(t.Context(), testLeaseID(), time.Minute, []relay.Quota{testQuota(13)})
				if err != nil || len(claims) == 0 {
					if err != nil {
						t.Errorf("Claim: %v", err)
					}
					return
				}
				for _, c := range claims {
					taken <- c.Seq
				}
				if lost, err := s.Renew(t.Context(), []relay.LeaseID{claims[0].Lease}); err != nil || len(lost) > 0 {
					t.Errorf("Renew lost %v, %v", lost, err)
				}
				if back, err := s.Settle(t.Context(), settleDone(claims)); err != nil || len(back) > 0 {
					t.Errorf("Settle gave back %v, %v", back, err)
				}
			}
		})
	}
	group.Wait()
	close(taken)
	seen := map[int64]bool{}
	for seq := range taken {
		if seen[seq] {
			t.Fatalf("message %d was claimed twice", seq)
		}
		seen[seq] = true
	}
	if len(seen) != messages {
		t.Errorf("%d messages were claimed, want %d", len(seen), messages)
	}
}

// TestWrite writes what a person enqueues.
func TestWrite(t *testing.T) {
	t.Parallel()
	d := newFile(t).open(t, dialect.Options{})
	ids, err := d.Write(t.Context(), outbox.Message{Type: "a", Payload: []byte("né")}, outbox.Message{Type: "b", ID: "order-7"})
	if err != nil || len(ids) != 2 || ids[1] != "order-7" {
		t.Fatalf("Write gave %v, %v", ids, err)
	}
	if payload, err := d.Payload(t.Context(), ids[0]); err != nil || string(payload) != "né" {
		t.Errorf("the payload is %q, %v", payload, err)
	}
	if _, err := d.Write(t.Context(), outbox.Message{Type: "b", ID: "order-7"}); dialect.ClassOf(err) != dialect.Duplicate {
		t.Errorf("the id again: %v, want class %s", err, dialect.Duplicate)
	}
	var invalid *outbox.InvalidError
	if _, err := d.Write(t.Context(), outbox.Message{}); !errors.As(err, &invalid) {
		t.Errorf("no type: %v, want an InvalidError", err)
	}
}
