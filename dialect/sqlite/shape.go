package sqlite

import (
	"context"
	"strings"

	"github.com/jmoiron/sqlx"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/outboxd/outboxd/dialect"
)

// table is what a relay relies on in one table: names and declared types. More columns may stand beside them.
type table struct{ name, columns string }

func tables() []table {
	return []table{
		{"outbox", `id TEXT, aggregatetype TEXT, aggregateid TEXT, type TEXT, content_type TEXT, schema_version INTEGER,
			headers TEXT, traceparent TEXT, routing_key TEXT, seq INTEGER, created_at INTEGER, expires_at INTEGER,
			due_at INTEGER, lease_id INTEGER, attempts INTEGER, lapses INTEGER, replays INTEGER, state TEXT,
			unknown_since INTEGER, send_id TEXT, done_at INTEGER, failed_at INTEGER, resolved_at INTEGER, reason TEXT,
			error_class TEXT, last_error TEXT, result TEXT, payload BLOB`},
		{"outbox_lease", `lease_id INTEGER, relay TEXT, claimed_at INTEGER, renewed_at INTEGER, length INTEGER, ids TEXT`},
		{"outbox_attempt", `attempt_id INTEGER, message_id TEXT, life INTEGER, attempt INTEGER, relay TEXT,
			started_at INTEGER, duration INTEGER, outcome TEXT, status INTEGER, error_class TEXT, error TEXT, answer TEXT`},
		{"outbox_operation", `id TEXT, op TEXT, filter TEXT, actor TEXT, note TEXT, dry_run INTEGER, requested_at INTEGER,
			applied_at INTEGER, affected INTEGER, detail TEXT, progress TEXT, applier TEXT`},
		{"outbox_correction", `operation_id TEXT, id TEXT, payload BLOB, old_payload BLOB`},
		{"outbox_control", `kind TEXT, name TEXT, owner TEXT, value TEXT, epoch INTEGER, updated_at INTEGER`},
		{"outbox_relay", `name TEXT, host TEXT, version TEXT, config_hash TEXT, destinations TEXT, instance TEXT, started_at INTEGER, seen_at INTEGER`},
		{"outbox_version", `version INTEGER, admits INTEGER, applied_at INTEGER`},
	}
}

// clauses are what table outbox has beside its columns. Tools that change a table of SQLite make it anew, and forget some.
func clauses() []string {
	all := []string{"PRIMARY KEY AUTOINCREMENT", "GENERATED ALWAYS AS (coalesce(aggregatetype, type)) STORED", "UNIQUE (id)"}
	for _, name := range []string{
		"id", "type", "aggregatetype", "payload", "headers", "text", "state", "due", "done", "failed", "resolved", "reason", "times", "counters",
	} {
		all = append(all, "CONSTRAINT outbox_"+name+"_check CHECK")
	}
	return all
}

