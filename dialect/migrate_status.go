package dialect

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
)

// SchemaState says whether a relay can work with the tables that are there.
type SchemaState string

// All states of a schema.
const (
	SchemaNone       SchemaState = "none"       // no table of outboxd
	SchemaUnfinished SchemaState = "unfinished" // some, or an older version: a migration is missing or under way
	SchemaCurrent    SchemaState = "current"    // what this outboxd was built for
	SchemaNewer      SchemaState = "newer"      // newer, and it admits this outboxd
	SchemaRefused    SchemaState = "refused"    // newer, and it does not
)

// SchemaStatus is what CheckSchema found.
type SchemaStatus struct {
	State   SchemaState
	Version int    // the newest that is finished; 0: none
	Needed  int    // what this outboxd was built for
	Admits  int    // the oldest version that a relay may be built for to work here; 0: none
	Server  string // the server's version, such as 15.18
	Schema  string // as it was configured; empty: the search_path
}

// Usable tells whether a relay can work.
func (s SchemaStatus) Usable() bool { return s.State == SchemaCurrent || s.State == SchemaNewer }

// Err says in one line what is wrong and what to do (errors.Is ErrSchema); nil where a relay can work.
func (s SchemaStatus) Err() error {
	switch s.State {
	case SchemaCurrent, SchemaNewer:
		return nil
	case SchemaNone:
		return refuse(ErrSchema, "the tables of outboxd are not in %s: run outboxd migrate up", s.place())
	case SchemaRefused:
		return refuse(ErrSchema, "the tables in %s are at version %d, which admits an outboxd built for version %d or later; this one was built for %d: install a newer outboxd",
			s.place(), s.Version, s.Admits, s.Needed)
	default:
		return refuse(ErrSchema, "the tables in %s are unfinished, at version %d of %d: wait for the migration that is under way, or run outboxd migrate up",
			s.place(), s.Version, s.Needed)
	}
}

func (s SchemaStatus) place() string {
	if s.Schema == "" {
		return "the search_path"
	}
	return fmt.Sprintf("schema %q", s.Schema)
}

// CheckSchema looks at the version of the tables, without locks. The error is a database fault, a server that outboxd does
// not work on (errors.Is ErrServer), or a table outbox that is not ours (errors.Is ErrShape); what the tables lack is in
// the status.
func (d *DB) CheckSchema(ctx context.Context) (SchemaStatus, error) {
	status := SchemaStatus{State: SchemaNone, Schema: d.schema}
	err := d.read(ctx, func(q sqlx.ExtContext) error {
		var err error
		if status.Server, err = checkServer(ctx, q); err != nil {
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
			status.State = SchemaUnfinished
		}
		status.judge(versions, migrations)
		if status.State == SchemaUnfinished && versions.outbox {
			return d.checkColumns(ctx, q, "outbox")
		}
		return nil
	})
	return status, wrap("check the schema", err)
}

// judge fills in versions. Each newer version row says by itself which relays it still admits, so the strictest counts.
func (s *SchemaStatus) judge(have versions, known []Migration) {
	complete := true
	for _, m := range known {
		complete = complete && have.has(m.Version)
		s.Needed = m.Version
	}
	for _, v := range have.finished {
		s.Version = max(s.Version, v.Version)
		s.Admits = max(s.Admits, v.Admits)
	}
	switch {
	case s.Admits > s.Needed:
		s.State = SchemaRefused
	case complete && s.Version > s.Needed:
		s.State = SchemaNewer
	case complete:
		s.State = SchemaCurrent
	}
}

// versions is what is there of the tables.
type versions struct {
	tables   int  // how many of outbox and outbox_version exist
	outbox   bool // whether outbox does
	finished []finishedVersion
}

type finishedVersion struct{ Version, Admits int }

func (v versions) has(version int) bool {
	for _, f := range v.finished {
		if f.Version == version {
			return true
		}
	}
	return false
}

// readVersions looks for the tables before it reads one: a statement that fails would end the transaction.
func (d *DB) readVersions(ctx context.Context, q sqlx.ExtContext) (v versions, err error) {
	var hasVersion bool
	row := q.QueryRowxContext(ctx, `SELECT to_regclass($1) IS NOT NULL, to_regclass($2) IS NOT NULL`, d.name("outbox"), d.name("outbox_version"))
	if err := row.Scan(&v.outbox, &hasVersion); err != nil {
		return v, err
	}
	if v.outbox {
		v.tables++
	}
	if !hasVersion {
		return v, nil
	}
	v.tables++
	query, err := render(`SELECT version, admits FROM /*schema.*/outbox_version ORDER BY version`, d.schema)
	if err != nil {
		return v, err
	}
	return v, sqlx.SelectContext(ctx, q, &v.finished, query)
}

// name is a table's name as a value, for functions that take a regclass.
func (d *DB) name(table string) string {
	quoted, err := quote(d.schema)
	if err != nil {
		return table // Only an empty schema gets here: Open refuses all others that cannot be quoted.
	}
	return quoted + "." + table
}

// checkServer refuses what is not PostgreSQL 13 or later.
func checkServer(ctx context.Context, q sqlx.ExtContext) (version string, err error) {
	var full string
	var number int
	row := q.QueryRowxContext(ctx, `SELECT version(), current_setting('server_version'), current_setting('server_version_num')::integer`)
	if err := row.Scan(&full, &version, &number); err != nil {
		return "", err
	}
	version, _, _ = strings.Cut(version, " ")
	switch {
	case !strings.HasPrefix(full, "PostgreSQL "):
		return version, refuse(ErrServer, "the server speaks PostgreSQL's protocol and is another product: outboxd needs PostgreSQL 13 or later")
	case number < 130000:
		return version, refuse(ErrServer, "PostgreSQL %s is too old: outboxd needs 13 or later", version)
	}
	return version, nil
}
