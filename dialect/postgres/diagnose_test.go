package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/dialecttest"
)

func TestDiagnose(t *testing.T) {
	t.Parallel()
	dialecttest.TestDiagnose(t, []dialecttest.Ailment{
		{Name: "pages filled up", SQL: "ALTER TABLE outbox RESET (fillfactor)", Check: "vacuum", As: dialect.VerdictWarning, Says: "fillfactor = 45"},
		{Name: "no autovacuum", SQL: "ALTER TABLE outbox SET (autovacuum_enabled = off)", Check: "vacuum", As: dialect.VerdictWarning, Says: "RESET (autovacuum_enabled)"},
		{Name: "a lazy autovacuum", SQL: "ALTER TABLE outbox SET (autovacuum_vacuum_scale_factor = 0.2)", Check: "vacuum", As: dialect.VerdictWarning, Says: "autovacuum_vacuum_scale_factor = 0.01"},
		{Name: "unlogged", SQL: "ALTER TABLE outbox SET UNLOGGED", Check: "tables", As: dialect.VerdictFault, Says: "SET LOGGED"},
	}, func(t *testing.T) dialecttest.Backend { return seen{newDatabase(t), t} })
}

// A transaction that somebody holds is named by the pid of its session, and what ends it too.
func TestDiagnose_HeldTransaction(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	tx, err := d.db.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	var pid int
	if err := tx.Get(&pid, "INSERT INTO outbox (type) VALUES ('held') RETURNING pg_backend_pid()"); err != nil {
		t.Fatal(err)
	}
	db := d.connect(t, dialect.Options{})
	eventually(t, "the transaction in the findings", func() bool {
		return dialecttest.HasFinding(db.Diagnose(t.Context(), 0), "transactions", dialect.VerdictWarning, fmt.Sprintf("pg_terminate_backend(%d)", pid))
	})
}

// Messages that are deleted where they are inserted are seen by no relay, and by the server's statistics.
func TestDiagnose_InsertAndDelete(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	db := d.connect(t, dialect.Options{})
	eventually(t, "the statistics", func() bool {
		d.exec(t, "INSERT INTO outbox (type) VALUES ('a'); DELETE FROM outbox") // it tells what it did at most once a second
		return dialecttest.HasFinding(db.Diagnose(t.Context(), time.Hour), "messages", dialect.VerdictWarning, "none was ever claimed")
	})
}

// A role that lacks a grant has it named, and one that may not see others' sessions is told so.
func TestDiagnose_Roles(t *testing.T) {
	t.Parallel()
	d := withRoles(t)
	d.exec(t, "REVOKE INSERT ON outbox_lease FROM outbox_relay")
	diagnose := func(role string) []dialect.Finding {
		as := d
		as.url = d.with(t, "role=outbox_"+role)
		return as.connect(t, dialect.Options{}).Diagnose(t.Context(), time.Hour)
	}
	relay := diagnose("relay")
	dialecttest.ExpectFinding(t, relay, "rights", dialect.VerdictFault, "INSERT on table outbox_lease")
	dialecttest.ExpectFinding(t, relay, "transactions", dialect.VerdictWarning, "pg_read_all_stats")
	dialecttest.ExpectFinding(t, relay, "insert", dialect.VerdictOK, "rolled back")
	dialecttest.ExpectFinding(t, diagnose("reader"), "insert", dialect.VerdictFault, "grant it what roles.sql gives")
}

// The application's role is judged by what it may write, read and should not do; and it is told where its own search_path
// leads elsewhere.
func TestDiagnoseApplication(t *testing.T) {
	t.Parallel()
	d := withRoles(t)
	diagnose := func(settings ...string) []dialect.Finding {
		as := d
		as.url = d.with(t, settings...)
		return as.connect(t, dialect.Options{}).DiagnoseApplication(t.Context())
	}
	path := "search_path=" + d.schema
	application := diagnose("role=outbox_application", path)
	dialecttest.ExpectFinding(t, application, "application", dialect.VerdictOK, "and nothing else")
	dialecttest.ExpectFinding(t, application, "insert", dialect.VerdictOK, "outbox_application")
	dialecttest.ExpectFinding(t, diagnose("role=outbox_application"), "application", dialect.VerdictWarning, "by the name outbox alone")
	reader := diagnose("role=outbox_reader", path)
	dialecttest.ExpectFinding(t, reader, "application", dialect.VerdictFault, "INSERT (id, aggregatetype")
	dialecttest.ExpectFinding(t, reader, "insert", dialect.VerdictFault, "grant it")
	dialecttest.ExpectFinding(t, diagnose(path), "application", dialect.VerdictWarning, "UPDATE, DELETE, TRUNCATE")
	d.exec(t, "REVOKE SELECT (result) ON outbox FROM outbox_application")
	dialecttest.ExpectFinding(t, diagnose("role=outbox_application", path), "application", dialect.VerdictWarning, "SELECT (result)")
}

// A server that cannot be reached is one finding, and no more.
func TestDiagnose_Away(t *testing.T) {
	t.Parallel()
	db, err := Open(dialect.Options{URL: "postgres://127.0.0.1:1/postgres?sslmode=disable"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if findings := db.Diagnose(t.Context(), 0); len(findings) != 1 || !dialecttest.HasFinding(findings, "server", dialect.VerdictFault, "does not answer") {
		t.Errorf("%+v", findings)
	}
}

func TestFoundSlots(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		slots []slot
		as    dialect.Verdict
		says  string
	}{
		{nil, dialect.VerdictOK, "none"},
		{[]slot{{"standby", true, 5}}, dialect.VerdictOK, "none"},
		{[]slot{{"gone", false, 5}}, dialect.VerdictWarning, `slot "gone" has no reader`},
		{[]slot{{"slow", true, 2_000_000}}, dialect.VerdictWarning, "hot_standby_feedback"},
	} {
		dialecttest.ExpectFinding(t, foundSlots(c.slots), "replication slots", c.as, c.says)
	}
}

func TestFoundVacuum(t *testing.T) {
	t.Parallel()
	good := []string{"fillfactor=45", "autovacuum_vacuum_scale_factor=0.01"}
	ago := dialect.Age(time.Minute)
	for _, c := range []struct {
		v    vacuumed
		as   dialect.Verdict
		says string
	}{
		{vacuumed{Global: "on", Counts: "on", Options: good}, dialect.VerdictOK, "not been through yet"},
		{vacuumed{Global: "on", Counts: "on", Options: good, Last: &ago, Dead: 7}, dialect.VerdictOK, "1m0s ago; 7 dead rows"},
		{vacuumed{Global: "off", Counts: "on", Options: good}, dialect.VerdictWarning, "autovacuum = on"},
		{vacuumed{Global: "on", Counts: "off", Options: good}, dialect.VerdictWarning, "track_counts = on"},
		{vacuumed{Global: "on", Counts: "on", Options: append(good, "autovacuum_enabled=false")}, dialect.VerdictWarning, "RESET"},
		{vacuumed{Global: "on", Counts: "on", Options: []string{"fillfactor=90"}}, dialect.VerdictWarning, "fillfactor = 45"},
		{vacuumed{Global: "on", Counts: "on"}, dialect.VerdictWarning, "scale_factor = 0.01"},
	} {
		dialecttest.ExpectFinding(t, foundVacuum(c.v), "vacuum", c.as, c.says)
	}
}
