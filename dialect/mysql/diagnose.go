package mysql

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// Diagnose looks at all that goes wrong in practice. Transactions that have been open for longer than older are named.
func (d *DB) Diagnose(ctx context.Context, older time.Duration) []dialect.Finding {
	status, err := d.CheckSchema(ctx)
	if err != nil {
		return []dialect.Finding{dialect.FoundError("server", err)}
	}
	findings := []dialect.Finding{
		dialect.Fine("server", "%s, and outboxd works on MySQL 8.0.17, MariaDB 10.6 and later", status.Server),
		dialect.FoundSchema(status),
	}
	checks := []dialect.Check{
		{Name: "server settings", Look: lookAtSettings},
		{Name: "clock", Look: lookAtClock},
		{Name: "transactions", Grant: "GRANT PROCESS ON *.* TO it", Look: func(ctx context.Context, _ sqlx.ExtContext) ([]dialect.Finding, error) {
			return d.lookAtHolds(ctx, older)
		}},
		{Name: "replicas", Grant: "GRANT REPLICATION CLIENT ON *.* TO it; on MariaDB SLAVE MONITOR", Look: lookAtReplicas},
	}
	if status.Usable() {
		checks = append(checks,
			dialect.Sound("rights", "this user may do all that a relay does", d.checkRights),
			dialect.Sound("tables", "their engine is InnoDB, and their columns, collations, constraints and defaults are those of the migrations", d.checkTables),
			dialect.Sound("indexes", "those of the migrations are there, and used", d.checkIndexes),
			dialect.Sound("claim", "its plan walks the index outbox_due, and sorts nothing", d.checkPlan),
			dialect.Check{Name: "leases", Look: d.lookAtLeases},
			dialect.Check{Name: "messages", Grant: "GRANT SELECT ON performance_schema.table_io_waits_summary_by_table TO it", Look: d.lookAtWritten},
		)
	}
	findings = append(findings, d.Examine(ctx, checks)...)
	if status.Usable() {
		findings = append(findings, d.TryWrite(ctx, "this user"))
	}
	return findings
}

func lookAtClock(ctx context.Context, q sqlx.ExtContext) ([]dialect.Finding, error) {
	var now dialect.Time
	asked := time.Now()
	if err := sqlx.GetContext(ctx, q, &now, `SELECT UTC_TIMESTAMP(6)`); err != nil {
		return nil, err
	}
	return []dialect.Finding{dialect.FoundClock(now.Time, asked, time.Now())}, nil
}

func (d *DB) lookAtLeases(ctx context.Context, q sqlx.ExtContext) ([]dialect.Finding, error) {
	query, err := render(`
SELECT relay, COUNT(*) AS leases, TIMESTAMPDIFF(MICROSECOND, MIN(renewed_at + INTERVAL length MICROSECOND), UTC_TIMESTAMP(6)) AS ended
FROM /*schema.*/outbox_lease WHERE renewed_at + INTERVAL length MICROSECOND < UTC_TIMESTAMP(6) GROUP BY relay ORDER BY relay`, d.schema)
	if err != nil {
		return nil, err
	}
	var ended []dialect.EndedLease
	err = sqlx.SelectContext(ctx, q, &ended, query)
	return dialect.FoundLeases(ended), err
}

// lookAtWritten needs the performance schema, which MariaDB has switched off by default.
func (d *DB) lookAtWritten(ctx context.Context, q sqlx.ExtContext) ([]dialect.Finding, error) {
	var counted []struct{ Inserted, Updated, Deleted int64 }
	err := sqlx.SelectContext(ctx, q, &counted, `SELECT COUNT_INSERT AS inserted, COUNT_UPDATE AS updated, COUNT_DELETE AS deleted
		FROM performance_schema.table_io_waits_summary_by_table WHERE OBJECT_SCHEMA = `+inDatabase+` AND OBJECT_NAME = 'outbox'`, d.schema)
	if err != nil {
		return nil, err
	}
	query, err := render(`SELECT NOT EXISTS (SELECT 1 FROM /*schema.*/outbox)`, d.schema)
	if err != nil {
		return nil, err
	}
	var w dialect.Written
	if err := sqlx.GetContext(ctx, q, &w.Empty, query); err != nil {
		return nil, err
	}
	if len(counted) == 0 {
		return []dialect.Finding{dialect.Fine("messages", "the server counts no INSERT and no DELETE, since its performance_schema is off")}, nil
	}
	w.Inserted, w.Updated, w.Deleted = counted[0].Inserted, counted[0].Updated, counted[0].Deleted
	return []dialect.Finding{dialect.FoundWritten(w)}, nil
}
