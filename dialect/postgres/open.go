package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
	"github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
)

// DB is a database with the tables of outboxd, in two small pools: renewals must not wait until a claim's or a
// settlement's connection is free.
type DB struct {
	*dialect.Inspector

	work     *sqlx.DB // claim, load, settle
	keep     *sqlx.DB // renew, watch, reclaim, finish, beat, and what people ask
	pooler   bool
	schema   string
	settings string // pooler only: SET LOCAL of what a direct connection has from its start
	bare     pq.Config
}

// Connections of each pool. Few claimers with big batches are fastest.
const (
	workConnections = 4
	keepConnections = 3
)

// connectionLife bounds how long a session can go on that nobody would have again: with another address behind the
// server's name, or settings of the role that have changed.
const connectionLife = 5 * time.Minute

// Open checks the options and makes the pools. It connects to nothing yet; a database that does not answer is an error of
// the first statement. No error contains the URL or a part of it.
func Open(o dialect.Options) (*DB, error) {
	if _, err := quote(o.Schema); o.Schema != "" && err != nil {
		return nil, err
	}
	config, err := parseURL(o.URL, o.Insecure)
	if err != nil {
		return nil, err
	}
	db := &DB{pooler: o.Pooler, schema: o.Schema, bare: config}
	db.Inspector = db.inspector()
	limits := limitsOf(o.Lease)
	if o.Pooler {
		db.settings = limits.setLocal()
	}
	if db.work, err = pool(config, o, limits, workConnections); err != nil {
		return nil, err
	}
	if db.keep, err = pool(config, o, limits, keepConnections); err != nil {
		return nil, errors.Join(err, db.work.Close())
	}
	return db, nil
}

// Close ends all connections.
func (d *DB) Close() error { return errors.Join(d.work.Close(), d.keep.Close()) }

func pool(config pq.Config, o dialect.Options, limits limits, connections int) (*sqlx.DB, error) {
	config = config.Clone()
	config.ApplicationName = "outboxd"
	if o.Name != "" {
		config.ApplicationName = "outboxd/" + o.Name
	}
	config.ConnectTimeout = 5 * time.Second
	config.TargetSessionAttrs = pq.TargetSessionAttrsReadWrite
	config.BinaryParameters = o.Pooler
	if !o.Pooler {
		for _, s := range limits.settings() {
			config.Runtime[s.name] = s.value
		}
	}
	connector, err := pq.NewConnectorConfig(config)
	if err != nil {
		return nil, errURL
	}
	connector.Dialer(dialer{patience: limits.patience})
	db := sqlx.NewDb(sql.OpenDB(connector), "postgres")
	db.Mapper = reflectx.NewMapperFunc("json", strings.ToLower) // One name in SQL and JSON.
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxLifetime(connectionLife)
	return db, nil
}

// shed ends all connections that nobody uses just now.
func (d *DB) shed() {
	d.work.SetMaxIdleConns(0)
	d.work.SetMaxIdleConns(workConnections)
	d.keep.SetMaxIdleConns(0)
	d.keep.SetMaxIdleConns(keepConnections)
}

// read runs queries that only look: as they are on a direct connection, whose session has all settings, and in a
// transaction behind a pooler.
func (d *DB) read(ctx context.Context, f func(sqlx.ExtContext) error) error {
	if !d.pooler {
		return f(d.keep)
	}
	return d.transaction(ctx, d.keep, func(tx *sqlx.Tx) error { return f(tx) })
}

// transaction runs f in a READ COMMITTED transaction under the settings of a relay's session. It commits if f returns no
// error.
func (d *DB) transaction(ctx context.Context, pool *sqlx.DB, f func(*sqlx.Tx) error) error {
	return dialect.InTransaction(ctx, pool, &sql.TxOptions{Isolation: sql.LevelReadCommitted}, func(tx *sqlx.Tx) error {
		if d.settings != "" {
			if _, err := tx.ExecContext(ctx, d.settings); err != nil {
				return fmt.Errorf("settings of the transaction: %w", err)
			}
		}
		return f(tx)
	})
}
