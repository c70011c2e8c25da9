package mysql

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"

	"github.com/outboxd/outboxd/dialect"
)

// DB is a database with the tables of outboxd, in two small pools: renewals must not wait until a claim's or a
// settlement's connection is free.
type DB struct {
	*dialect.Inspector

	work   *sqlx.DB // claim, load, settle
	keep   *sqlx.DB // renew, watch, reclaim, finish, beat, and what people ask
	schema string   // the database that the tables are in; empty: the one in use
	place  string   // the same in a sentence
}

// Connections of each pool. Few claimers with big batches are fastest.
const (
	workConnections = 4
	keepConnections = 3
)

// connectionLife ends sessions on a server that became a standby without ending them itself: they would fail for ever.
const connectionLife = 5 * time.Minute

// Open checks the options and makes the pools. It connects to nothing yet; a database that does not answer is an error of
// the first statement. No error contains the URL or a part of it. A Lease must be 6 s at least, or 0.
func Open(o dialect.Options) (*DB, error) {
	if _, err := quote(o.Schema); o.Schema != "" && err != nil {
		return nil, err
	}
	if o.Lease != 0 && o.Lease < shortestLease {
		return nil, errLease
	}
	config, err := parseURL(o.URL, o.Insecure)
	if err != nil {
		return nil, err
	}
	if o.Schema == "" && config.DBName == "" {
		return nil, errNoDatabase
	}
	db := &DB{schema: o.Schema, place: placeOf(o.Schema, config.DBName)}
	if config.DBName == "" {
		// MySQL wants some database to be in use where a statement has a JSON_TABLE, and ours may not exist yet.
		config.DBName = "information_schema"
	}
	db.Inspector = db.inspector()
	if db.work, err = pool(config, o, workConnections); err != nil {
		return nil, err
	}
	if db.keep, err = pool(config, o, keepConnections); err != nil {
		return nil, errors.Join(err, db.work.Close())
	}
	return db, nil
}

// Close ends all connections.
func (d *DB) Close() error { return errors.Join(d.work.Close(), d.keep.Close()) }

func pool(config *mysql.Config, o dialect.Options, connections int) (*sqlx.DB, error) {
	limits := limitsOf(o.Lease)
	config = config.Clone()
	config.ConnectionAttributes = "program_name:outboxd"
	if o.Name != "" {
		// Colons and commas part the attributes.
		config.ConnectionAttributes += "/" + strings.NewReplacer(":", "_", ",", "_").Replace(o.Name)
	}
	config.ReadTimeout, config.WriteTimeout = limits.patience, limits.patience
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, errURL
	}
	db := sqlx.NewDb(sql.OpenDB(&settled{Connector: connector, settings: limits.settings()}), "mysql")
	db.Mapper = reflectx.NewMapperFunc("json", strings.ToLower) // One name in SQL and JSON.
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxLifetime(connectionLife)
	db.SetConnMaxIdleTime(limits.idle / 2) // before the server ends it
	return db, nil
}

// read runs queries that only look.
func (d *DB) read(_ context.Context, f func(sqlx.ExtContext) error) error { return f(d.keep) }

// transaction runs f in a transaction, READ COMMITTED as all of the session's. It commits if f returns no error.
func (d *DB) transaction(ctx context.Context, pool *sqlx.DB, f func(*sqlx.Tx) error) error {
	return dialect.InTransaction(ctx, pool, nil, f)
}
