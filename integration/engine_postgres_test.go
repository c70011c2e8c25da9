package integration

import (
	"bytes"
	"context"
	"database/sql"
	"net/url"
	"strings"
	"testing"
	"time"

	_ "github.com/lib/pq" // the driver "postgres"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/postgres"
	"github.com/outboxd/outboxd/outbox"
)

func postgresEngine() engine {
	return engine{
		name: "postgres", helper: outbox.Postgres, driver: "postgres", empty: emptyPostgres,
		open:  func(o dialect.Options) (opened, error) { return postgres.Open(o) },
		lease: time.Second, proxy: newPostgresProxy,
		said: statements{claimed: claims, load: loadStatement, settle: settleStatement, watch: watchStatement},
		words: strings.NewReplacer(
			"{now}", "clock_timestamp()", "{hour}", "interval '1 hour'", "{second}", "interval '1 second'",
			"{long ago}", "'1970-01-02 00:00:00+00'", "{not due}", "NULL", "{unknown}", "(unknown_since IS NOT NULL)",
			"{next year}", "(clock_timestamp() + interval '1 year')", "{last year}", "(clock_timestamp() - interval '1 year')",
			"{last day}", "'9999-12-30 00:00:00+00'",
			"{on outbox}", "ON outbox",
			"{moment}", "timestamptz NOT NULL DEFAULT now()",
			"{payload}", "coalesce(payload_bytes, convert_to(payload, 'UTF8'), '')",
		),
		odd: postgresOddities(),
	}
}

// newDatabase makes a database on the server of OUTBOXD_TEST_POSTGRES_URL with outboxd's tables in it, and drops it at
// the end of the test.
func newDatabase(t *testing.T) *database {
	t.Helper()
	return postgresEngine().database(t)
}

// emptyDatabase makes one without any table.
func emptyDatabase(t *testing.T) *database {
	t.Helper()
	return emptyPostgres(t, postgresEngine())
}

func emptyPostgres(t *testing.T, e engine) *database {
	t.Helper()
	server := need(t, "OUTBOXD_TEST_POSTGRES_URL")
	name := unique("outboxd_test")
	onServer(t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() { onServer(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	url := rewrite(t, server, func(u *url.URL) { u.Path = "/" + name })
	return openDatabase(t, e, name, url, url)
}

// pooled is the URL of the same database through pgbouncer in transaction mode.
func (d *database) pooled(t *testing.T) string {
	t.Helper()
	return rewrite(t, need(t, "OUTBOXD_TEST_PGBOUNCER_URL"), func(u *url.URL) { u.Path = "/" + d.name })
}

// onServer runs one statement on a connection of its own, also while the test ends and its context is over.
func onServer(t *testing.T, server, statement string) {
	t.Helper()
	db, err := sql.Open("postgres", server)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		t.Errorf("%s: %v", statement, err)
	}
}

// claims matches the answer to a claim that brought messages: not the check of its plan, and not a look in vain.
func claims(one part) bool {
	return answers(claimStatement)(one) && bytes.Contains(one.data, []byte("UPDATE ")) && !bytes.Contains(one.data, []byte("UPDATE 0\x00"))
}
