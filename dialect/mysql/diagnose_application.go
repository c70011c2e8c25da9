package mysql

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// DiagnoseApplication looks at what the user of an application may do, whose database URL this DB was opened with.
func (d *DB) DiagnoseApplication(ctx context.Context) []dialect.Finding {
	var user string
	err := d.read(ctx, func(q sqlx.ExtContext) error { return sqlx.GetContext(ctx, q, &user, "SELECT CURRENT_USER()") })
	if err != nil {
		return []dialect.Finding{dialect.FoundError(dialect.CheckApplication, wrap("application", err))}
	}
	role := fmt.Sprintf("the application's user %q", user)
	findings := d.Examine(ctx, []dialect.Check{{Name: dialect.CheckApplication, Look: func(ctx context.Context, q sqlx.ExtContext) ([]dialect.Finding, error) {
		return d.lookAtApplication(ctx, q, role)
	}}})
	return append(findings, d.TryWrite(ctx, role))
}

// lookAtApplication asks by EXPLAIN, which asks for the rights of a statement and runs nothing. An application has no right
// to find a row by seq, so what it must not do is tried without a key.
func (d *DB) lookAtApplication(ctx context.Context, q sqlx.ExtContext, role string) ([]dialect.Finding, error) {
	a := dialect.Application{Role: role, Grant: "GRANT outbox_application TO it, as roles.sql makes it, and SET DEFAULT ROLE"}
	const (
		writes = "id, aggregatetype, aggregateid, type, payload, content_type, schema_version, headers, traceparent, due_at, expires_at"
		reads  = "id, state, reason, result, created_at, due_at, expires_at, done_at, failed_at, resolved_at"
		table  = placeholder + "outbox"
	)
	for _, r := range []struct {
		right, statement string
		wanted           bool
	}{
		{"INSERT (" + writes + ")", "INSERT INTO " + table + " (" + writes + ") VALUES ('a', 'a', 'a', 'a', 'a', 'a', 1, '{}', 'a', UTC_TIMESTAMP(6), NULL)", true},
		{"SELECT (" + reads + ")", "SELECT " + reads + " FROM " + table, true},
		{"UPDATE", "UPDATE " + table + " SET state = 'done'", false},
		{"DELETE", "DELETE FROM " + table, false},
	} {
		may, err := d.may(ctx, q, r.statement)
		switch {
		case err != nil:
			return nil, err
		case r.wanted && !may:
			a.Lacks = append(a.Lacks, r.right)
		case !r.wanted && may:
			a.Exceeds = append(a.Exceeds, r.right)
		}
	}
	return dialect.FoundApplication(a), nil
}
