package mysql

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// inserted are the columns of a message that tells of another one.
const inserted = "aggregatetype, aggregateid, type, payload, traceparent"

// rights are what a relay does with each table, and the key that it finds a row by. UPDATE of some is asked for column
// by column, and INSERT of messages for those that it writes.
func rights() map[string][]string {
	all := []string{"SELECT", "INSERT", "UPDATE", "DELETE"}
	return map[string][]string{
		"outbox":            {"SELECT"},
		"outbox_lease":      all,
		"outbox_attempt":    {"SELECT", "INSERT"},
		"outbox_operation":  {"SELECT", "INSERT"},
		"outbox_correction": {"SELECT"},
		"outbox_control":    all,
		"outbox_relay":      all,
		"outbox_version":    {"SELECT"},
	}
}

// written are the columns that claims, settlements, reclaims and operations write, by table.
func written() map[string][]string {
	return map[string][]string{
		"outbox": {
			"due_at", "lease_id", "attempts", "lapses", "replays", "state", "expires_at", "unknown_since", "send_id", "done_at", "failed_at",
			"resolved_at", "reason", "error_class", "last_error", "result", "payload",
		},
		"outbox_operation":  {"applied_at", "affected", "detail", "progress", "applier"},
		"outbox_correction": {"old_payload"},
	}
}

// checkRights asks before the first claim, so that a missing grant shows at the start and not in the first settlement. No
// table of the server tells what all roles of a user add up to, but EXPLAIN asks for the rights of a statement, and runs
// nothing.
func (d *DB) checkRights(ctx context.Context, q sqlx.ExtContext) error {
	for _, check := range []func(context.Context, sqlx.QueryerContext) error{d.checkTableRights, d.checkUpdateRights, d.checkInsertRights} {
		if err := check(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

func (d *DB) checkTableRights(ctx context.Context, q sqlx.QueryerContext) error {
	for _, table := range slices.Sorted(maps.Keys(rights())) {
		var missing []string
		for _, right := range rights()[table] {
			ok, err := d.may(ctx, q, probe(right, table))
			if errorCode(err) == noSuchTable {
				return refuseMissing(table)
			}
			if err != nil {
				return fmt.Errorf("rights on %s: %w", table, err)
			}
			if !ok {
				missing = append(missing, right)
			}
		}
		if len(missing) > 0 {
			return refuseRights(strings.Join(missing, ", "), table)
		}
	}
	return nil
}

func (d *DB) checkUpdateRights(ctx context.Context, q sqlx.QueryerContext) error {
	for _, table := range slices.Sorted(maps.Keys(written())) {
		var missing []string
		for _, column := range written()[table] {
			ok, err := d.may(ctx, q, "UPDATE "+placeholder+table+" SET "+column+" = "+column+" WHERE "+keyOf(table)+" = '0'")
			if class, _ := fold(errorCode(err)); class == dialect.Missing {
				continue // The columns are looked at next.
			}
			if err != nil {
				return fmt.Errorf("rights on %s: %w", table, err)
			}
			if !ok {
				missing = append(missing, column)
			}
		}
		if len(missing) > 0 {
			return refuseRights("UPDATE ("+strings.Join(missing, ", ")+")", table)
		}
	}
	return nil
}

func (d *DB) checkInsertRights(ctx context.Context, q sqlx.QueryerContext) error {
	ok, err := d.may(ctx, q, "INSERT INTO "+placeholder+"outbox ("+inserted+") SELECT "+inserted+" FROM "+placeholder+"outbox WHERE false")
	if !ok {
		return refuseRights("INSERT ("+inserted+")", "outbox")
	}
	if class, _ := fold(errorCode(err)); err == nil || class == dialect.Missing {
		return nil // The columns are looked at next.
	}
	return fmt.Errorf("rights on outbox: %w", err)
}

func refuseMissing(table string) error {
	return dialect.Refuse(dialect.ErrShape, "table %s is missing: run outboxd migrate up", table)
}

func refuseRights(right, table string) error {
	return dialect.Refuse(dialect.ErrRights, "the user may not %s on table %s: GRANT outbox_relay TO it, as roles.sql makes it, and SET DEFAULT ROLE", right, table)
}

// keyOf is the column that a table's rows are found by.
func keyOf(table string) string {
	return map[string]string{
		"outbox": "seq", "outbox_lease": "lease_id", "outbox_attempt": "attempt_id", "outbox_operation": "id",
		"outbox_correction": "operation_id", "outbox_control": "kind", "outbox_relay": "name", "outbox_version": "version",
	}[table]
}

// probe is a statement that needs a right on a table, and finds no row.
func probe(right, table string) string {
	key, name := keyOf(table), placeholder+table
	switch right {
	case "INSERT":
		return "INSERT INTO " + name + " SELECT * FROM " + name + " WHERE false"
	case "UPDATE":
		return "UPDATE " + name + " SET " + key + " = " + key + " WHERE " + key + " = '0'"
	case "DELETE":
		return "DELETE FROM " + name + " WHERE " + key + " = '0'"
	}
	return "SELECT * FROM " + name + " WHERE " + key + " = '0'"
}

// may tells whether the server would run a statement for this user.
func (d *DB) may(ctx context.Context, q sqlx.QueryerContext, statement string) (bool, error) {
	query, err := render("EXPLAIN FORMAT = TRADITIONAL "+statement, d.schema)
	if err != nil {
		return false, err
	}
	_, err = explain(ctx, q, query)
	if class, _ := fold(errorCode(err)); class == dialect.Rights {
		return false, nil
	}
	return true, err
}
