package sqlite

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
	_ "modernc.org/sqlite" // registers the driver

	"github.com/outboxd/outboxd/dialect"
)

// DB is a database file with the tables of outboxd. SQLite has one writer at a time, so there is one connection that
// writes. It is enough for all of a relay: every transaction is a few short statements with no wait between them, and a
// renewal that comes behind a settlement waits for milliseconds.
type DB struct {
	*dialect.Inspector
	path    string // absolute
	writer  *sqlx.DB
	readers *sqlx.DB
}

// readConnections is how many look at the same time. Readers wait for nobody, and nobody for them.
const readConnections = 4

// connectionLife is how long a file that was replaced by another of its name may go unnoticed.
const connectionLife = time.Minute

// Open checks the options and makes the pools. It connects to nothing yet, and nothing but Migrate makes a file: one that
// does not exist is an error of the first statement.
func Open(o dialect.Options) (*DB, error) {
	switch {
	case o.Schema != "":
		return nil, errors.New("SQLite has no schemas: leave the schema out, and give each outbox a file of its own")
	case o.Pooler:
		return nil, errors.New("SQLite has no pooler: leave the pooler out")
	}
	path, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	d := &DB{path: path}
	if d.writer, err = d.pool(existing, writes, waits(o.Lease), synchronous(o.Lease)); err != nil {
		return nil, err
	}
	if d.readers, err = d.pool(existing, reads, waits(o.Lease)); err != nil {
		return nil, errors.Join(err, d.writer.Close())
	}
	d.writer.SetMaxOpenConns(1)
	d.readers.SetMaxOpenConns(readConnections)
	d.readers.SetMaxIdleConns(readConnections)
	d.Inspector = d.inspector()
	return d, nil
}

// Close ends all connections.
func (d *DB) Close() error { return errors.Join(d.writer.Close(), d.readers.Close()) }

// Settings of a connection, as SQLite's URIs and the driver name them.
const (
	existing = "mode=rw"           // the file has to exist
	creating = "mode=rwc"          // it is made
	writes   = "_txlock=immediate" // no transaction begins as a reader's: one could not become a writer's after another commit
	reads    = "_query_only=1"
)

// waits is how long a statement waits while another process writes: a sixth of a relay's lease.
func waits(lease time.Duration) string {
	wait := 5 * time.Second // of a person's command
	if lease > 0 {
		wait = min(wait, lease/6)
	}
	return busyTimeout(wait)
}

func busyTimeout(wait time.Duration) string {
	return "_busy_timeout=" + strconv.FormatInt(wait.Milliseconds(), 10)
}

// synchronous lets a relay commit without waiting for the disk: what a loss of power takes away is sent again. What people
// and applications write stays.
func synchronous(lease time.Duration) string {
	if lease > 0 {
		return "_synchronous=NORMAL"
	}
	return "_synchronous=FULL"
}

func (d *DB) pool(settings ...string) (*sqlx.DB, error) {
	path := filepath.ToSlash(d.path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive of Windows
	}
	file := url.URL{Path: path}
	pool, err := sqlx.Open("sqlite", "file://"+file.EscapedPath()+"?"+strings.Join(settings, "&"))
	if err != nil {
		return nil, err
	}
	pool.Mapper = reflectx.NewMapperFunc("json", strings.ToLower) // One name in SQL and JSON.
	pool.SetConnMaxLifetime(connectionLife)
	return pool, nil
}

// forget closes the connections that nobody uses now, so that the next ones open the file by its name again.
func (d *DB) forget() {
	for pool, idle := range map[*sqlx.DB]int{d.writer: 1, d.readers: readConnections} {
		pool.SetMaxIdleConns(0)
		pool.SetMaxIdleConns(idle)
	}
}

// read runs queries that only look, each on what is committed when it begins.
func (d *DB) read(_ context.Context, f func(sqlx.ExtContext) error) error { return f(d.readers) }

// write runs f in the transaction of the one writer, and commits if f returns no error. f must not wait for anything: no
// other process can write meanwhile.
func (d *DB) write(ctx context.Context, f func(*sqlx.Tx) error) error {
	return dialect.InTransaction(ctx, d.writer, nil, f)
}
