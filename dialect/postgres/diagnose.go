package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
)

// Diagnose looks at all that goes wrong in practice. Transactions that have been open for longer than older are named.
func (d *DB) Diagnose(ctx context.Context, older time.Duration) []dialect.Finding {
	status, err := d.CheckSchema(ctx)
	if err != nil {
		return []dialect.Finding{dialect.FoundError("server", err)}
	}
	findings := []dialect.Finding{
		dialect.Fine("server", "PostgreSQL %s, and outboxd works on 13 and later", status.Server),
		dialect.FoundSchema(status),
		d.foundSession(ctx),
	}
	checks := []dialect.Check{
		{Name: "clock", Look: lookAtClock},
		{Name: "transactions", Look: func(ctx context.Context, q sqlx.ExtContext) ([]dialect.Finding, error) {
			return lookAtHolds(ctx, q, older)
		}},
		{Name: "replication slots", Look: lookAtSlots},
		{Name: "replicas", Look: lookAtReplicas},
	}
	if status.Usable() {
		checks = append(checks,
			dialect.Sound("tables", "their columns, constraints and defaults are those of the migrations", d.checkTables),
			dialect.Sound("indexes", "those of the migrations are there, and valid", d.checkIndexes),
			dialect.Sound("claim", "its plan walks the index outbox_due", d.checkPlan),
			dialect.Sound("rights", "this role may do all that a relay does", d.checkRights),
			dialect.Check{Name: "vacuum", Look: d.lookAtVacuum},
			dialect.Check{Name: "leases", Look: d.lookAtLeases},
			dialect.Check{Name: "messages", Look: d.lookAtWritten},
		)
	}
	findings = append(findings, d.Examine(ctx, checks)...)
	if status.Usable() {
		findings = append(findings, d.TryWrite(ctx, "this role"))
	}
	return findings
}

// plain connects as an application does, with no setting of outboxd's own.
func (d *DB) plain() (*sqlx.DB, error) {
	connector, err := pq.NewConnectorConfig(d.bare.Clone())
	if err != nil {
		return nil, errURL
	}
	return sqlx.NewDb(sql.OpenDB(connector), "postgres"), nil
}

// foundSession tells what a session has by default that sets nothing. Of the server's time zone no column depends on.
func (d *DB) foundSession(ctx context.Context) dialect.Finding {
	const check = "session defaults"
	db, err := d.plain()
	if err != nil {
		return dialect.FoundError(check, err)
	}
	defer func() { _ = db.Close() }() // It has only looked.
	var isolation, zone, readOnly string
	row := db.QueryRowxContext(ctx, `SELECT current_setting('default_transaction_isolation'), current_setting('TimeZone'), current_setting('default_transaction_read_only')`)
	if err := row.Scan(&isolation, &zone, &readOnly); err != nil {
		return dialect.FoundError(check, wrap(check, err))
	}
	if readOnly == "on" {
		return dialect.Warn(check, "take default_transaction_read_only out of the settings of the role or the database", "transactions of this role are read-only by default")
	}
	return dialect.Fine(check, "isolation %s, time zone %s; relays set READ COMMITTED and UTC for themselves", isolation, zone)
}

func lookAtClock(ctx context.Context, q sqlx.ExtContext) ([]dialect.Finding, error) {
	var now dialect.Time
	asked := time.Now()
	if err := sqlx.GetContext(ctx, q, &now, `SELECT clock_timestamp()`); err != nil {
		return nil, err
	}
	return []dialect.Finding{dialect.FoundClock(now.Time, asked, time.Now())}, nil
}

func (d *DB) lookAtLeases(ctx context.Context, q sqlx.ExtContext) ([]dialect.Finding, error) {
	var ended []dialect.EndedLease
	err := d.selectInto(ctx, q, &ended, `
SELECT relay, count(*) AS leases, (extract(epoch FROM clock_timestamp() - min(renewed_at + length)) * 1000000)::bigint AS ended
FROM /*schema.*/outbox_lease WHERE renewed_at + length < clock_timestamp() GROUP BY relay ORDER BY relay`)
	return dialect.FoundLeases(ended), err
}

func (d *DB) lookAtWritten(ctx context.Context, q sqlx.ExtContext) ([]dialect.Finding, error) {
	var w dialect.Written
	query, err := render(`
SELECT NOT EXISTS (SELECT FROM /*schema.*/outbox), n_tup_ins, n_tup_upd, n_tup_del
FROM pg_stat_all_tables WHERE relid = to_regclass($1)`, d.schema)
	if err != nil {
		return nil, err
	}
	err = q.QueryRowxContext(ctx, query, d.name("outbox")).Scan(&w.Empty, &w.Inserted, &w.Updated, &w.Deleted)
	return []dialect.Finding{dialect.FoundWritten(w)}, err
}

// selectInto renders a query without arguments and reads its rows.
func (d *DB) selectInto(ctx context.Context, q sqlx.ExtContext, rows any, query string) error {
	query, err := render(query, d.schema)
	if err != nil {
		return fmt.Errorf("render: %w", err)
	}
	return sqlx.SelectContext(ctx, q, rows, query)
}
