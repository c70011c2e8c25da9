package dialecttest

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
)

// Migration is what TestTables has to know of an engine's tables.
type Migration struct {
	Statements []string // of the first file, in order
	Tables     int      // how many tables they make
	Foreign    string   // makes a table outbox that is not ours
	Lacks      string   // a column that it is told to lack
	Server     string   // how the server's version begins
}

// TestTables holds an engine to the life of its tables: made once, made to the end after any interruption, told apart from
// those of another version or of somebody else. open makes an outbox without tables.
func TestTables(t *testing.T, m Migration, open func(t *testing.T) Backend) {
	t.Run("twice", func(t *testing.T) {
		t.Parallel()
		MigrateTwice(t, open(t).Open(), m.Server)
	})
	t.Run("many at once", func(t *testing.T) {
		t.Parallel()
		migrateManyAtOnce(t, open(t))
	})
	t.Run("after any statement", func(t *testing.T) {
		t.Parallel()
		m.afterAnyStatement(t, open)
	})
	t.Run("foreign table", func(t *testing.T) {
		t.Parallel()
		m.foreignTable(t, open(t))
	})
	t.Run("versions", func(t *testing.T) {
		t.Parallel()
		testVersions(t, open)
	})
}

// CheckState fails the test where the tables are in another state.
func CheckState(t *testing.T, db Tables, want dialect.SchemaState) dialect.SchemaStatus {
	t.Helper()
	status, err := db.CheckSchema(t.Context())
	if err != nil {
		t.Fatalf("CheckSchema: %v", err)
	}
	if status.State != want {
		t.Fatalf("the schema is %s, want %s", status.State, want)
	}
	if (status.Err() == nil) != status.Usable() {
		t.Errorf("usable %v, and the error is %v", status.Usable(), status.Err())
	}
	return status
}

// Migrate makes the tables, and fails the test where a relay could not work with them.
func Migrate(t *testing.T, db Tables) {
	t.Helper()
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	CheckMigrated(t, db)
}

// CheckMigrated fails the test where the tables are not as this outboxd makes them.
func CheckMigrated(t *testing.T, db Tables) {
	t.Helper()
	CheckState(t, db, dialect.SchemaCurrent)
	if err := db.CheckShape(t.Context()); err != nil {
		t.Errorf("the migrated tables: %v", err)
	}
}

// MigrateTwice makes the tables where none are, and again, which does nothing.
func MigrateTwice(t *testing.T, db Tables, server string) {
	t.Helper()
	status := CheckState(t, db, dialect.SchemaNone)
	if err := status.Err(); err == nil || !strings.Contains(err.Error(), "outboxd migrate up") {
		t.Errorf("without tables the error is %v, want one that says outboxd migrate up", err)
	}
	if !strings.HasPrefix(status.Server, server) {
		t.Errorf("the server is %q, want %s", status.Server, server)
	}
	for _, want := range []int{1, 0} {
		applied, err := db.Migrate(t.Context())
		if err != nil || len(applied) != want {
			t.Fatalf("applied %v, %v, want %d files", applied, err, want)
		}
	}
	CheckMigrated(t, db)
}

func migrateManyAtOnce(t *testing.T, b Backend) {
	results := make(chan int, 4)
	failed := make(chan error, cap(results))
	for range cap(results) {
		db := b.Open()
		go func() {
			applied, err := db.Migrate(t.Context())
			results <- len(applied)
			failed <- err
		}()
	}
	files := 0
	for range cap(results) {
		files += <-results
		if err := <-failed; err != nil {
			t.Errorf("one of %d migrators at once: %v", cap(results), err)
		}
	}
	if files != 1 {
		t.Errorf("the file was applied %d times by %d migrators at once", files, cap(results))
	}
}

// afterAnyStatement migrates after a migrator that died: some servers commit each CREATE by itself, and another tool may
// run the printed file statement by statement.
func (m Migration) afterAnyStatement(t *testing.T, open func(t *testing.T) Backend) {
	makes := regexp.MustCompile(`(?m)^CREATE TABLE`)
	tables := 0
	for cut, statement := range m.Statements {
		if strings.HasPrefix(statement, "COMMENT") {
			continue
		}
		if makes.MatchString(statement) {
			tables++
		}
		b := open(t)
		for _, s := range m.Statements[:cut+1] {
			execute(t, b, s)
		}
		want := dialect.SchemaUnfinished
		if tables == 0 {
			want = dialect.SchemaNone // only functions so far
		} else if cut == len(m.Statements)-1 {
			want = dialect.SchemaCurrent
		}
		db := b.Open()
		CheckState(t, db, want)
		if _, err := db.Migrate(t.Context()); err != nil {
			t.Fatalf("run again after %.60q: %v", statement, err)
		}
		CheckState(t, db, dialect.SchemaCurrent)
		if err := db.CheckShape(t.Context()); err != nil {
			t.Errorf("run again after %.60q: %v", statement, err)
		}
	}
	if tables != m.Tables {
		t.Errorf("the file was cut at %d tables, want %d", tables, m.Tables)
	}
}

// Somebody else's table of the same name is left alone, and said to be so.
func (m Migration) foreignTable(t *testing.T, b Backend) {
	execute(t, b, m.Foreign)
	db := b.Open()
	for name, check := range map[string]func() error{
		"CheckSchema": func() error { _, err := db.CheckSchema(t.Context()); return err },
		"Migrate":     func() error { _, err := db.Migrate(t.Context()); return err },
	} {
		if err := check(); !errors.Is(err, dialect.ErrShape) || !strings.Contains(err.Error(), m.Lacks) {
			t.Errorf("%s says %v, want dialect.ErrShape and the missing column", name, err)
		}
	}
}

func testVersions(t *testing.T, open func(t *testing.T) Backend) {
	cases := []struct {
		name  string
		sql   string
		state dialect.SchemaState
		says  string // in the error; empty: none
	}{
		{"current", "", dialect.SchemaCurrent, ""},
		{"newer, and admits us", "INSERT INTO outbox_version (version, admits) VALUES (2, 1)", dialect.SchemaNewer, ""},
		{"newer, and does not", "INSERT INTO outbox_version (version, admits) VALUES (2, 1), (7, 5)", dialect.SchemaRefused, "version 7, which admits an outboxd built for version 5 or later; this one was built for 1"},
		{"a later one admits less", "INSERT INTO outbox_version (version, admits) VALUES (2, 2), (3, 1)", dialect.SchemaRefused, "version 3"},
		{"newer, without the first", "UPDATE outbox_version SET version = 2", dialect.SchemaUnfinished, "unfinished"},
		{"version missing", "DELETE FROM outbox_version", dialect.SchemaUnfinished, "unfinished, at version 0 of 1"},
		{"version table missing", "DROP TABLE outbox_version", dialect.SchemaUnfinished, "run outboxd migrate up"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			Migrate(t, b.Open())
			execute(t, b, c.sql)
			db := b.Open()
			err := CheckState(t, db, c.state).Err()
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v, want %q in it", err, c.says)
			}
			_, err = db.Migrate(t.Context())
			if refused := c.state == dialect.SchemaRefused; (err != nil) != refused {
				t.Errorf("Migrate: %v, want an error: %v", err, refused)
			}
			if status, looked := db.CheckSchema(t.Context()); err == nil && (looked != nil || !status.Usable()) {
				t.Errorf("migrated, and the schema is %s, %v", status.State, looked)
			}
		})
	}
}
