package sqlite

import (
	"errors"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/dialecttest"
)

func TestCheckShape(t *testing.T) {
	t.Parallel()
	// Makes the table anew, as migration tools do for SQLite, with a part of its text replaced.
	anew := func(old, changed string) string {
		migrations, err := Migrations()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range splitStatements(migrations[0].SQL) {
			if strings.HasPrefix(s, "CREATE TABLE IF NOT EXISTS outbox (") && strings.Contains(s, old) {
				return "DROP TABLE outbox; " + strings.Replace(s, old, changed, 1) +
					"CREATE INDEX outbox_due ON outbox (routing_key, lapses, due_at, seq) WHERE due_at IS NOT NULL;" +
					"CREATE INDEX outbox_failed ON outbox (failed_at) WHERE failed_at IS NOT NULL;" +
					"CREATE INDEX outbox_unresolved ON outbox (failed_at) WHERE failed_at IS NOT NULL AND resolved_at IS NULL;"
			}
		}
		t.Fatalf("the table has no %q", old)
		return ""
	}
	dialecttest.TestShapes(t, []dialecttest.Shape{
		{Name: "a further column", SQL: "ALTER TABLE outbox ADD COLUMN tenant TEXT"},
		{Name: "a further index", SQL: "CREATE INDEX by_type ON outbox (type)"},
		{Name: "statistics", SQL: "ANALYZE"},
		{Name: "made anew as it was", SQL: anew("NOT NULL", "NOT NULL")},
		{Name: "a column missing", SQL: "ALTER TABLE outbox DROP COLUMN send_id", Says: "no column send_id"},
		{Name: "a column of another type", SQL: "ALTER TABLE outbox_attempt DROP COLUMN life; ALTER TABLE outbox_attempt ADD COLUMN life TEXT", Says: "column life of table outbox_attempt is TEXT and must be INTEGER"},
		{Name: "a table missing", SQL: "DROP TABLE outbox_control", Says: "table outbox_control is missing"},
		{Name: "the claim's index missing", SQL: "DROP INDEX outbox_due", Says: "index outbox_due"},
		{Name: "the claim's index on the state", SQL: "DROP INDEX outbox_due; CREATE INDEX outbox_due ON outbox (state, due_at) WHERE due_at IS NOT NULL", Says: "(routing_key, lapses, due_at, seq)"},
		{Name: "the claim's index over all", SQL: "DROP INDEX outbox_due; CREATE INDEX outbox_due ON outbox (routing_key, lapses, due_at, seq)", Says: "(routing_key, lapses, due_at, seq)"},
		{Name: "the claim's index over others", SQL: "DROP INDEX outbox_due; CREATE INDEX outbox_due ON outbox (routing_key, lapses, due_at, seq) WHERE state = 'pending'", Says: "outbox_due"},
		{Name: "a constraint missing", SQL: anew("CONSTRAINT outbox_due_check CHECK", "CHECK"), Says: "outbox_due_check"},
		{Name: "numbers that come again", SQL: anew("PRIMARY KEY AUTOINCREMENT", "PRIMARY KEY"), Says: "AUTOINCREMENT"},
		{Name: "another default", SQL: anew("due_at         INTEGER DEFAULT (CAST(round(", "due_at         INTEGER DEFAULT (CAST(floor("), Says: "the default of due_at"},
		{Name: "a rollback journal", SQL: "PRAGMA journal_mode = DELETE", Says: "PRAGMA journal_mode = WAL"},
	}, func(t *testing.T) dialecttest.Backend { return seen{newFile(t), t} })
}

// A file in a rollback journal is mended by what the error says.
func TestRollbackJournal(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	f.exec(t, "PRAGMA journal_mode = DELETE")
	d := f.open(t, dialect.Options{})
	if err := d.CheckShape(t.Context()); !errors.Is(err, dialect.ErrShape) {
		t.Errorf("CheckShape: %v, want ErrShape", err)
	}
	if applied, err := d.Migrate(t.Context()); err != nil || len(applied) > 0 {
		t.Fatalf("Migrate applied %v, %v", applied, err)
	}
	if err := d.CheckShape(t.Context()); err != nil {
		t.Errorf("CheckShape after Migrate: %v", err)
	}
}

