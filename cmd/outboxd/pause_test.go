package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
)

// TestPauseResume: nothing is sent while it is paused, and people see it.
func TestPauseResume(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	start(t, s.env(), "run")
	eventually(t, "the relay is alive", func() bool { return s.relays() == 1 })
	code, _, stderr := cli(t, s.env(), "pause", "out", "--indefinitely", "--note", "maintenance", "--yes", "--wait")
	if code != exitOK || stderr != "pause: destination:out\napplied\n" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	code, stdout, _ := cli(t, s.env(), "status")
	if code != exitOK || !strings.Contains(stdout, "! destination:out is paused by ") || !strings.Contains(stdout, "(maintenance) until outboxd resume\n") {
		t.Errorf("exit %d: %s", code, stdout)
	}
	var status struct{ Pauses []dialect.PauseStatus }
	_, stdout, _ = cli(t, s.env(), "status", "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &status); err != nil || len(status.Pauses) != 1 || status.Pauses[0].Target != "destination:out" || status.Pauses[0].Left != nil {
		t.Errorf("%v: %s", err, stdout)
	}
	if code, _, stderr := cli(t, s.env(), "resume", "out", "--yes", "--wait"); code != exitOK {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, stdout, _ := cli(t, s.env(), "status"); code != exitOK || strings.Contains(stdout, "paused") {
		t.Errorf("exit %d: %s", code, stdout)
	}
	s.insert(1, "orders", "order_paid")
	eventually(t, "it is sent", func() bool { return s.count("state = 'done'") == 1 })
	code, _, stderr = cli(t, s.env(), "resume", "out", "--yes", "--wait")
	if code != exitOK || !strings.Contains(stderr, "resume: destination:out was not paused\n") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// TestSteerWhatIsNotThere: a slip of the pen shows before it is believed to have stopped something.
func TestSteerWhatIsNotThere(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	start(t, s.env(), "run")
	eventually(t, "the relay is alive", func() bool { return s.relays() == 1 })
	for _, c := range []struct{ args, stderr string }{
		{"pause outt --for 1h --yes --wait", "no relay that is alive has a destination \"outt\"; they have out\npause: destination:outt\napplied\n"},
		{"resume out --yes --wait", "destination:out is not paused; paused now: destination:outt\nresume: destination:out\nresume: destination:out was not paused\n"},
		{"pause --type order_paid --for 1h --dry-run", "dry run: pause: type:order_paid\ndry run: would pause type:order_paid\n"},
		{"resume outt --yes --wait", "resume: destination:outt\napplied\n"},
		{"resume --everything --dry-run", "everything is not paused; paused now: nothing\ndry run: resume: everything\ndry run: resume: everything was not paused\n"},
	} {
		if code, _, stderr := cli(t, s.env(), strings.Fields(c.args)...); code != exitOK || stderr != c.stderr {
			t.Errorf("%s: exit %d: %s", c.args, code, stderr)
		}
	}
}
