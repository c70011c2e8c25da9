package main

import (
	"context"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/mysql"
	"github.com/outboxd/outboxd/dialect/postgres"
	"github.com/outboxd/outboxd/dialect/sqlite"
	"github.com/outboxd/outboxd/outbox"
	"github.com/outboxd/outboxd/relay"
)

// database is an engine's DB, as the commands and the relay need it.
type database interface {
	tables
	inspector
	auditor
	operator
	physician
	instances
	corrector
	Write(context.Context, ...outbox.Message) (ids []string, err error)
	Store(relayName, instance string, lease time.Duration) (dialect.Store, error)
	Close() error
}

// tables are made and looked at before there is any work.
type tables interface {
	Migrate(context.Context) (applied []string, err error)
	CheckSchema(context.Context) (dialect.SchemaStatus, error)
	CheckShape(context.Context) error
}

// inspector answers what people ask.
type inspector interface {
	List(ctx context.Context, f relay.Filter, limit int, cursor string) (dialect.Page, error)
	Get(ctx context.Context, id string) (dialect.Message, []dialect.Attempt, error)
	Payload(ctx context.Context, id string) ([]byte, error)
	Lease(ctx context.Context, id int64) (now dialect.Time, lease *dialect.Lease, err error)
	Status(context.Context) (dialect.Status, error)
	Relays(context.Context) ([]dialect.RelayStatus, error)
	Waiting(context.Context) ([]dialect.Waits, error)
	Errors(ctx context.Context, f relay.Filter) (dialect.Errors, error)
	Flow(ctx context.Context, limit int) (dialect.Flow, error)
	Kinds(context.Context) (dialect.Kinds, error)
	Outcomes(context.Context) (outcomes []dialect.SendOutcome, more bool, err error)
}

// openEngine picks the engine that the URL names. It connects to nothing yet.
func openEngine(o dialect.Options) (database, error) {
	engine, url, err := dialect.EngineOf(o.URL)
	if err != nil {
		return nil, err
	}
	o.URL = url
	switch engine {
	case dialect.MySQL:
		return mysql.Open(o)
	case dialect.SQLite:
		return sqlite.Open(o)
	default:
		return postgres.Open(o)
	}
}

// migrations are those of an engine that checkEngine took, for a schema.
func migrations(engine, schema string) ([]dialect.Migration, error) {
	switch engine {
	case dialect.MySQL:
		return mysql.Migrations(schema)
	case dialect.SQLite:
		return sqlite.Migrations()
	default:
		return postgres.Migrations(schema)
	}
}

// script is another file of such an engine.
func script(engine, name, schema string) (string, error) {
	switch engine {
	case dialect.MySQL:
		return mysql.Script(name, schema)
	case dialect.SQLite:
		return sqlite.Script(name)
	default:
		return postgres.Script(name, schema)
	}
}

// checkEngine refuses a name that is none of an engine, and a schema where there are none.
func checkEngine(engine, schema string) error {
	switch engine {
	case dialect.Postgres, dialect.MySQL:
		return nil
	case dialect.SQLite:
		if schema != "" {
			return usagef("--schema: SQLite has no schemas: each file is an outbox of its own")
		}
		return nil
	}
	return usagef("--dialect: no engine %q: %s, %s (MariaDB too) or %s", engine, dialect.Postgres, dialect.MySQL, dialect.SQLite)
}
