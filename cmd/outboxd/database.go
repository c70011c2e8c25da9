package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/outboxd/outboxd/dialect"
)

// sayEvery is how often a log tells that something is still waited for.
const sayEvery = 10 * time.Second

// openDatabase makes the pools of a person's command, without the time-outs of a relay. It connects to nothing yet.
func (l *loaded) openDatabase(env lookup) (database, error) { return l.openFor(env, "", 0) }

// openFor makes those of a relay of this name and lease.
func (l *loaded) openFor(env lookup, relayName string, lease time.Duration) (database, error) {
	if l.config.Database.source().given() == 0 {
		return nil, failf(exitConfiguration, "no database: set %s or %s, or database.url_file in the configuration",
			envDatabase, envDatabaseFile)
	}
	o, err := l.databaseOptions(env)
	if err != nil {
		return nil, failf(exitConfiguration, "database URL: %w", err)
	}
	o.Name, o.Lease = relayName, lease
	db, err := openEngine(o)
	if err != nil {
		return nil, failf(exitConfiguration, "database: %w", err)
	}
	return db, nil
}

// databaseOptions is what the configuration says of the database, its URL read from where it is.
func (l *loaded) databaseOptions(env lookup) (dialect.Options, error) {
	c := l.config.Database
	url, err := c.source().read(env)
	return dialect.Options{URL: url.Reveal(), Schema: c.Schema, Insecure: c.Insecure, Pooler: c.Pooler == "transaction"}, err
}

// checkDatabase lets the engine check all that it can without a connection: the URL with what goes with it, then the lease.
// Where no database is named, a variable of the environment will.
func (l *loaded) checkDatabase(env lookup) {
	if l.config.Database.source().given() == 0 {
		return
	}
	o, err := l.databaseOptions(env)
	if err == nil {
		err = tryOpen(o)
	}
	if err != nil {
		l.fail(l.config.Database.urlKey(), "%s", err)
		return
	}
	o.Lease = l.config.Relay.Lease
	if err := tryOpen(o); err != nil {
		l.fail("relay.lease", "%s", err)
	}
}

func tryOpen(o dialect.Options) error {
	db, err := openEngine(o)
	if err != nil {
		return err
	}
	return db.Close()
}

// connect makes the pools of a person's command, and has the configuration that says where the database is.
func (p *program) connect() (*loaded, database, error) {
	l, err := p.load()
	if err != nil {
		return nil, nil, err
	}
	db, err := l.openDatabase(p.env)
	return l, db, err
}

// open is connect for a command that asks the configuration for no more.
func (p *program) open() (database, error) {
	_, db, err := p.connect()
	return db, err
}

// waiter waits until the database answers and its tables can be worked with.
type waiter struct {
	db      tables
	migrate func(context.Context) ([]string, error) // nil: somebody else does
	health  *health
	log     *slog.Logger
	said    time.Time
}

// wait looks until the relay can start, or only once. It comes back with an error where waiting cannot help: no rights, a
// wrong password, another product, a table of another shape, tables that are too new. A database that is away or not
// migrated yet is waited for, with one line per 10 s.
func (w *waiter) wait(ctx context.Context, once bool) error {
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval, pace.MaxInterval, pace.MaxElapsedTime = 200*time.Millisecond, 2*time.Second, 0
	var limited backoff.BackOff = pace
	if once {
		limited = &backoff.StopBackOff{}
	}
	err := backoff.RetryNotify(func() error { return w.try(ctx) }, backoff.WithContext(limited, ctx), w.say)
	if err != nil && ctx.Err() == nil {
		return err
	}
	w.health.waiting.Store(nil)
	return ctx.Err()
}

func (w *waiter) say(err error, _ time.Duration) {
	words := err.Error()
	w.health.waiting.Store(&words)
	if time.Since(w.said) >= sayEvery {
		w.said = time.Now()
		w.log.Warn("waiting for the database", "err", words)
	}
}

// try looks once, and migrates if it is told to.
func (w *waiter) try(ctx context.Context) error {
	if w.migrate != nil {
		applied, err := w.migrate(ctx)
		if err != nil {
			return lasting(err)
		}
		for _, name := range applied {
			w.log.Info("migration applied", "name", name)
		}
	}
	status, err := w.db.CheckSchema(ctx)
	if err != nil {
		return lasting(err)
	}
	switch status.State {
	case dialect.SchemaCurrent:
	case dialect.SchemaNewer:
		w.log.Warn("the tables are newer than this outboxd, and admit it", "version", status.Version, "needed", status.Needed)
	case dialect.SchemaRefused:
		return backoff.Permanent(status.Err())
	case dialect.SchemaNone, dialect.SchemaUnfinished:
		return status.Err()
	}
	if err := w.db.CheckShape(ctx); err != nil {
		return lasting(err)
	}
	return w.hint(ctx)
}

// hinter is an engine that may have something to say of a server on which a relay works.
type hinter interface {
	Hints(context.Context) ([]string, error)
}

func (w *waiter) hint(ctx context.Context) error {
	h, ok := w.db.(hinter)
	if !ok {
		return nil
	}
	hints, err := h.Hints(ctx)
	for _, words := range hints {
		w.log.Warn("the database server", "hint", words)
	}
	return err
}

// lasting marks an error that time alone does not mend.
func lasting(err error) error {
	passing := []dialect.Class{
		dialect.Away, dialect.Full, dialect.Locked, dialect.Deadlock, dialect.Conflict,
		dialect.Cancelled, dialect.ReadOnly, dialect.Missing,
	}
	if slices.Contains(passing, dialect.ClassOf(err)) {
		return err
	}
	return backoff.Permanent(err)
}

// migrate brings the tables up to date, over a connection of its own which has no time-outs of a relay, and names the
// files that were applied.
func (l *loaded) migrate(ctx context.Context, env lookup) (applied []string, err error) {
	db, err := l.openDatabase(env)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Migrate(ctx)
}

// databaseCode is the exit code of an error that a look at the database ended in.
func databaseCode(err error) int {
	outOfReach := []dialect.Class{
		dialect.Away, dialect.Full, dialect.Login, dialect.Missing, dialect.ReadOnly,
		dialect.Cancelled, dialect.Pooler,
	}
	class := dialect.ClassOf(err)
	switch {
	case class == dialect.Rights:
		return exitNotAllowed
	case slices.Contains(outOfReach, class), errors.Is(err, dialect.ErrServer), errors.Is(err, dialect.ErrSchema),
		errors.Is(err, dialect.ErrShape):
		return exitDatabase
	}
	return exitUnexpected
}
