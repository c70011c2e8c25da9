package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
)

// DiagnoseApplication looks at what the role of an application may do, whose database URL this DB was opened with.
func (d *DB) DiagnoseApplication(ctx context.Context) []dialect.Finding {
	var user string
	err := d.read(ctx, func(q sqlx.ExtContext) error { return sqlx.GetContext(ctx, q, &user, "SELECT current_user") })
	if err != nil {
		return []dialect.Finding{dialect.FoundError(dialect.CheckApplication, wrap("application", err))}
	}
	role := fmt.Sprintf("the application's role %q", user)
	findings := d.Examine(ctx, []dialect.Check{{Name: dialect.CheckApplication, Look: func(ctx context.Context, q sqlx.ExtContext) ([]dialect.Finding, error) {
		return d.lookAtApplication(ctx, q, role)
	}}})
	return append(findings, d.TryWrite(ctx, role))
}

// applicationRights are what roles.sql gives to outbox_application.
func applicationRights() []struct{ right, columns string } {
	return []struct{ right, columns string }{
		{"INSERT", "id, aggregatetype, aggregateid, type, payload, payload_bytes, content_type, schema_version, headers, traceparent, due_at, expires_at"},
		{"SELECT", "id, state, reason, result, created_at, due_at, expires_at, done_at, failed_at, resolved_at"},
	}
}

func (d *DB) lookAtApplication(ctx context.Context, q sqlx.ExtContext, role string) ([]dialect.Finding, error) {
	a := dialect.Application{Role: role, Grant: "GRANT outbox_application TO it, as roles.sql makes it"}
	for _, r := range applicationRights() {
		missing, err := lacking(ctx, q, `SELECT c FROM unnest($1::text[]) AS c WHERE NOT has_column_privilege(to_regclass($2)::oid, c, $3)`,
			strings.Split(r.columns, ", "), d.name("outbox"), r.right)
		if err != nil {
			return nil, err
		}
		if missing != "" {
			a.Lacks = append(a.Lacks, r.right+" ("+missing+")")
		}
	}
	var more []string
	err := sqlx.SelectContext(ctx, q, &more, `SELECT p FROM unnest($1::text[]) AS p WHERE has_table_privilege(to_regclass($2)::oid, p)`,
		pq.Array([]string{"UPDATE", "DELETE", "TRUNCATE"}), d.name("outbox"))
	if err != nil {
		return nil, err
	}
	a.Exceeds = more
	db, err := d.plain()
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }() // It has only looked.
	err = sqlx.GetContext(ctx, db, &a.Elsewhere, `SELECT to_regclass('outbox') IS DISTINCT FROM to_regclass($1)`, d.name("outbox"))
	return dialect.FoundApplication(a), err
}
