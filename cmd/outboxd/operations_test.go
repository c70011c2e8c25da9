package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	at, r1 := &dialect.Time{Time: time.Now()}, "r1"
	text := func(s string) *string { return &s }
	for want, o := range map[string]dialect.Operation{
		"waits for a relay": {},
		"under way, by r1":  {Applier: &r1},
		"under way, by r1 (left as they are: 2 locked)": {Applier: &r1, Detail: text(`{"skipped":{"locked":2}}`)},
		"applied by r1": {Applier: &r1, AppliedAt: at},
		"applied by r1 (left as they are: 1 late, 2 locked)": {Applier: &r1, AppliedAt: at, Detail: text(`{"skipped":{"locked":2,"late":1}}`)},
		"applied by r1; what it frees becomes due by 7":      {Applier: &r1, AppliedAt: at, Detail: text(`{"retry_now":"7"}`)},
		"refused: no operation":                              {Applier: &r1, AppliedAt: at, Detail: text(`{"refused":"no operation"}`)},
		"ended by hand":                                      {AppliedAt: at, Detail: text(`by ann`)},
	} {
		if got := outcomeOf(o); got != want {
			t.Errorf("%+v: %s, want %s", o, got, want)
		}
	}
}

// TestOperationsExplains holds that every skip has its words, in docs/operations.md too.
func TestOperationsExplains(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.exec("INSERT INTO " + s.schema + `.outbox_operation (op, filter, applied_at, affected, applier, detail) VALUES ('replay', '{"state":"failed"}', now(), 3, 'r1', '{"skipped":{"unknown":2,"done":1}}')`)
	id := s.text("SELECT id::text FROM outbox_operation")
	code, stdout, stderr := cli(t, s.env(), "operations", id)
	for _, want := range []string{
		"applied by r1 (left as they are: 1 done, 2 unknown)\n",
		"\n" + id + ": 2 unknown: an earlier send may have taken effect; look at the receiver, then ask again with --force\n",
		"\n" + id + ": 1 done: is in that state, and the operation is for another\n",
	} {
		if code != exitOK || stderr != "" || !strings.Contains(stdout, want) {
			t.Errorf("exit %d, %s, want %s in\n%s", code, stderr, want, stdout)
		}
	}
	if _, stdout, _ := cli(t, s.env(), "operations"); strings.Contains(stdout, "look at the receiver") {
		t.Errorf("a list explains: %s", stdout)
	}
	doc, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	other := leftBecause("done")
	for _, why := range []relay.Skip{
		relay.SkipLate, relay.SkipResolved, relay.SkipChanged, relay.SkipUnknown, relay.SkipDue, relay.SkipDelayed, relay.SkipLocked,
		relay.SkipRefused, relay.SkipUnmatched, relay.SkipNotPaused,
	} {
		if leftBecause(why) == other || !strings.Contains(string(doc), "`"+string(why)+"`") {
			t.Errorf("%s is not explained", why)
		}
	}
}
