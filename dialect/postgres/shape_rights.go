package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
)

// rights are what a relay does with each table. UPDATE of some, and INSERT of messages, is asked for column by column.
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
			"resolved_at", "reason", "error_class", "last_error", "result", "payload", "payload_bytes",
		},
		"outbox_operation":  {"applied_at", "affected", "detail", "progress", "applier"},
		"outbox_correction": {"old_payload", "old_payload_bytes"},
	}
}

// inserted are the columns of a message that tells of another one, by table.
func inserted() map[string][]string {
	return map[string][]string{"outbox": {"aggregatetype", "aggregateid", "type", "payload", "traceparent"}}
}

// checkRights asks before the first claim, so that a missing grant shows at the start and not in the first settlement.
func (d *DB) checkRights(ctx context.Context, q sqlx.ExtContext) error {
	var user string
	if err := sqlx.GetContext(ctx, q, &user, "SELECT current_user"); err != nil {
		return err
	}
	for _, table := range slices.Sorted(maps.Keys(rights())) {
		missing, err := lacking(ctx, q, `SELECT p FROM unnest($1::text[]) AS p WHERE NOT has_table_privilege(to_regclass($2)::oid, p)`, rights()[table], d.name(table))
		if err != nil {
			return err
		}
		if missing != "" {
			return dialect.Refuse(dialect.ErrRights, "role %q may not %s on table %s: GRANT outbox_relay TO it, as roles.sql makes it", user, missing, table)
		}
	}
	for _, right := range []struct {
		name    string
		columns map[string][]string
	}{{"UPDATE", written()}, {"INSERT", inserted()}} {
		for _, table := range slices.Sorted(maps.Keys(right.columns)) {
			missing, err := lacking(ctx, q, `SELECT c FROM unnest($1::text[]) AS c WHERE NOT has_column_privilege(to_regclass($2)::oid, c, $3)`,
				right.columns[table], d.name(table), right.name)
			if err != nil {
				return err
			}
			if missing != "" {
				return dialect.Refuse(dialect.ErrRights, "role %q may not %s (%s) on table %s: GRANT outbox_relay TO it, as roles.sql makes it", user, right.name, missing, table)
			}
		}
	}
	return nil
}

func lacking(ctx context.Context, q sqlx.ExtContext, query string, names []string, table string, more ...any) (string, error) {
	var missing []string
	if err := sqlx.SelectContext(ctx, q, &missing, query, append([]any{pq.Array(names), table}, more...)...); err != nil {
		return "", fmt.Errorf("rights on %s: %w", table, err)
	}
	return strings.Join(missing, ", "), nil
}
