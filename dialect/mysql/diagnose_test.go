package mysql

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/dialecttest"
)

func TestDiagnose(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		dialecttest.TestDiagnose(t, []dialecttest.Ailment{
			{Name: "another engine", SQL: "ALTER TABLE outbox_lease ENGINE = MyISAM", Check: "tables", As: dialect.VerdictFault, Says: "ENGINE = InnoDB"},
			{Name: "another collation", SQL: "ALTER TABLE outbox MODIFY type varchar(256) CHARACTER SET latin1 NOT NULL", Check: "tables", As: dialect.VerdictFault, Says: "column type of table outbox"},
		}, func(t *testing.T) dialecttest.Backend { return seen{s.newDatabase(t), t} })
	})
}

// A transaction that somebody holds is named by its thread, and what ends it too. So is one that was prepared and whose
// session is gone.
func TestDiagnose_HeldTransaction(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newDatabase(t)
		tx, err := d.db.Beginx()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		var thread int
		_, err = tx.Exec("INSERT INTO outbox (type) VALUES ('held')")
		if err := errors.Join(err, tx.Get(&thread, "SELECT CONNECTION_ID()")); err != nil {
			t.Fatal(err)
		}
		db := d.connect(t, dialect.Options{})
		eventually(t, "the transaction in the findings", func() bool {
			return dialecttest.HasFinding(db.Diagnose(t.Context(), 0), "transactions", dialect.VerdictWarning, fmt.Sprintf("KILL %d", thread))
		})
		var zone string
		if err := db.work.Get(&zone, "SELECT @@time_zone"); err != nil || zone != "+00:00" {
			t.Errorf("the session's time zone is %q after it, %v", zone, err)
		}
		d.prepared(t)
		eventually(t, "the prepared transaction in the findings", func() bool {
			return dialecttest.HasFinding(db.Diagnose(t.Context(), 0), "transactions", dialect.VerdictWarning, "XA ROLLBACK")
		})
	})
}

// prepared leaves a prepared transaction behind, whose session is gone, until the end of the test.
func (d testDatabase) prepared(t *testing.T) {
	t.Helper()
	session := d.open(t)
	session.SetMaxOpenConns(1)
	for _, statement := range []string{"XA START", "INSERT INTO outbox (type) VALUES ('prepared') --", "XA END", "XA PREPARE"} {
		if _, err := session.Exec(statement + " '" + d.schema + "'"); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { d.exec(t, "XA ROLLBACK '"+d.schema+"'") })
	session.SetMaxIdleConns(0)
}

// Messages that are deleted where they are inserted are seen by no relay, and by the server's statistics, where it has any.
func TestDiagnose_InsertAndDelete(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newDatabase(t)
		d.exec(t, "INSERT INTO outbox (type) VALUES ('a'); DELETE FROM outbox")
		as, says := dialect.VerdictWarning, "none was ever claimed"
		if s.name == "MariaDB" {
			as, says = dialect.VerdictOK, "performance_schema is off"
		}
		dialecttest.ExpectFinding(t, d.connect(t, dialect.Options{}).Diagnose(t.Context(), time.Hour), "messages", as, says)
	})
}

// A user that lacks a grant has it named, and one that may not look at the server is told what lets it.
func TestDiagnose_Roles(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.withRoles(t)
		relay := d.account(t, "relay").connect(t, dialect.Options{}).Diagnose(t.Context(), time.Hour)
		dialecttest.ExpectFinding(t, relay, "rights", dialect.VerdictOK, "")
		dialecttest.ExpectFinding(t, relay, "transactions", dialect.VerdictWarning, "GRANT PROCESS")
		dialecttest.ExpectFinding(t, relay, "replicas", dialect.VerdictWarning, "GRANT REPLICATION CLIENT")
		dialecttest.ExpectFinding(t, relay, "insert", dialect.VerdictOK, "rolled back")
		reader := d.account(t, "reader").connect(t, dialect.Options{}).Diagnose(t.Context(), time.Hour)
		dialecttest.ExpectFinding(t, reader, "rights", dialect.VerdictFault, "GRANT outbox_relay")
		dialecttest.ExpectFinding(t, reader, "insert", dialect.VerdictFault, "grant it the role")
	})
}

// The application's user is judged by what it may write, read and should not do.
func TestDiagnoseApplication(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.withRoles(t)
		application := d.account(t, "application").connect(t, dialect.Options{}).DiagnoseApplication(t.Context())
		dialecttest.ExpectFinding(t, application, "application", dialect.VerdictOK, "and nothing else")
		dialecttest.ExpectFinding(t, application, "insert", dialect.VerdictOK, "rolled back")
		reader := d.account(t, "reader").connect(t, dialect.Options{}).DiagnoseApplication(t.Context())
		dialecttest.ExpectFinding(t, reader, "application", dialect.VerdictFault, "INSERT (id, aggregatetype")
		dialecttest.ExpectFinding(t, d.connect(t, dialect.Options{}).DiagnoseApplication(t.Context()), "application", dialect.VerdictWarning, "UPDATE, DELETE")
	})
}

func TestFoundSettings(t *testing.T) {
	t.Parallel()
	good := map[string]string{
		"transaction_isolation": "REPEATABLE-READ", "time_zone": "SYSTEM", "system_time_zone": "UTC", "log_bin": "ON", "binlog_format": "ROW",
		"innodb_flush_log_at_trx_commit": "1",
	}
	for _, c := range []struct {
		name, value, check string
		as                 dialect.Verdict
		says               string
	}{
		{"", "", "session defaults", dialect.VerdictOK, "isolation REPEATABLE-READ, time zone UTC"},
		{"system_time_zone", "CET", "session defaults", dialect.VerdictOK, "never from NOW()"},
		{"", "", "binary log", dialect.VerdictOK, "on, of format ROW"},
		{"log_bin", "OFF", "binary log", dialect.VerdictOK, "off"},
		{"innodb_flush_log_at_trx_commit", "2", "durability", dialect.VerdictWarning, "innodb_flush_log_at_trx_commit = 1"},
		{"wsrep_on", "ON", "cluster", dialect.VerdictWarning, "same node"},
	} {
		variables := map[string]string{c.name: c.value}
		for name, value := range good {
			if name != c.name {
				variables[name] = value
			}
		}
		dialecttest.ExpectFinding(t, foundSettings(variables), c.check, c.as, c.says)
	}
}

func TestFoundReplicas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sources, followers int
		as                 dialect.Verdict
		says               string
	}{{0, 0, dialect.VerdictOK, "no replica"}, {0, 2, dialect.VerdictOK, "2 replicas"}, {1, 0, dialect.VerdictWarning, "name the primary"}} {
		dialecttest.ExpectFinding(t, []dialect.Finding{foundReplicas(c.sources, c.followers)}, "replicas", c.as, c.says)
	}
}