// CheckShape compares the tables with those that the migrations make, by names, types, indexes and constraints, asks
// whether the file is in WAL mode and may be written to, and looks at the plan of the claim. The error names the first
// difference and the mend (errors.Is ErrShape), or is a database fault. Ask CheckSchema first.
func (d *DB) CheckShape(ctx context.Context) error {
	err := d.read(ctx, func(q sqlx.ExtContext) error {
		for _, check := range []func(context.Context, sqlx.ExtContext) error{checkTables, checkMode, checkIndexes, checkPlan} {
			if err := check(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = d.write(ctx, func(*sqlx.Tx) error { return nil }) // fails where the file may not be written to
	}
	return d.wrap("check the tables", err)
}

// checkTables looks at all that is not the indexes.
func checkTables(ctx context.Context, q sqlx.ExtContext) error {
	for _, t := range tables() {
		if err := checkColumns(ctx, q, t.name); err != nil {
			return err
		}
	}
	return checkClauses(ctx, q)
}

func checkColumns(ctx context.Context, q sqlx.ExtContext, name string) error {
	var found []struct{ Name, Type string }
	if err := sqlx.SelectContext(ctx, q, &found, `SELECT name, upper(type) AS type FROM pragma_table_xinfo(?)`, name); err != nil {
		return err
	}
	types := map[string]string{}
	for _, c := range found {
		types[c.Name] = c.Type
	}
	for _, t := range tables() {
		if t.name != name {
			continue
		}
		for c := range strings.SplitSeq(t.columns, ",") {
			column, want, _ := strings.Cut(strings.TrimSpace(c), " ")
			switch have, ok := types[column]; {
			case len(found) == 0:
				return dialect.Refuse(dialect.ErrShape, "table %s is missing: run outboxd migrate up", name)
			case !ok:
				return dialect.Refuse(dialect.ErrShape, "table %s has no column %s, so it is not the table that outboxd makes: name another file for outboxd", name, column)
			case have != want:
				return dialect.Refuse(dialect.ErrShape, "column %s of table %s is %s and must be %s: make the table as outboxd migrate print shows it, or name another file", column, name, have, want)
			}
		}
	}
	return nil
}

func checkClauses(ctx context.Context, q sqlx.ExtContext) error {
	var text string
	if err := sqlx.GetContext(ctx, q, &text, `SELECT sql FROM sqlite_schema WHERE name = 'outbox'`); err != nil {
		return err
	}
	for _, clause := range clauses() {
		if !strings.Contains(text, clause) {
			return lost(clause)
		}
	}
	var changed []string
	const look = `SELECT name FROM pragma_table_xinfo('outbox') WHERE name IN ('created_at', 'due_at') AND dflt_value IS NOT ?`
	if err := sqlx.SelectContext(ctx, q, &changed, look, sqlNow); err != nil || len(changed) == 0 {
		return err
	}
	return lost("the default of " + changed[0])
}

func lost(what string) error {
	return dialect.Refuse(dialect.ErrShape, "table outbox has lost %s, as by a tool that made it anew: make it as outboxd migrate print shows it, and leave it out of that tool", what)
}

func checkMode(ctx context.Context, q sqlx.ExtContext) error {
	var mode string
	if err := sqlx.GetContext(ctx, q, &mode, `PRAGMA journal_mode`); err != nil || mode == "wal" {
		return err
	}
	return dialect.Refuse(dialect.ErrShape, "the database file is in journal mode %s, in which readers and writers stop each other: run outboxd migrate up, or PRAGMA journal_mode = WAL, and let no program set another mode", mode)
}

// checkIndexes looks at those of outbox without which a claim, a settlement or an audit query is slow.
func checkIndexes(ctx context.Context, q sqlx.ExtContext) error {
	for _, want := range []struct{ name, columns string }{
		{"outbox_due", "routing_key, lapses, due_at, seq"},
		{"outbox_failed", "failed_at"},
		{"outbox_unresolved", "failed_at"},
	} {
		var found []string
		err := sqlx.SelectContext(ctx, q, &found, `SELECT i.name FROM pragma_index_list('outbox') l, pragma_index_info(l.name) i
			WHERE l.name = ? AND l.partial ORDER BY i.seqno`, want.name)
		if err != nil {
			return err
		}
		if strings.Join(found, ", ") != want.columns {
			return dialect.Refuse(dialect.ErrShape, "index %s of table outbox must be on (%s), where it is not NULL: drop what has its name, and run outboxd migrate print for how it is made", want.name, want.columns)
		}
	}
	return nil
}

// checkPlan refuses a claim that would read or sort more than it takes.
func checkPlan(ctx context.Context, q sqlx.ExtContext) error {
	var steps []struct {
		ID, Parent, NotUsed int
		Detail              string
	}
	err := sqlx.SelectContext(ctx, q, &steps, `EXPLAIN QUERY PLAN `+sqlDue, "a", 0, 1)
	if err != nil && resultCode(err) != sqlite3.SQLITE_ERROR { // which says here that the index does not serve the claim
		return err
	}
	const walk = "SEARCH outbox USING INDEX outbox_due (routing_key=? AND lapses=? AND due_at<?)"
	if len(steps) != 1 || steps[0].Detail != walk {
		return dialect.Refuse(dialect.ErrShape, "SQLite does not claim along index outbox_due: drop it, and create it as outboxd migrate print shows it")
	}
	return nil
}
