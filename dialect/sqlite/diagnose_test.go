package sqlite

import (
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/dialecttest"
)

func TestDiagnose(t *testing.T) {
	t.Parallel()
	dialecttest.TestDiagnose(t, []dialecttest.Ailment{
		{Name: "a rollback journal", SQL: "PRAGMA journal_mode = DELETE", Check: "journal", As: dialect.VerdictFault, Says: "journal mode delete"},
		{Name: "all deleted", SQL: "INSERT INTO outbox (type) VALUES ('a'); DELETE FROM outbox", Check: "messages", As: dialect.VerdictOK, Says: "INSERTs so far: 1, and the table is empty"},
	}, func(t *testing.T) dialecttest.Backend { return seen{newFile(t), t} })
}

func TestDiagnoseApplication(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	findings := f.open(t, dialect.Options{}).DiagnoseApplication(t.Context())
	dialecttest.ExpectFinding(t, findings, "application", dialect.VerdictOK, "it writes to ")
	dialecttest.ExpectFinding(t, findings, "insert", dialect.VerdictOK, "rolled back")
	missing, err := Open(dialect.Options{URL: "sqlite:" + t.TempDir() + "/none.db"})
	if err != nil {
		t.Fatal(err)
	}
	defer missing.Close()
	dialecttest.ExpectFinding(t, missing.DiagnoseApplication(t.Context()), "application", dialect.VerdictFault, "outboxd migrate up")
	dialecttest.ExpectFinding(t, missing.Diagnose(t.Context(), time.Hour), "file", dialect.VerdictFault, "there is no file")
}

// A log that grows and grows tells of a reader that does not end.
func TestFoundLog(t *testing.T) {
	t.Parallel()
	dialecttest.ExpectFinding(t, []dialect.Finding{foundLog(3 << 20)}, "transactions", dialect.VerdictOK, "3072 KiB")
	dialecttest.ExpectFinding(t, []dialect.Finding{foundLog(1 << 30)}, "transactions", dialect.VerdictWarning, "1024 MiB")
}
