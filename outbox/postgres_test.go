package outbox_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/outboxd/outboxd/outbox"
)

// server is a schema of the test's own: as its owner sees it, and as the shipped role of an application does.
type server struct {
	owner, app *sql.DB
	schema     string
}

func open(t *testing.T) server {
	t.Helper()
	dsn := os.Getenv("OUTBOXD_TEST_POSTGRES_URL")
	switch {
	case dsn == "" && os.Getenv("CI") == "true":
		t.Fatal("OUTBOXD_TEST_POSTGRES_URL is not set, and CI=true wants every server")
	case dsn == "":
		t.Skip("OUTBOXD_TEST_POSTGRES_URL is not set: no PostgreSQL to test with")
	}
	schema := "outbox_" + strings.ToLower(rand.Text())
	s := server{schema: schema, owner: connect(t, dsn, "search_path", schema)}
	run(t, s.owner, "CREATE SCHEMA "+schema)
	t.Cleanup(func() { run(t, s.owner, "DROP SCHEMA "+schema+" CASCADE") })
	for _, name := range []string{"001_outbox.sql", "roles.sql"} {
		script, err := os.ReadFile("../sql/postgres/" + name)
		if err != nil {
			t.Fatal(err)
		}
		run(t, s.owner, string(script))
	}
	s.app = connect(t, dsn, "search_path", schema, "role", "outbox_application")
	return s
}

// connect opens dsn with these settings of the session, given as names and values.
func connect(t *testing.T, dsn string, settings ...string) *sql.DB {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("OUTBOXD_TEST_POSTGRES_URL is no URL")
	}
	query := u.Query()
	for pair := range slices.Chunk(settings, 2) {
		query.Set(pair[0], pair[1])
	}
	u.RawQuery = query.Encode()
	db, err := sql.Open("postgres", u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// run also works while the test ends and its context is over.
func run(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(context.WithoutCancel(t.Context()), query); err != nil {
		t.Fatal(err)
	}
}

// write runs Write in a transaction of the application's role, and commits it.
func (s server) write(t *testing.T, msgs ...outbox.Message) []string {
	t.Helper()
	tx := s.begin(t)
	ids, err := table.Write(t.Context(), tx, msgs...)
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func (s server) begin(t *testing.T) *sql.Tx {
	t.Helper()
	tx, err := s.app.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback() })
	return tx
}

