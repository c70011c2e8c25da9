package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestTwoOperatorsReplay: two operators replay the same failed messages, at a pace, and the relay that applies it is killed
// in the middle. Another goes on where it was: each message has one life more, and is sent once.
func TestTwoOperatorsReplay(t *testing.T) {
	onEngines(t, twoOperatorsReplay)
}

func twoOperatorsReplay(t *testing.T, e engine) {
	n := scale(5000)
	s := newSpine(t, e, 2*time.Second)
	s.insert(t, n, "order_paid")
	s.exec(t, `UPDATE outbox SET state = 'failed', due_at = {not due}, failed_at = {now}, attempts = 20, reason = 'exhausted',
		error_class = 'http_5xx'`)
	victim := s.applier(t, "victim")
	s.waitAlive(t, "victim")
	operations := s.replay(t, "--state", "failed", n) + ", " + s.replay(t, "--reason", "exhausted", n)
	begun := "SELECT count(*) FROM outbox_operation WHERE id IN (" + operations + ") AND affected > 0 AND applied_at IS NULL AND applier = 'victim'"
	s.waitCount(t, patience, 2, begun)
	victim.kill(t)
	s.expect(t, 2, begun)
	before := s.count(t, "SELECT count(*) FROM outbox WHERE replays = 1")
	s.expect(t, before, "SELECT sum(affected) FROM outbox_operation")

	s.applier(t, "survivor")
	s.waitCount(t, patience, 2, "SELECT count(*) FROM outbox_operation WHERE id IN ("+operations+") AND applied_at IS NOT NULL AND applier = 'survivor'")
	s.expect(t, n, "SELECT sum(affected) FROM outbox_operation")
	s.expect(t, n, "SELECT count(*) FROM outbox WHERE state = 'pending' AND replays = 1 AND attempts = 0 AND send_id IS NULL")

	s.relay(t, "sender", s.straight(t))
	s.waitDone(t, n)
	expectTimes(t, s.delivered(t), n, 1, 1)
	s.expect(t, n, "SELECT count(*) FROM outbox WHERE replays = 1 AND attempts = 1")
}

// applier starts a relay that applies operations, and has no route for any message.
func (s *spine) applier(t *testing.T, name string) *process {
	t.Helper()
	return startRelay(t, fmt.Sprintf(`
relay: {name: %s, lease: %s}
http: {listen: "off"}
destinations: {out: {stdout: {}}}
routes: [{match: nothing, to: out}]
`, name, s.lease), s.env())
}

// replay is an operator who replays what a filter fits, a tenth of n messages a second, and returns the id of the operation
// as SQL has it.
func (s *spine) replay(t *testing.T, flag, value string, n int) string {
	t.Helper()
	id, stderr, code := outboxd(t, s.env(), "replay", flag, value, "--rate", fmt.Sprint(n/10), "--note", "the receiver is mended", "--yes")
	if code != 0 || !strings.Contains(stderr, "replay: ") {
		t.Fatalf("outboxd replay: exit code %d\n%s", code, stderr)
	}
	return "'" + strings.TrimSpace(id) + "'"
}

// TestDocumentedOperations runs the SQL of docs/operations.md: no relay refuses any of it.
func TestDocumentedOperations(t *testing.T) {
	onEngines(t, documentedOperations)
}

func documentedOperations(t *testing.T, e engine) {
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	s := newSpine(t, e, 2*time.Second)
	asked := 0
	for _, block := range strings.Split(string(text), "```sql\n")[1:] {
		block, _, _ = strings.Cut(block, "```\n")
		for statement := range strings.SplitSeq(strings.TrimSpace(block), ";\n") {
			s.exec(t, strings.TrimSuffix(statement, ";"))
			asked += strings.Count(statement, "INSERT INTO outbox_operation ")
		}
	}
	if asked < 9 {
		t.Fatalf("docs/operations.md has %d operations", asked)
	}
	s.applier(t, "applier")
	s.waitCount(t, patience, 0, "SELECT count(*) FROM outbox_operation WHERE applied_at IS NULL")
	for _, row := range s.rows(t, "SELECT op, filter, coalesce(detail, '') FROM outbox_operation") {
		if strings.Contains(row[2], "refused") {
			t.Errorf("%s %s: %s", row[0], row[1], row[2])
		}
	}
}
