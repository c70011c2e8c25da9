package postgres

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
)

// columns are the names and types that a relay relies on, table by table. More columns may stand beside them.
func columns() map[string]string {
	return map[string]string{
		"outbox": `id uuid, aggregatetype text, aggregateid text, type text, payload text, payload_bytes bytea,
			content_type text, schema_version integer, headers text, traceparent text, routing_key text, seq bigint,
			created_at timestamp with time zone, expires_at timestamp with time zone, due_at timestamp with time zone,
			lease_id bigint, attempts integer, lapses integer, replays integer, state text,
			unknown_since timestamp with time zone, send_id uuid, done_at timestamp with time zone,
			failed_at timestamp with time zone, resolved_at timestamp with time zone, reason text, error_class text,
			last_error text, result text`,
		"outbox_lease": `lease_id bigint, relay text, claimed_at timestamp with time zone,
			renewed_at timestamp with time zone, length interval, ids uuid[]`,
		"outbox_attempt": `attempt_id bigint, message_id uuid, life integer, attempt integer, relay text,
			started_at timestamp with time zone, duration interval, outcome text, status integer, error_class text,
			error text, answer text`,
		"outbox_operation": `id uuid, op text, filter text, actor text, note text, dry_run boolean,
			requested_at timestamp with time zone, applied_at timestamp with time zone, affected bigint, detail text,
			progress text, applier text`,
		"outbox_correction": `operation_id uuid, id uuid, payload text, payload_bytes bytea, old_payload text,
			old_payload_bytes bytea`,
		"outbox_control": `kind text, name text, owner text, value text, epoch bigint, updated_at timestamp with time zone`,
		"outbox_relay": `name text, host text, version text, config_hash text, destinations text[], instance text,
			started_at timestamp with time zone, seen_at timestamp with time zone`,
		"outbox_version": `version integer, admits integer, applied_at timestamp with time zone`,
	}
}

// indexes are those of outbox without which a claim, a settlement or an audit query is slow, as the server prints them
// after USING.
func indexes() map[string]string {
	return map[string]string{
		"outbox_pkey":   "btree (id)",
		"outbox_due":    "btree (routing_key, lapses, due_at, seq) WHERE (due_at IS NOT NULL)",
		"outbox_failed": "btree (failed_at) WHERE (failed_at IS NOT NULL)",

		"outbox_unresolved": "btree (failed_at) WHERE ((failed_at IS NOT NULL) AND (resolved_at IS NULL))",
	}
}

// checks are the constraints that keep rows possible.
func checks() []string {
	return []string{
		"outbox_aggregatetype_check", "outbox_counters_check", "outbox_done_check", "outbox_due_check", "outbox_failed_check",
		"outbox_headers_check", "outbox_payload_check", "outbox_reason_check", "outbox_resolved_check", "outbox_state_check",
		"outbox_times_check", "outbox_type_check",
	}
}

// CheckShape compares the tables with those that the migrations make, by names, types, indexes and constraints, asks
// whether the role may do what a relay does, and looks at the plan of the claim. The error names the first difference and
// the mend (errors.Is ErrShape or ErrRights), or is a database fault. Ask CheckSchema first.
func (d *DB) CheckShape(ctx context.Context) error {
	return wrap("check the tables", d.read(ctx, func(q sqlx.ExtContext) error {
		for _, check := range []func(context.Context, sqlx.ExtContext) error{d.checkTables, d.checkIndexes, d.checkRights, d.checkPlan} {
			if err := check(ctx, q); err != nil {
				return err
			}
		}
		return nil
	}))
}

// checkTables looks at all that is not the indexes.
func (d *DB) checkTables(ctx context.Context, q sqlx.ExtContext) error {
	for _, table := range slices.Sorted(maps.Keys(columns())) {
		if err := d.checkColumns(ctx, q, table); err != nil {
			return err
		}
	}
	return d.checkTable(ctx, q)
}

