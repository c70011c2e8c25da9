package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// documented are the state in which docs/operations.md asks where its messages are: one that waits for its next try while
// somebody paused its destination, and one that was rejected in its second life.
const documented = `
INSERT INTO outbox (id, aggregatetype, type, due_at, created_at, lease_id, attempts, error_class, last_error)
  SELECT '0190163d-8694-739b-aea5-966c26f8ad91', 'charges', 'charge_order', now + 38000000, now - 30000000, 7, 2, 'http_5xx', 'HTTP 503 Service Unavailable' FROM clock;
INSERT INTO outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome, status, error_class, error)
  SELECT '0190163d-8694-739b-aea5-966c26f8ad91', 0, n, 'shop-1', now - 9000000 * (3 - n), 312000, 'retry', 503, 'http_5xx', 'HTTP 503 Service Unavailable'
  FROM clock, (SELECT 1 AS n UNION ALL SELECT 2) ORDER BY n;
INSERT INTO outbox (id, aggregatetype, type, state, due_at, created_at, failed_at, lease_id, attempts, replays, send_id, reason, error_class, last_error)
  SELECT '0190163d-8694-739b-aea5-966c26f8ad92', 'charges', 'charge_order', 'failed', NULL, now - 600000000, now - 60000000, 7, 1, 1,
  'f81d4fae-7dec-41d0-8765-00a0c91e6bf6', 'rejected', 'http_4xx', 'HTTP 422 Unprocessable Entity' FROM clock;
INSERT INTO outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome, status, error_class, error, answer)
  SELECT '0190163d-8694-739b-aea5-966c26f8ad92', life, attempt, 'shop-1', now - ago, 84000, outcome, status, class, words, answer FROM clock, (
    SELECT 0 AS life, 1 AS attempt, 599000000 AS ago, 'retry' AS outcome, 503 AS status, 'http_5xx' AS class, 'HTTP 503 Service Unavailable' AS words, NULL AS answer
    UNION ALL SELECT 0, 2, 597000000, 'fail', 422, 'http_4xx', 'HTTP 422 Unprocessable Entity', '{"error":"unknown currency"}'
    UNION ALL SELECT 1, 1, 60084000, 'fail', 422, 'http_4xx', 'HTTP 422 Unprocessable Entity', '{"error":"unknown currency"}') ORDER BY ago DESC;
INSERT INTO outbox_operation (op, filter, actor, note, applied_at, affected)
  SELECT 'replay', '{"ids":["0190163d-8694-739b-aea5-966c26f8ad92"]}', 'ann@desk', 'currency added', now - 61000000, 1 FROM clock;
INSERT INTO outbox_relay (name, host, version, config_hash, destinations) VALUES ('shop-1', 'shop-1', '1', 'x', '["billing"]');
INSERT INTO outbox_control (kind, name, value) VALUES ('pause', 'destination:billing', '{"actor":"bob@desk","note":"upgrade"}');`

// documentedConfig is the configuration of the document's relay.
const documentedConfig = `
destinations: {billing: {webhook: {url: "https://billing.example/commands", dedupe: 24h}}}
routes: [{match: charges, to: billing, ordered: false, budget: 8}]
`

// TestDocumentedWhy runs the commands that docs/operations.md shows, and compares what they print: all but times.
func TestDocumentedWhy(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	l := newFile(t)
	l.exec("CREATE VIEW clock AS SELECT CAST(julianday('now') * 86400000 - 210866760000000 AS INTEGER) * 1000 AS now")
	l.exec(documented)
	config := write(t, t.TempDir(), "outboxd.yaml", documentedConfig)
	section, _, _ := strings.Cut(string(doc), "\n## The bad night\n") // which has a test of its own
	shown := strings.Split(section, "```text\n$ outboxd ")[1:]
	if len(shown) != 3 {
		t.Fatalf("docs/operations.md shows %d commands", len(shown))
	}
	for _, block := range shown {
		block, _, _ = strings.Cut(block, "```\n")
		command, want, _ := strings.Cut(block, "\n")
		code, got, stderr := cli(t, l.env, append(strings.Fields(command), "-c", config)...)
		if _, timeline, found := strings.Cut(got, "\n\n"); found {
			got = timeline
		}
		if code != exitOK || stderr != "" || timeless(got) != timeless(want) {
			t.Errorf("outboxd %s: exit %d: %s\n%s\nwhere docs/operations.md has\n%s", command, code, stderr, got, want)
		}
	}
}

var (
	aTime  = regexp.MustCompile(`20\d\d-\d\d-\d\dT[0-9:.]+Z`)
	aSpan  = regexp.MustCompile(`\b\d+(\.\d+)?(ms|s|m|h)([0-9.ms]*)\b`)
	blanks = regexp.MustCompile(` +`)
)

// timeless is a text with words in place of times and lengths of time.
func timeless(text string) string {
	text = aSpan.ReplaceAllString(aTime.ReplaceAllString(text, "TIME"), "SPAN")
	return blanks.ReplaceAllString(text, " ")
}
