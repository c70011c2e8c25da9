package integration

import (
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// operation is what an INSERT of docs/operations.md asks for.
var operation = regexp.MustCompile(`VALUES \(.*'(pause|correct|resume|replay|resolve)'`)

// bySQL works through the night with the statements of docs/operations.md, and the shipped audit queries.
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
	for _, b := range n.page(t) {
		if b.language != "sql" {
			continue
		}
		who, op := operator, operation.FindStringSubmatch(b.text)[1]
		if op == "correct" {
			who = corrector
			who.exec(t, n.readCommitted())
		}
		n.before(t, op)
		for statement := range strings.SplitSeq(strings.TrimSpace(b.text), ";\n") {
			who.exec(t, strings.TrimSuffix(statement, ";"))
		}
		who.waitCount(t, patience, 0, "SELECT count(*) FROM outbox_operation WHERE applied_at IS NULL")
		n.after(t, op)
	}
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
