package mysql

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// CheckSchema looks at the version of the tables, without locks. The error is a database fault, a server that outboxd does
// not work on or not as it is set up (errors.Is ErrServer), or a table outbox that is not ours (errors.Is ErrShape); what
// the tables lack is in the status.
func (d *DB) CheckSchema(ctx context.Context) (dialect.SchemaStatus, error) {
	status := dialect.SchemaStatus{State: dialect.SchemaNone, Place: d.place}
	err := d.read(ctx, func(q sqlx.ExtContext) error {
		s, err := checkServer(ctx, q)
		status.Server = s.String()
		if err != nil {
			return err
		}
		versions, err := d.readVersions(ctx, q)
		if err != nil {
			return err
		}
		migrations, err := Migrations(d.schema)
		if err != nil {
			return err
		}
		if versions.tables > 0 {
			status.State = dialect.SchemaUnfinished
		}
		status.Judge(versions.finished, migrations)
		if status.State == dialect.SchemaUnfinished && versions.outbox {
			return d.checkColumns(ctx, q, s, "outbox")
		}
		return nil
	})
	return status, wrap("check the schema", err)
}

// versions is what is there of the tables.
type versions struct {
	tables   int  // how many of outbox and outbox_version exist
	outbox   bool // whether outbox does
	finished []dialect.FinishedVersion
}

// readVersions reads the version table instead of looking for it: a list of tables leaves out what the user has no rights
// on, and to this one it would say that the tables are not there.
func (d *DB) readVersions(ctx context.Context, q sqlx.QueryerContext) (v versions, err error) {
	query, err := render(`SELECT version, admits FROM /*schema.*/outbox_version ORDER BY version`, d.schema)
	if err != nil {
		return v, err
	}
	err = sqlx.SelectContext(ctx, q, &v.finished, query)
	switch code := errorCode(err); {
	case err == nil:
		v.tables++
	case code != noSuchTable && code != noSuchDatabase:
		return v, err
	}
	err = sqlx.GetContext(ctx, q, &v.outbox, `SELECT COUNT(*) > 0 FROM information_schema.TABLES WHERE TABLE_SCHEMA = `+inDatabase+` AND TABLE_NAME = 'outbox'`, d.schema)
	if v.outbox {
		v.tables++
	}
	return v, err
}

// inDatabase is an expression for the name of the database that the tables are in. Argument: its name, empty for the one in
// use.
const inDatabase = `COALESCE(NULLIF(?, ''), DATABASE())`

// server is what the server says of itself.
type server struct {
	product             string // MySQL or MariaDB
	major, minor, patch int
}

func (s server) String() string {
	return fmt.Sprintf("%s %d.%d.%d", s.product, s.major, s.minor, s.patch)
}

// collation is the one of all texts, binary and without padding, as the product calls it.
func (s server) collation() string {
	if s.product == "MariaDB" {
		return "utf8mb4_nopad_bin"
	}
	return "utf8mb4_0900_bin"
}

// parseServer reads VERSION(), such as 8.0.36-28 or 10.11.19-MariaDB-log.
func parseServer(version string) (s server, ok bool) {
	s.product = "MySQL"
	if strings.Contains(version, "MariaDB") {
		s.product = "MariaDB"
	}
	n, _ := fmt.Sscanf(version, "%d.%d.%d", &s.major, &s.minor, &s.patch)
	return s, n == 3
}

// old tells whether the server lacks what the tables and the claim are made of: CHECK, SKIP LOCKED, JSON_TABLE, a binary
// collation without padding.
func (s server) old() bool {
	return s.before(server{"MySQL", 8, 0, 17}) || s.before(server{"MariaDB", 10, 6, 0})
}

// before tells whether it is of the same product as another and older.
func (s server) before(other server) bool {
	number := func(s server) int { return s.major*1_000_000 + s.minor*1000 + s.patch }
	return s.product == other.product && number(s) < number(other)
}

// checkServer refuses what is too old, or would make other rows on its replicas than it has itself.
func checkServer(ctx context.Context, q sqlx.QueryerContext) (server, error) {
	var version string
	if err := sqlx.GetContext(ctx, q, &version, "SELECT VERSION()"); err != nil {
		return server{}, err
	}
	s, ok := parseServer(version)
	switch {
	case !ok:
		return s, dialect.Refuse(dialect.ErrServer, "the server calls its version %.40q: outboxd needs MySQL 8.0.17 or MariaDB 10.6, or later", version)
	case s.old():
		return s, dialect.Refuse(dialect.ErrServer, "%s is too old: outboxd needs MySQL 8.0.17 or MariaDB 10.6, or later", s)
	}
	variables, err := globals(ctx, q)
	if err != nil {
		return s, err
	}
	return s, checkBinlog(variables)
}

// globals are the server's settings that matter. A product that has none of a name is not asked for it by that name.
func globals(ctx context.Context, q sqlx.QueryerContext) (map[string]string, error) {
	var rows []struct {
		Name  string `json:"Variable_name"`
		Value string `json:"Value"`
	}
	err := sqlx.SelectContext(ctx, q, &rows, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('log_bin', 'binlog_format', 'wsrep_on', "+
		"'transaction_isolation', 'tx_isolation', 'time_zone', 'system_time_zone', 'innodb_flush_log_at_trx_commit')")
	variables := map[string]string{}
	for _, r := range rows {
		variables[r.Name] = r.Value
	}
	return variables, err
}

// checkBinlog refuses a binary log of statements: InnoDB takes no writes of a READ COMMITTED transaction then, and a
// replica would make ids and times of its own for the application's INSERTs. A MIXED one holds rows in both cases: for the
// level, and for the defaults, which the server knows not to be deterministic.
func checkBinlog(variables map[string]string) error {
	if variables["log_bin"] == "ON" && variables["binlog_format"] == "STATEMENT" {
		return dialect.Refuse(dialect.ErrServer, wrongBinlog)
	}
	return nil
}

// Hints are what people should know of a server that is set up well enough.
func (d *DB) Hints(ctx context.Context) (hints []string, err error) {
	err = d.read(ctx, func(q sqlx.ExtContext) error {
		variables, err := globals(ctx, q)
		if variables["wsrep_on"] == "ON" {
			hints = append(hints, "the server is a node of a Galera cluster: let all relays use the same node, since a claim does not lock its messages on the others")
		}
		return err
	})
	return hints, wrap("look at the server", err)
}
