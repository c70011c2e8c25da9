package integration

import (
	"os"
	"strings"
	"testing"
)

// TestDocumentedMessages runs the SQL of docs/messages.md, on each engine what stands under its heading: it writes one
// message for later, one with an id of its own, and one by a trigger.
func TestDocumentedMessages(t *testing.T) {
	onEngines(t, documentedMessages)
}

func documentedMessages(t *testing.T, e engine) {
	text, err := os.ReadFile("../docs/messages.md")
	if err != nil {
		t.Fatal(err)
	}
	heading := map[string]string{"postgres": "PostgreSQL", "mysql": "MySQL and MariaDB", "mariadb": "MySQL and MariaDB", "sqlite": "SQLite"}[e.name]
	_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/messages.md has nothing about %s", e.name)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	d := e.database(t)
	for _, b := range blocks(t, section) {
		for statement := range strings.SplitSeq(b.text, "\n\n") {
			d.exec(t, statement)
		}
	}
	d.expect(t, 1, "SELECT count(*) FROM outbox WHERE type = 'reminder' AND due_at > created_at")
	d.expect(t, 2, "SELECT count(*) FROM outbox WHERE type = 'order_paid' AND aggregateid = '42'")
}