func TestWriteIsPartOfTheTransaction(t *testing.T) {
	t.Parallel()
	s := open(t)
	tx := s.begin(t)
	ids, err := table.Write(t.Context(), tx, outbox.Message{Type: "t"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Result(t.Context(), s.app, ids[0]); !errors.Is(err, outbox.ErrNotFound) {
		t.Errorf("before the commit: got %v, want ErrNotFound", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, err := table.Result(t.Context(), s.app, ids[0]); !errors.Is(err, outbox.ErrNotFound) {
		t.Errorf("after the rollback: got %v, want ErrNotFound", err)
	}
	kept := s.write(t, outbox.Message{Type: "t"})
	if r, err := table.Result(t.Context(), s.app, kept[0]); err != nil || r.State != outbox.Pending || r.CreatedAt.IsZero() {
		t.Errorf("after the commit: got %+v, %v", r, err)
	}
}

func TestWriteThroughSqlx(t *testing.T) {
	t.Parallel()
	s := open(t)
	tx, err := sqlx.NewDb(s.app, "postgres").BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	ids, err := table.Write(t.Context(), tx, outbox.Message{Type: "t"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := table.Result(t.Context(), tx, ids[0]); err != nil || r.State != outbox.Pending {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestWriteKeepsOrderAndDefaults(t *testing.T) {
	t.Parallel()
	s := open(t)
	msgs := make([]outbox.Message, 20_000)
	for i := range msgs {
		msgs[i] = outbox.Message{Type: "order_paid"}
	}
	ids := s.write(t, msgs...)
	var bySeq []string
	var plain int
	err := s.owner.QueryRowContext(t.Context(), `SELECT array_agg(id ORDER BY seq),
		count(*) FILTER (WHERE content_type = 'application/json' AND schema_version = 1 AND headers = '{}' AND routing_key = type
			AND aggregatetype IS NULL AND aggregateid IS NULL AND traceparent IS NULL AND payload IS NULL AND payload_bytes IS NULL
			AND expires_at IS NULL AND due_at BETWEEN created_at - interval '1 minute' AND clock_timestamp())
		FROM outbox`).Scan(pq.Array(&bySeq), &plain)
	if err != nil {
		t.Fatal(err)
	}
	if plain != len(msgs) {
		t.Errorf("%d of %d have their defaults", plain, len(msgs))
	}
	if !slices.Equal(bySeq, ids) {
		t.Error("seq does not follow the order of the call")
	}
	if !slices.IsSorted(ids) {
		t.Error("ids do not rise")
	}
}

func TestEveryByteArrives(t *testing.T) {
	t.Parallel()
	s := open(t)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	payloads := [][]byte{
		all, nil,
		{},
		{0},
		[]byte("\xff"), []byte("🦊 \u2028 \\x41 ''"), []byte(`{"n":12345678901234567890123,"d":1.10,"a":1,"a":2}`),
		bytes.Repeat([]byte("long "), 1<<20),
	}
	var msgs []outbox.Message
	for _, p := range payloads {
		msgs = append(msgs, outbox.Message{Type: "t", Payload: p, AggregateID: "🦊'\\", Headers: map[string]string{"x": "ключ \"<&>\\"}})
	}
	for i, id := range s.write(t, msgs...) {
		var got []byte
		var key, header string
		err := s.owner.QueryRowContext(t.Context(), `SELECT coalesce(payload_bytes, convert_to(payload, 'UTF8')), aggregateid, headers::json->>'x' FROM outbox WHERE id = $1`, id).
			Scan(&got, &key, &header)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, payloads[i]) || (got == nil) != (payloads[i] == nil) {
			t.Errorf("payload %d did not arrive as it was written", i)
		}
		if key != msgs[i].AggregateID || header != msgs[i].Headers["x"] {
			t.Errorf("payload %d: key %q, header %q", i, key, header)
		}
	}
}

func TestTimesAreTheDatabases(t *testing.T) {
	t.Parallel()
	s := open(t)
	tx, err := s.owner.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	ids, err := table.Write(t.Context(), tx, outbox.Message{Type: "t", Delay: 10 * time.Minute, ExpiresIn: 36*time.Hour + time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	var due, expires bool
	err = tx.QueryRowContext(t.Context(), `SELECT due_at - interval '10 minutes' BETWEEN now() AND clock_timestamp(),
		expires_at - interval '36 hours 1 microsecond' BETWEEN now() AND clock_timestamp() FROM outbox WHERE id = $1`, ids[0]).Scan(&due, &expires)
	if err != nil {
		t.Fatal(err)
	}
	if !due || !expires {
		t.Errorf("due_at right: %v, expires_at right: %v", due, expires)
	}
}

func TestAnIDIsWrittenOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.write(t, outbox.Message{Type: "t", ID: id})
	_, err := table.Write(t.Context(), s.begin(t), outbox.Message{Type: "t", ID: strings.ToUpper(id)})
	var fault *pq.Error
	if !errors.As(err, &fault) || fault.Code != "23505" || !strings.HasPrefix(err.Error(), "outbox: write to outbox: ") {
		t.Errorf("got %v, want the database's unique_violation", err)
	}
}

func TestResultOfFinalMessages(t *testing.T) {
	t.Parallel()
	s := open(t)
	ids := s.write(t, outbox.Message{Type: "t"}, outbox.Message{Type: "t"})
	run(t, s.owner, `UPDATE outbox SET state = 'done', due_at = NULL, done_at = now(), result = '3@17' WHERE id = '`+ids[0]+`'`)
	run(t, s.owner, `UPDATE outbox SET state = 'failed', due_at = NULL, failed_at = now(), resolved_at = now(), reason = 'expired' WHERE id = '`+ids[1]+`'`)
	done, err := table.Result(t.Context(), s.app, strings.ToUpper(ids[0]))
	if err != nil || done.State != outbox.Done || !done.State.Final() || done.Result != "3@17" || done.DoneAt.IsZero() || !done.FailedAt.IsZero() {
		t.Errorf("got %+v, %v", done, err)
	}
	failed, err := table.Result(t.Context(), s.app, ids[1])
	if err != nil || failed.State != outbox.Failed || !failed.State.Final() || failed.Reason != "expired" || failed.FailedAt.IsZero() || failed.ResolvedAt.IsZero() {
		t.Errorf("got %+v, %v", failed, err)
	}
	if _, err := table.Result(t.Context(), s.app, "42"); err == nil {
		t.Error("an id that is no UUID was taken")
	}
}

// TestSchemaIsQuoted writes into a schema that must be quoted, without a search_path.
func TestSchemaIsQuoted(t *testing.T) {
	t.Parallel()
	s := open(t)
	odd := "Odd-" + s.schema
	run(t, s.owner, `ALTER SCHEMA `+s.schema+` RENAME TO "`+odd+`"`)
	t.Cleanup(func() { run(t, s.owner, `ALTER SCHEMA "`+odd+`" RENAME TO `+s.schema) })
	in := outbox.Table{Dialect: outbox.Postgres, Name: odd + ".outbox"}
	tx := s.begin(t)
	ids, err := in.Write(t.Context(), tx, outbox.Message{ID: id, Type: "t"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := in.Result(t.Context(), tx, ids[0]); err != nil || r.State != outbox.Pending {
		t.Errorf("got %+v, %v", r, err)
	}
}
