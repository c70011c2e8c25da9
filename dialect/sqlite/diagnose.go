package sqlite

import (
	"context"
	"os"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// Diagnose looks at all that goes wrong in practice. SQLite knows no roles, no replicas and nothing of the transactions of
// other processes: one that reads for longer shows only in a log that grows.
func (d *DB) Diagnose(ctx context.Context, _ time.Duration) []dialect.Finding {
	status, err := d.CheckSchema(ctx)
	if err != nil {
		return []dialect.Finding{dialect.FoundError("file", err)}
	}
	findings := []dialect.Finding{
		dialect.Fine("file", "%s, in this program; other programs bring their own, which must be 3.35 or later", status.Server),
		dialect.FoundSchema(status),
	}
	if !status.Usable() {
		return findings
	}
	findings = append(findings, d.Examine(ctx, []dialect.Check{
		dialect.Sound("tables", "their columns, constraints and defaults are those of the migrations", checkTables),
		dialect.Sound("journal", "the file is in WAL mode, in which readers and the writer do not wait for each other", checkMode),
		dialect.Sound("indexes", "those of the migrations are there", checkIndexes),
		dialect.Sound("claim", "its plan walks the index outbox_due", checkPlan),
		{Name: "clock", Look: lookAtClock},
		{Name: "leases", Look: lookAtLeases},
		{Name: "messages", Look: lookAtWritten},
	})...)
	return append(findings, foundLog(sizeOf(d.path+"-wal")), d.TryWrite(ctx, "this program"))
}

// DiagnoseApplication looks at the file that an application writes to, which may be another one.
func (d *DB) DiagnoseApplication(ctx context.Context) []dialect.Finding {
	status, err := d.CheckSchema(ctx)
	if err != nil {
		return []dialect.Finding{dialect.FoundError(dialect.CheckApplication, err)}
	}
	return []dialect.Finding{
		dialect.Fine(dialect.CheckApplication, "it writes to %s; SQLite has no roles", status.Place),
		d.TryWrite(ctx, "the application"),
	}
}

func lookAtClock(ctx context.Context, q sqlx.ExtContext) ([]dialect.Finding, error) {
	var now dialect.Time
	asked := time.Now()
	if err := sqlx.GetContext(ctx, q, &now, `SELECT `+sqlNow); err != nil {
		return nil, err
	}
	return []dialect.Finding{dialect.FoundClock(now.Time, asked, time.Now())}, nil
}

func lookAtLeases(ctx context.Context, q sqlx.ExtContext) ([]dialect.Finding, error) {
	var ended []dialect.EndedLease
	err := sqlx.SelectContext(ctx, q, &ended, `
SELECT relay, count(*) AS leases, `+sqlNow+` - min(renewed_at + length) AS ended
FROM outbox_lease WHERE renewed_at + length < `+sqlNow+` GROUP BY relay ORDER BY relay`)
	return dialect.FoundLeases(ended), err
}

// lookAtWritten tells what the sequence knows: SQLite counts neither changes nor deletions.
func lookAtWritten(ctx context.Context, q sqlx.ExtContext) ([]dialect.Finding, error) {
	var w struct {
		Empty    bool
		Inserted int64
	}
	err := sqlx.GetContext(ctx, q, &w, `
SELECT NOT EXISTS (SELECT 1 FROM outbox) AS empty, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'outbox'), 0) AS inserted`)
	words := "INSERTs so far: %d"
	if w.Empty && w.Inserted > 0 {
		words += ", and the table is empty: outboxd deleted them after their retention, or somebody else did"
	}
	return []dialect.Finding{dialect.Fine("messages", words, w.Inserted)}, err
}

// longLog is what a write-ahead log does not grow beyond as long as it can be copied into the file now and then.
const longLog = 256 << 20

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0 // Nobody has the file open.
	}
	return info.Size()
}

func foundLog(size int64) dialect.Finding {
	const check = "transactions"
	if size > longLog {
		return dialect.Warn(check, "find the program that has had the file open for reading, and end its transaction",
			"the write-ahead log has %d MiB: a transaction of some program reads for long, and nothing is copied into the file meanwhile", size>>20)
	}
	return dialect.Fine(check, "the write-ahead log has %d KiB, so no reader holds it back", size>>10)
}
