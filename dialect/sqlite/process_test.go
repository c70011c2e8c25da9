package sqlite

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// TestProcesses has six processes claim from one file while another inserts: no message is claimed twice, all are done, and
// neither the relays nor the application hear that the file is locked.
func TestProcesses(t *testing.T) {
	t.Parallel()
	length := 3 * time.Second
	if os.Getenv("OUTBOXD_TEST_FULL") == "1" {
		length = 30 * time.Second
	}
	f := newFile(t)
	said := make([][]string, 6)
	var group sync.WaitGroup
	for i := range said {
		_, next := f.child(t, "TestClaimer")
		group.Go(func() {
			for line := next(); line != ""; line = next() {
				said[i] = append(said[i], line)
			}
		})
	}
	inserted := 0
	for end := time.Now().Add(length); time.Now().Before(end); inserted += 20 {
		f.fill(t, orders, 20)
	}
	f.exec(t, "INSERT INTO outbox_control (kind, name) VALUES ('test', 'over')")
	group.Wait()
	seen := map[string]bool{}
	for i, lines := range said {
		last := len(lines) - 1
		if last < 0 || lines[last] != "end" {
			t.Fatalf("process %d broke off: %v", i, lines[max(last, 0):])
		}
		t.Logf("process %d claimed %d", i, last)
		for _, id := range lines[:last] {
			if seen[id] {
				t.Errorf("message %s was claimed twice", id)
			}
			seen[id] = true
		}
	}
	var done int
	if err := f.app.Get(&done, "SELECT count(*) FROM outbox WHERE state = 'done' AND attempts = 1"); err != nil {
		t.Fatal(err)
	}
	if len(seen) != inserted || done != inserted {
		t.Errorf("of %d messages %d were claimed and %d are done", inserted, len(seen), done)
	}
}

// TestClaimer is one of the processes of TestProcesses. It says what it claimed, and why it broke off.
func TestClaimer(t *testing.T) {
	path := os.Getenv(childFile)
	if path == "" {
		t.Skip("is run as a child of another test")
	}
	f := testFile{path: path, app: testFile{path: path}.connect(t)}
	s := f.relayStore(t, fmt.Sprint(os.Getpid()), 30*time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for over := 0; ; <-tick.C {
		if err := f.app.Get(&over, "SELECT count(*) FROM outbox_control WHERE kind = 'test'"); err != nil {
			t.Fatal(err)
		}
		n, err := claimAndSettle(t, s)
		for n > 0 && err == nil {
			n, err = claimAndSettle(t, s)
		}
		if err != nil {
			say(t, "error: "+err.Error())
			return
		}
		if over > 0 {
			say(t, "end")
			return
		}
	}
}

// claimAndSettle takes some messages through their life, and returns how many.
func claimAndSettle(t *testing.T, s *Store) (n int, err error) {
	claims, err := s.Claim(t.Context(), testLeaseID(), time.Minute, []relay.Quota{testQuota(20)})
	if err != nil || len(claims) == 0 {
		return 0, err
	}
	for _, c := range claims {
		say(t, c.ID)
	}
	lease := []relay.LeaseID{claims[0].Lease}
	lost, err := s.Renew(t.Context(), lease)
	if err != nil {
		return 0, err
	}
	back, err := s.Settle(t.Context(), settleDone(claims))
	if err == nil && len(lost)+len(back) > 0 {
		err = fmt.Errorf("%d leases and %d settlements were lost", len(lost), len(back))
	}
	if err != nil {
		return 0, err
	}
	return len(claims), s.Finish(t.Context(), lease)
}