// What an application may write, and what the table refuses; by which of its names a person sees.
func TestInsert(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	cases := []struct {
		columns, values string
		says            string // in the error; empty: it is written
	}{
		{"type", "'a'", ""},
		{"type, payload", "'a', 'né'", ""},
		{"type, payload", "'a', x'00ff'", ""},
		{"type, payload", "'a', NULL", ""},
		{"type, payload", "'a', 5", "outbox_payload_check"},
		{"type, id", "'a', 'A_b-9'", ""},
		{"type, id", "'a', NULL", "outbox.id"},
		{"type, id", "'a', ''", "outbox_id_check"},
		{"type, id", "'a', 'a.b'", "outbox_id_check"},
		{"type, id", "'a', 'é'", "outbox_id_check"},
		{"type, id", "'a', 'a' || char(0)", "outbox_id_check"},
		{"type, id", "'a', '1234567890123456789012345678901234567'", "outbox_id_check"},
		{"type", "NULL", "outbox.type"},
		{"type", "''", "outbox_type_check"},
		{"type", "' a'", "outbox_type_check"},
		{"type", "'a' || char(10)", "outbox_type_check"},
		{"type", "'a' || char(0)", "outbox_type_check"},
		{"type", "x'61'", "outbox_t"},
		{"type, aggregatetype", "'a', ''", "outbox_aggregatetype_check"},
		{"type, aggregatetype", "'a', 'b '", "outbox_aggregatetype_check"},
		{"type, aggregateid", "'a', ''", ""},
		{"type, aggregateid", "'a', 7", ""},
		{"type, aggregateid", "'a', x'61'", "outbox_text_check"},
		{"type, headers", `'a', '{"a": "b"}'`, ""},
		{"type, headers", "'a', '[]'", "outbox_headers_check"},
		{"type, headers", "'a', '{'", "outbox_headers_check"},
		{"type, headers", "'a', '{a: 1}'", "outbox_headers_check"},
		{"type, headers", "'a', ''", "outbox_headers_check"},
		{"type, headers", "'a', NULL", "outbox.headers"},
		{"type, headers", "'a', x'7b7d'", "outbox_text_check"},
		{"type, schema_version", "'a', 'x'", "outbox_counters_check"},
		{"type, schema_version", "'a', '2'", ""},
		{"type, content_type", "'a', NULL", "outbox.content_type"},
		{"type, due_at", "'a', " + sqlNow + " + 60000000", ""},
		{"type, due_at", "'a', NULL", "outbox_due_check"},
		{"type, due_at", "'a', '2030-01-01 00:00:00'", "outbox_times_check"},
		{"type, due_at", "'a', datetime('now')", "outbox_times_check"},
		{"type, due_at", "'a', unixepoch()", "outbox_times_check"},
		{"type, due_at", "'a', unixepoch() * 1000", "outbox_times_check"},
		{"type, due_at", "'a', 253402214400000000", "outbox_times_check"},
		{"type, due_at", "'a', 9e999", "outbox_times_check"},
		{"type, expires_at", "'a', NULL", ""},
		{"type, expires_at", "'a', unixepoch()", "outbox_times_check"},
		{"type, expires_at", "'a', '2030-01-01'", "outbox_times_check"},
		{"type, created_at", "'a', 0", "outbox_times_check"},
		{"type, state", "'a', 'done'", "outbox_d"},
		{"type, state", "'a', 'new'", "outbox_"},
		{"type, attempts", "'a', -1", "outbox_counters_check"},
		{"type, seq", "'a', NULL", ""},
		{"type, seq", "'a', 'x'", "datatype mismatch"},
		{"type, routing_key", "'a', 'a'", "generated column"},
	}
	for _, c := range cases {
		_, err := f.app.Exec("INSERT INTO outbox (" + c.columns + ") VALUES (" + c.values + ")")
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("(%s) of %s: %v, want %q", c.columns, c.values, err, c.says)
		}
	}
	f.exec(t, "DELETE FROM outbox")
	f.exec(t, "INSERT INTO outbox (type) VALUES ('a')")
	var seq int
	if err := f.app.Get(&seq, "SELECT seq FROM outbox"); err != nil || seq < 2 {
		t.Errorf("the number of a deleted message came again: %d, %v", seq, err)
	}
}

// Ids made by the database are UUIDs of version 7 and in the order of time.
func TestDefaultID(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	f.fill(t, orders, 200)
	var wrong int
	err := f.app.Get(&wrong, `SELECT count(*) FROM outbox WHERE id NOT GLOB
		'[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]-[0-9a-f][0-9a-f][0-9a-f][0-9a-f]-7[0-9a-f][0-9a-f][0-9a-f]-[89ab][0-9a-f][0-9a-f][0-9a-f]-*'
		OR length(id) <> 36 OR printf('%012x', created_at / 1000) <> substr(id, 1, 8) || substr(id, 10, 4)`)
	if err != nil || wrong > 0 {
		t.Errorf("%d of 200 ids are no UUID of version 7 with the time of their row, %v", wrong, err)
	}
}
