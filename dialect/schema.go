package dialect

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	outboxsql "github.com/outboxd/outboxd/sql"
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
	Place   string // where the tables are, such as schema "billing", for a sentence
}

// Usable tells whether a relay can work.
func (s SchemaStatus) Usable() bool { return s.State == SchemaCurrent || s.State == SchemaNewer }

// Err says in one line what is wrong and what to do (errors.Is ErrSchema); nil where a relay can work.
func (s SchemaStatus) Err() error {
	switch s.State {
	case SchemaCurrent, SchemaNewer:
		return nil
	case SchemaNone:
		return Refuse(ErrSchema, "the tables of outboxd are not in %s: run outboxd migrate up", s.Place)
	case SchemaRefused:
		return Refuse(ErrSchema, "the tables in %s are at version %d, which admits an outboxd built for version %d or later; this one was built for %d: install a newer outboxd",
			s.Place, s.Version, s.Admits, s.Needed)
	default:
		return Refuse(ErrSchema, "the tables in %s are unfinished, at version %d of %d: wait for the migration that is under way, or run outboxd migrate up",
			s.Place, s.Version, s.Needed)
	}
}

// FinishedVersion is a row of outbox_version.
type FinishedVersion struct{ Version, Admits int }

// Judge fills in what the versions that are there say to an outboxd that knows these migrations. Each newer version says by
// itself which relays it still admits, so the strictest counts.
func (s *SchemaStatus) Judge(found []FinishedVersion, known []Migration) {
	complete := true
	for _, m := range known {
		complete = complete && m.In(found)
		s.Needed = m.Version
	}
	for _, v := range found {
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

// Migration is one numbered file of sql/<engine>, rendered.
type Migration struct {
	Version int
	Name    string // such as 001_outbox.sql
	SQL     string // repeatable; its last statement inserts its own version row
}

// In tells whether the migration is among those that are finished.
func (m Migration) In(found []FinishedVersion) bool {
	for _, f := range found {
		if f.Version == m.Version {
			return true
		}
	}
	return false
}

// Migrations returns all migrations of an engine that this outboxd knows, in order. It needs no database. render puts in
// the schema.
func Migrations(engine string, render func(string) (string, error)) ([]Migration, error) {
	names, err := fs.Glob(outboxsql.Files, engine+"/[0-9]*.sql") // fs.Glob sorts by name.
	if err != nil {
		return nil, err
	}
	migrations := make([]Migration, 0, len(names))
	for _, name := range names {
		number, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("migration %s: its name does not begin with a number", name)
		}
		text, err := Script(engine, path.Base(name), render)
		if err != nil {
			return nil, err
		}
		migrations = append(migrations, Migration{Version: version, Name: path.Base(name), SQL: text})
	}
	return migrations, nil
}

// Script returns a file of sql/<engine>, such as roles.sql or drop.sql. An engine may lack one: errors.Is fs.ErrNotExist.
func Script(engine, name string, render func(string) (string, error)) (string, error) {
	text, err := fs.ReadFile(outboxsql.Files, path.Join(engine, name))
	if err != nil {
		return "", err
	}
	return render(string(text))
}
