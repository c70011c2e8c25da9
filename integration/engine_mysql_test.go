package integration

import (
	"context"
	"database/sql"
	"net/url"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/mysql"
	"github.com/outboxd/outboxd/outbox"
)

// mysqlEngine is MySQL or MariaDB, by the name of its variable.
func mysqlEngine(name string) engine {
	return engine{
		name: name, helper: outbox.MySQL, driver: "mysql", empty: emptyMySQL,
		open:  func(o dialect.Options) (opened, error) { return mysql.Open(o) },
		lease: 6 * time.Second, // InnoDB's lock time-outs are whole seconds
		proxy: newMySQLProxy,
		said:  statements{claimed: commits(toClient, mysqlClaim), load: mysqlLoad, settle: mysqlSettle, watch: mysqlWatch},
		words: strings.NewReplacer(
			"{now}", "UTC_TIMESTAMP(6)", "{hour}", "INTERVAL 1 HOUR", "{second}", "INTERVAL 1 SECOND",
			"{long ago}", "'1970-01-02 00:00:00'", "{not due}", "'9999-12-31'", "{unknown}", "(unknown_since > '1000-01-01')",
			"{next year}", "(UTC_TIMESTAMP(6) + INTERVAL 1 YEAR)", "{last year}", "(UTC_TIMESTAMP(6) - INTERVAL 1 YEAR)",
			"{last day}", "'9999-12-30 00:00:00'",
			"{on outbox}", "",
			"{moment}", "datetime(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))",
			"{payload}", "coalesce(payload, '')",
		),
		odd: mysqlOddities(),
	}
}

func emptyMySQL(t *testing.T, e engine) *database {
	t.Helper()
	server := need(t, "OUTBOXD_TEST_"+strings.ToUpper(e.name)+"_URL")
	name := unique("outboxd_test")
	onMySQL(t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() { onMySQL(t, server, "DROP DATABASE "+name) })
	return openDatabase(t, e, name, rewrite(t, server, func(u *url.URL) { u.Path = "/" + name }), mysqlDSN(t, server, name, ""))
}

// mysqlDSN is the server's URL as its Go driver wants it.
func mysqlDSN(t *testing.T, server, database, settings string) string {
	t.Helper()
	var user, host string
	rewrite(t, server, func(u *url.URL) { user, host = u.User.String(), u.Host })
	return user + "@tcp(" + host + ")/" + database + "?interpolateParams=true&" + settings
}

// onMySQL is onServer for MySQL.
func onMySQL(t *testing.T, server, statement string) {
	t.Helper()
	db, err := sql.Open("mysql", mysqlDSN(t, server, "", ""))
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
