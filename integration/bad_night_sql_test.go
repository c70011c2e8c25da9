package integration

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
)

// bySQL works through the night with what any client of the database can do.
func bySQL(t *testing.T, n *badNight) {
	operator, corrector := n.session(t, n.operator), n.session(t, n.corrector)
	var misspelt *errorGroup
	eventually(t, patience, func() error { // some may be in flight while it looks
		for _, g := range operator.errors(t) {
			if g.version == "2" && g.state == "failed" {
				misspelt = &g
				return nil
			}
		}
		return fmt.Errorf("the audit query finds no version 2")
	})
	if misspelt.kind != nightOrders || misspelt.class != "http_5xx" {
		t.Fatalf("the audit query finds %+v", misspelt)
	}
	if len(operator.audit(t, "breakers")) == 0 {
		t.Error("no breaker is on record")
	}
	operator.ask(t, "pause", `{"type":"order_paid","schema_version":2,"indefinitely":true}`, "misspelt amount")
	n.expectPaused(t)

	const correction = "0190163d-9000-7000-8000-00000000c0de"
	corrector.exec(t, n.readCommitted())
	corrector.exec(t, `INSERT INTO outbox_correction (operation_id, id, payload, old_payload)
		SELECT '`+correction+`', id, replace(payload, '"amont":', '"amount":'), payload FROM outbox
		WHERE type = 'order_paid' AND schema_version = 2 AND state <> 'done' AND payload LIKE '%"amont":%'`)
	corrector.exec(t, `INSERT INTO outbox_operation (id, op, filter, note)
		VALUES ('`+correction+`', 'correct', '{"type":"order_paid","schema_version":2}', 'amount was misspelt')`)
	corrector.waitApplied(t)
	operator.ask(t, "resume", `{"type":"order_paid","schema_version":2}`, "amount is spelt right")

	n.restore()
	n.waitSent(t)
	operator.ask(t, "replay", `{"state":"failed","routing_key":"charge_order"}`, "the provider is back")
	n.waitSent(t)
	operator.ask(t, "resolve", `{"state":"failed","reason":"rejected"}`, "nobody wants newsletters any more")
	for _, name := range []string{"errors", "waiting"} {
		if rows := operator.audit(t, name); len(rows) > 0 {
			t.Errorf("the audit query %s finds %q", name, rows)
		}
	}
}

// readCommitted is what a session says before it reads many messages in order to write: at InnoDB's default the rows that
// INSERT … SELECT reads would be locked.
func (e engine) readCommitted() string {
	return "SET SESSION " + map[string]string{
		"postgres": "CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
		"mysql":    "TRANSACTION ISOLATION LEVEL READ COMMITTED",
	}[e.driver]
}

// atDatabase is a person at the database, with the rights of one of the roles.
type atDatabase struct{ *database }

func (n *badNight) session(t *testing.T, url string) atDatabase {
	t.Helper()
	dsn := url
	if n.driver == "mysql" {
		dsn = mysqlDSN(t, url, n.name, "")
	}
	db, err := sql.Open(n.driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	return atDatabase{&database{DB: db, engine: n.engine, name: n.name, url: url}}
}

// ask writes an operation and waits until it is applied.
func (s atDatabase) ask(t *testing.T, op, filter, note string) {
	t.Helper()
	s.exec(t, "INSERT INTO outbox_operation (op, filter, note) VALUES ('"+op+"', '"+filter+"', '"+note+"')")
	s.waitApplied(t)
}

func (s atDatabase) waitApplied(t *testing.T) {
	t.Helper()
	s.waitCount(t, patience, 0, "SELECT count(*) FROM outbox_operation WHERE applied_at IS NULL")
}

// audit runs one of the shipped files as it is.
func (s atDatabase) audit(t *testing.T, name string) [][]string {
	t.Helper()
	query, err := os.ReadFile("../sql/" + s.driver + "/audit/" + name + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	return s.rows(t, strings.TrimSuffix(strings.TrimSpace(string(query)), ";"))
}

// errorGroup is a row of the audit query errors.
type errorGroup struct{ state, kind, version, reason, class string }

func (s atDatabase) errors(t *testing.T) (groups []errorGroup) {
	t.Helper()
	for _, row := range s.audit(t, "errors") {
		groups = append(groups, errorGroup{row[0], row[2], row[3], row[4], row[5]})
	}
	return groups
}
