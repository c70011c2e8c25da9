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
		_, next := f.child(t, "TestClaimer", "OUTBOXD_TEST_SQLITE_FOR="+length.String())
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
	group.Wait()
	seen := map[string]bool{}
	for i, lines := range said {
		t.Logf("process %d claimed %d", i, len(lines)-1)
		if len(lines) < 2 || lines[len(lines)-1] != "end" {
			t.Errorf("process %d claimed nothing or broke off: %v", i, lines[max(0, len(lines)-1):])
		}
		for _, id := range lines[:max(0, len(lines)-1)] {
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

// TestClaimer is one of the processes of TestProcesses.
func TestClaimer(t *testing.T) {
	path := os.Getenv(childFile)
	if path == "" {
		t.Skip("is run as a child of another test")
	}
	length, err := time.ParseDuration(os.Getenv("OUTBOXD_TEST_SQLITE_FOR"))
	if err != nil {
		t.Fatal(err)
	}
	s := testFile{path: path}.relayStore(t, fmt.Sprint(os.Getpid()), 30*time.Second)
	fail := func(err error) {
		if err != nil {
			say(t, "error: "+err.Error())
			t.FailNow()
		}
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(length); ; {
		claims, err := s.Claim(t.Context(), testLeaseID(), time.Minute, []relay.Quota{testQuota(20)})
		fail(err)
		if len(claims) == 0 {
			if time.Now().After(end.Add(time.Second)) {
				break
			}
			<-tick.C
			continue
		}
		for _, c := range claims {
			say(t, c.ID)
		}
		lease := []relay.LeaseID{claims[0].Lease}
		lost, err := s.Renew(t.Context(), lease)
		fail(err)
		back, err := s.Settle(t.Context(), settleDone(claims))
		fail(err)
		fail(s.Finish(t.Context(), lease))
		if len(lost) > 0 || len(back) > 0 {
			fail(fmt.Errorf("%d leases and %d messages were lost", len(lost), len(back)))
		}
	}
	say(t, "end")
}
