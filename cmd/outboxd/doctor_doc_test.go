package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ailing is the state of the outbox that docs/doctor.md has looked at: the claim's index is gone, pages are filled up, a relay
// died with messages in flight, two others were given different configurations, and some messages have no route.
const ailing = `
DROP INDEX outbox_due;
ALTER TABLE outbox RESET (fillfactor);
INSERT INTO outbox_lease (lease_id, relay, claimed_at, renewed_at, length, ids)
  SELECT n, 'shop-0', now() - interval '8 minutes', now() - interval '8 minutes', '30 s', '{}' FROM generate_series(1, 2) n;
INSERT INTO outbox_relay (name, host, version, config_hash, destinations) VALUES ('shop-1', 'a', 'devel', 'x', '{billing}'), ('shop-2', 'b', 'devel', 'y', '{billing}');
INSERT INTO outbox (aggregatetype, type) SELECT 'ordres', 'order_paid' FROM generate_series(1, 3)`

// ailingConfig is the configuration of the document's relay.
const ailingConfig = `
destinations: {billing: {webhook: {url: "https://billing.example/commands", dedupe: 6h}}}
routes: [{match: charges, to: billing, ordered: false}]
`

var (
	aNumber = regexp.MustCompile(`[0-9]+`)
	aUser   = regexp.MustCompile(`\(user .*?\)`)
	// ofServer are lines that are not the same on every server.
	ofServer = regexp.MustCompile(`(?m)^ok +(server|session defaults|clock|replicas|messages): .*\n`)
)

// TestDocumentedDoctor runs what docs/doctor.md shows, on a database in that state, and finds each of its lines: all but
// numbers, and how long something has been. Other tests use the server too, so there may be more transactions.
func TestDocumentedDoctor(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(doc), "```text\n$ outboxd doctor -c outboxd.yaml\n")
	shown, _, found := strings.Cut(shown, "```\n")
	if !found {
		t.Fatal("docs/doctor.md shows no output")
	}
	s := migrated(t)
	s.exec("SET search_path = " + s.schema + ";" + ailing + "; RESET search_path")
	held, err := s.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback() }()
	if _, err := held.ExecContext(t.Context(), "INSERT INTO "+s.schema+".outbox (type) VALUES ('held')"); err != nil {
		t.Fatal(err)
	}
	config := write(t, t.TempDir(), "outboxd.yaml", ailingConfig)
	plain := func(text string) []string {
		text = ofServer.ReplaceAllString(aUser.ReplaceAllString(strings.ReplaceAll(text, s.schema, "shop"), "(USER)"), "")
		return strings.Split(strings.TrimSpace(aNumber.ReplaceAllString(timeless(text), "N")), "\n")
	}
	code, stdout, stderr := cli(t, s.env(), "doctor", "-c", config, "--older", "0s")
	if code != exitUnexpected {
		t.Errorf("exit %d: %s", code, stderr)
	}
	got := plain(stdout + stderr)
	for _, line := range plain(shown) {
		if !slices.Contains(got, line) {
			t.Errorf("docs/doctor.md shows the line %q, and doctor says\n%s", line, stdout+stderr)
		}
	}
}
