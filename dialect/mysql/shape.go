package mysql

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// columns are the names, types and collations that a relay relies on, table by table; text stands for the collation of
// all texts. More columns may stand beside them.
func columns() map[string]string {
	return map[string]string{
		"outbox": `id varchar(37) ascii_bin, aggregatetype varchar(256) text, aggregateid varchar(256) text,
			type varchar(256) text, payload longblob, content_type varchar(256) text, schema_version int,
			headers mediumtext text, traceparent varchar(256) text, routing_key varchar(256) text, seq bigint,
			created_at datetime(6), expires_at datetime(6), due_at datetime(6), lease_id bigint, attempts int, lapses int,
			replays int, state char(9) ascii_bin, unknown_since datetime(6), send_id char(36) ascii_bin,
			done_at datetime(6), failed_at datetime(6), resolved_at datetime(6), reason varchar(16) ascii_bin,
			error_class varchar(32) text, last_error text text, result varchar(255) text`,
		"outbox_lease": `lease_id bigint, relay varchar(255) text, claimed_at datetime(6), renewed_at datetime(6),
			length bigint, ids mediumtext ascii_bin`,
		"outbox_attempt": `attempt_id bigint, message_id varchar(36) ascii_bin, life int, attempt int,
			relay varchar(255) text, started_at datetime(6), duration bigint, outcome varchar(16) ascii_bin, status int,
			error_class varchar(32) text, error text text, answer text text`,
		"outbox_operation": `id varchar(37) ascii_bin, op varchar(16) ascii_bin, filter mediumtext text,
			actor varchar(255) text, note text text, dry_run tinyint, requested_at datetime(6), applied_at datetime(6),
			affected bigint, detail mediumtext text, progress mediumtext text, applier varchar(255) text`,
		"outbox_correction": `operation_id varchar(37) ascii_bin, id varchar(37) ascii_bin, payload longblob,
			old_payload longblob`,
		"outbox_control": `kind varchar(32) text, name varchar(400) text, owner varchar(255) text, value mediumtext text,
			epoch bigint, updated_at datetime(6)`,
		"outbox_relay": `name varchar(255) text, host varchar(255) text, version varchar(255) text,
			config_hash varchar(255) text, destinations mediumtext text, instance varchar(255) text, started_at datetime(6), seen_at datetime(6)`,
		"outbox_version": `version int, admits int, applied_at datetime(6)`,
	}
}

// indexes are those of outbox without which a claim, a settlement or an audit query is slow.
func indexes() map[string]string {
	return map[string]string{
		"PRIMARY":           "unique (seq)",
		"outbox_id_key":     "unique (id)",
		"outbox_due":        "(routing_key, lapses, due_at, seq)",
		"outbox_failed":     "(failed_at)",
		"outbox_unresolved": "(resolved_at, failed_at)",
	}
}

// checks are the constraints that keep rows possible.
func checks() []string {
	return []string{
		"outbox_aggregatetype_check", "outbox_content_type_check", "outbox_counters_check", "outbox_done_check",
		"outbox_due_check", "outbox_failed_check", "outbox_headers_check", "outbox_id_check", "outbox_length_check",
		"outbox_reason_check", "outbox_resolved_check", "outbox_schema_version_check", "outbox_state_check",
		"outbox_times_check", "outbox_type_check",
	}
}

// CheckShape compares the tables with those that the migrations make, by engines, names, types, collations, indexes and
// constraints, asks whether the user may do what a relay does, and looks at the plan of the claim. The error names the
// first difference and the mend (errors.Is ErrShape or ErrRights), or is a database fault. Ask CheckSchema first.
func (d *DB) CheckShape(ctx context.Context) error {
	return wrap("check the tables", d.read(ctx, func(q sqlx.ExtContext) error {
		// Rights first, since a list of tables leaves out what the user has no rights on.
		for _, check := range []func(context.Context, sqlx.ExtContext) error{d.checkRights, d.checkTables, d.checkIndexes, d.checkPlan} {
			if err := check(ctx, q); err != nil {
				return err
			}
		}
		return nil
	}))
}

// checkTables looks at all that is not the indexes.
func (d *DB) checkTables(ctx context.Context, q sqlx.ExtContext) error {
	s, err := checkServer(ctx, q)
	if err != nil {
		return err
	}
	for _, table := range slices.Sorted(maps.Keys(columns())) {
		if err := d.checkColumns(ctx, q, s, table); err != nil {
			return err
		}
		if err := d.checkEngine(ctx, q, table); err != nil {
			return err
		}
	}
	return d.checkConstraints(ctx, q)
}