func (d *DB) checkColumns(ctx context.Context, q sqlx.ExtContext, table string) error {
	var found []struct{ Name, Type string }
	err := sqlx.SelectContext(ctx, q, &found, `SELECT attname AS name, format_type(atttypid, atttypmod) AS type
		FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`, d.name(table))
	if err != nil {
		return err
	}
	types := map[string]string{}
	for _, c := range found {
		types[c.Name] = c.Type
	}
	for c := range strings.SplitSeq(columns()[table], ",") {
		name, want, _ := strings.Cut(strings.TrimSpace(c), " ")
		switch have := types[name]; {
		case len(found) == 0:
			return dialect.Refuse(dialect.ErrShape, "table %s is missing: run outboxd migrate up", table)
		case have == "":
			return dialect.Refuse(dialect.ErrShape, "table %s has no column %s, so it is not the table that outboxd makes: name another schema for outboxd", table, name)
		case have != want:
			return dialect.Refuse(dialect.ErrShape, "column %s of table %s is %s and must be %s: change it back, or name another schema for outboxd", name, table, have, want)
		}
	}
	return nil
}

// checkTable looks at what the columns do not show: a table that a crash empties, a default that hides messages from
// claims, a constraint that somebody dropped.
func (d *DB) checkTable(ctx context.Context, q sqlx.ExtContext) error {
	var kind, persistence, due string
	row := q.QueryRowxContext(ctx, `SELECT relkind::text, relpersistence::text, coalesce((SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef
		JOIN pg_attribute a ON attrelid = adrelid AND attnum = adnum WHERE adrelid = c.oid AND attname = 'due_at'), '')
		FROM pg_class c WHERE oid = to_regclass($1)`, d.name("outbox"))
	if err := row.Scan(&kind, &persistence, &due); err != nil {
		return err
	}
	switch {
	case kind != "r":
		return dialect.Refuse(dialect.ErrShape, "outbox is no plain table: outboxd works on the table that outboxd migrate up makes")
	case persistence != "p":
		return dialect.Refuse(dialect.ErrShape, "table outbox is unlogged, so a crash of the server would empty it: run ALTER TABLE outbox SET LOGGED")
	case due != "clock_timestamp()":
		return dialect.Refuse(dialect.ErrShape, "column due_at of table outbox must have the default clock_timestamp(): run ALTER TABLE outbox ALTER due_at SET DEFAULT clock_timestamp()")
	}
	var missing []string
	err := sqlx.SelectContext(ctx, q, &missing, `SELECT name FROM unnest($1::text[]) AS name WHERE NOT EXISTS (SELECT FROM pg_constraint
		WHERE conrelid = to_regclass($2) AND contype = 'c' AND conname = name AND convalidated) ORDER BY name`, pq.Array(checks()), d.name("outbox"))
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return dialect.Refuse(dialect.ErrShape, "table outbox has no valid constraint %s: add it again as outboxd migrate print shows it", missing[0])
	}
	return nil
}

func (d *DB) checkIndexes(ctx context.Context, q sqlx.ExtContext) error {
	var found []struct {
		Name, Definition string
		Valid            bool
	}
	err := sqlx.SelectContext(ctx, q, &found, `SELECT c.relname AS name, pg_get_indexdef(i.indexrelid) AS definition, i.indisvalid AS valid
		FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = to_regclass($1)`, d.name("outbox"))
	if err != nil {
		return err
	}
	have := map[string]string{}
	for _, i := range found {
		_, definition, _ := strings.Cut(i.Definition, " USING ")
		if i.Valid {
			have[i.Name] = definition
		}
	}
	for _, name := range slices.Sorted(maps.Keys(indexes())) {
		if want := indexes()[name]; have[name] != want {
			return dialect.Refuse(dialect.ErrShape, "index %s of table outbox must be USING %s: drop what has its name, and create it as outboxd migrate print shows it", name, want)
		}
	}
	return nil
}