func (d *DB) checkColumns(ctx context.Context, q sqlx.QueryerContext, s server, table string) error {
	var found []struct{ Name, Type string }
	err := sqlx.SelectContext(ctx, q, &found, `SELECT COLUMN_NAME AS name, CONCAT(DATA_TYPE,
			IF(DATA_TYPE IN ('char', 'varchar'), CONCAT('(', CHARACTER_MAXIMUM_LENGTH, ')'), ''),
			COALESCE(CONCAT('(', DATETIME_PRECISION, ')'), ''), COALESCE(CONCAT(' ', COLLATION_NAME), '')) AS type
		FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = `+inDatabase+` AND TABLE_NAME = ?`, d.schema, table)
	if err != nil {
		return err
	}
	types := map[string]string{}
	for _, c := range found {
		types[c.Name] = c.Type
	}
	for c := range strings.SplitSeq(columns()[table], ",") {
		name, want, _ := strings.Cut(strings.TrimSpace(c), " ")
		if base, ok := strings.CutSuffix(want, " text"); ok {
			want = base + " " + s.collation()
		}
		switch have := types[name]; {
		case len(found) == 0:
			return refuseMissing(table)
		case have == "":
			return dialect.Refuse(dialect.ErrShape, "table %s has no column %s, so it is not the table that outboxd makes: name another database for outboxd", table, name)
		case have != want:
			return dialect.Refuse(dialect.ErrShape, "column %s of table %s is %s and must be %s: change it back, or name another database for outboxd", name, table, have, want)
		}
	}
	return nil
}

// checkEngine refuses what has no transactions and no locks of rows.
func (d *DB) checkEngine(ctx context.Context, q sqlx.QueryerContext, table string) error {
	var engine string
	err := sqlx.GetContext(ctx, q, &engine, `SELECT COALESCE(ENGINE, TABLE_TYPE) FROM information_schema.TABLES
		WHERE TABLE_SCHEMA = `+inDatabase+` AND TABLE_NAME = ?`, d.schema, table)
	if err == nil && engine != "InnoDB" {
		return dialect.Refuse(dialect.ErrShape, "table %s is %s and must be of the engine InnoDB: run ALTER TABLE %s ENGINE = InnoDB", table, engine, table)
	}
	return err
}

// checkConstraints looks for a default that hides messages from claims, and for constraints that somebody dropped.
func (d *DB) checkConstraints(ctx context.Context, q sqlx.QueryerContext) error {
	var due string
	err := sqlx.GetContext(ctx, q, &due, `SELECT COALESCE(COLUMN_DEFAULT, '') FROM information_schema.COLUMNS
		WHERE TABLE_SCHEMA = `+inDatabase+` AND TABLE_NAME = 'outbox' AND COLUMN_NAME = 'due_at'`, d.schema)
	if err != nil {
		return err
	}
	if !strings.EqualFold(due, "utc_timestamp(6)") {
		return dialect.Refuse(dialect.ErrShape, "column due_at of table outbox must have the default UTC_TIMESTAMP(6): run ALTER TABLE outbox ALTER due_at SET DEFAULT (UTC_TIMESTAMP(6))")
	}
	var found []string
	err = sqlx.SelectContext(ctx, q, &found, `SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS
		WHERE TABLE_SCHEMA = `+inDatabase+` AND TABLE_NAME = 'outbox' AND CONSTRAINT_TYPE = 'CHECK' /*!80017 AND ENFORCED = 'YES' */`, d.schema)
	if err != nil {
		return err
	}
	for _, name := range checks() {
		if !slices.Contains(found, name) {
			return dialect.Refuse(dialect.ErrShape, "table outbox has no constraint %s that is enforced: add it again as outboxd migrate print shows it", name)
		}
	}
	return nil
}

func (d *DB) checkIndexes(ctx context.Context, q sqlx.ExtContext) error {
	var found []struct{ Name, Definition string }
	err := sqlx.SelectContext(ctx, q, &found, `SELECT INDEX_NAME AS name, CONCAT(IF(MIN(NON_UNIQUE) = 0, 'unique ', ''), '(',
			GROUP_CONCAT(CONCAT(COLUMN_NAME, COALESCE(CONCAT('(', SUB_PART, ')'), '')) ORDER BY SEQ_IN_INDEX SEPARATOR ', '), ')') AS definition
		FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = `+inDatabase+` AND TABLE_NAME = 'outbox'
			AND INDEX_TYPE = 'BTREE' /*!80017 AND IS_VISIBLE = 'YES' */ /*M!100600 AND IGNORED = 'NO' */
		GROUP BY INDEX_NAME`, d.schema)
	if err != nil {
		return err
	}
	have := map[string]string{}
	for _, i := range found {
		have[i.Name] = i.Definition
	}
	for _, name := range slices.Sorted(maps.Keys(indexes())) {
		if want := indexes()[name]; have[name] != want {
			return dialect.Refuse(dialect.ErrShape, "index %s of table outbox must be %s: drop what has its name, and create it as outboxd migrate print shows it", name, want)
		}
	}
	return nil
}
