package postgres

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
	outboxsql "github.com/outboxd/outboxd/sql"
)

// connect opens the schema as outboxd does.
func (d testDatabase) connect(t testing.TB, o dialect.Options) *DB {
	t.Helper()
	o.URL, o.Schema = d.url, d.schema
	db, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

func checkState(t *testing.T, db *DB, want dialect.SchemaState) dialect.SchemaStatus {
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

func TestMigrateTwice(t *testing.T) {
	t.Parallel()
	for name, db := range bothWays(t, dialect.Options{}) {
		if err := checkState(t, db, dialect.SchemaNone).Err(); err == nil || !strings.Contains(err.Error(), "outboxd migrate up") {
			t.Errorf("%s: without tables the error is %v, want one that says outboxd migrate up", name, err)
		}
		for _, want := range []int{1, 0} {
			applied, err := db.Migrate(t.Context())
			if err != nil || len(applied) != want {
				t.Fatalf("%s: applied %v, %v, want %d files", name, applied, err, want)
			}
		}
		checkState(t, db, dialect.SchemaCurrent)
		if err := db.CheckShape(t.Context()); err != nil {
			t.Errorf("%s: the migrated tables: %v", name, err)
		}
	}
}

func TestMigrateMakesTheSchema(t *testing.T) {
	t.Parallel()
	d := newSchema(t)
	d.schema += ` "Mixed's` // A name that is wrong wherever it is not quoted.
	db := d.connect(t, dialect.Options{})
	t.Cleanup(func() {
		quoted, err := quote(d.schema)
		if err != nil {
			t.Fatal(err)
		}
		d.exec(t, "DROP SCHEMA "+quoted+" CASCADE")
	})
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkState(t, db, dialect.SchemaCurrent)
	if err := db.CheckShape(t.Context()); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"roles.sql", "drop.sql"} {
		text, err := Script(name, d.schema)
		if err != nil {
			t.Fatal(err)
		}
		d.exec(t, text)
	}
	checkState(t, db, dialect.SchemaNone)
}

func TestMigrateTwoAtOnce(t *testing.T) {
	t.Parallel()
	d := newSchema(t)
	results := make(chan int, 4)
	failed := make(chan error, cap(results))
	for range cap(results) {
		db := d.connect(t, dialect.Options{})
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

// Another tool may run the printed file statement by statement and die after any of them.
func TestMigrateAfterAnyStatement(t *testing.T) {
	t.Parallel()
	migrations, err := Migrations("")
	if err != nil {
		t.Fatal(err)
	}
	statements := splitStatements(migrations[0].SQL)
	tables := 0
	for cut, statement := range statements {
		if strings.HasPrefix(statement, "COMMENT") {
			continue
		}
		if strings.HasPrefix(statement, "CREATE TABLE") {
			tables++
		}
		d := newSchema(t)
		for _, s := range statements[:cut+1] {
			d.exec(t, s)
		}
		want := dialect.SchemaUnfinished
		if tables == 0 {
			want = dialect.SchemaNone // Only functions so far.
		} else if cut == len(statements)-1 {
			want = dialect.SchemaCurrent
		}
		db := d.connect(t, dialect.Options{})
		checkState(t, db, want)
		if _, err := db.Migrate(t.Context()); err != nil {
			t.Fatalf("run again after %.60q: %v", statement, err)
		}
		checkState(t, db, dialect.SchemaCurrent)
		if err := db.CheckShape(t.Context()); err != nil {
			t.Errorf("run again after %.60q: %v", statement, err)
		}
	}
	if tables != len(columns()) {
		t.Errorf("the file was cut at %d tables, want %d", tables, len(columns()))
	}
}

// splitStatements cuts at semicolons at the end of a line, outside of dollar quotes.
func splitStatements(text string) (statements []string) {
	var current strings.Builder
	quoted := false
	for line := range strings.Lines(text) {
		if current.Len() == 0 && (strings.HasPrefix(line, "--") || strings.TrimSpace(line) == "") {
			continue
		}
		current.WriteString(line)
		tag := "$$"
		if strings.Contains(current.String(), "$do$") {
			tag = "$do$"
		}
		quoted = strings.Count(current.String(), tag)%2 == 1
		if !quoted && strings.HasSuffix(line, ";\n") {
			statements = append(statements, current.String())
			current.Reset()
		}
	}
	return statements
}

// A migrator that is killed in the middle of its transaction leaves nothing, and the next one does the work.
func TestMigrateKilled(t *testing.T) {
	t.Parallel()
	d := newSchema(t)
	db := d.connect(t, dialect.Options{Name: d.schema})
	holder, err := d.db.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(lockMigrations, d.schema); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := db.Migrate(t.Context())
		done <- err
	}()
	const kill = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'outboxd/' || $1 AND wait_event = 'advisory'`
	eventually(t, "the migrator to wait for the lock and be killed", func() bool {
		var killed int
		if err := d.db.Get(&killed, kill, d.schema); err != nil {
			t.Fatal(err)
		}
		return killed == 1
	})
	if err := <-done; dialect.ClassOf(err) != dialect.Away {
		t.Errorf("a killed migrator says %v, want class %s", err, dialect.Away)
	}
	checkState(t, db, dialect.SchemaNone)
	if err := holder.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkState(t, db, dialect.SchemaCurrent)
}

func TestSchemaVersions(t *testing.T) {
	t.Parallel()
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
		{"version missing", "DELETE FROM outbox_version", dialect.SchemaUnfinished, "unfinished, at version 0 of 1"},
		{"version table missing", "DROP TABLE outbox_version", dialect.SchemaUnfinished, "run outboxd migrate up"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			d.exec(t, c.sql)
			db := d.connect(t, dialect.Options{})
			err := checkState(t, db, c.state).Err()
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v, want %q in it", err, c.says)
			}
			_, err = db.Migrate(t.Context())
			if refused := c.state == dialect.SchemaRefused; (err != nil) != refused {
				t.Errorf("Migrate: %v, want an error: %v", err, refused)
			}
		})
	}
}

// Somebody else's table of the same name is left alone, and said to be so.
func TestMigrateForeignTable(t *testing.T) {
	t.Parallel()
	d := newSchema(t)
	d.exec(t, "CREATE TABLE outbox (id uuid PRIMARY KEY, aggregatetype text, payload jsonb)")
	db := d.connect(t, dialect.Options{})
	for name, f := range map[string]func() error{
		"CheckSchema": func() error { _, err := db.CheckSchema(t.Context()); return err },
		"Migrate":     func() error { _, err := db.Migrate(t.Context()); return err },
	} {
		if err := f(); !errors.Is(err, dialect.ErrShape) || !strings.Contains(err.Error(), "aggregateid") {
			t.Errorf("%s says %v, want dialect.ErrShape and the missing column", name, err)
		}
	}
}

func TestFilesRunInPsql(t *testing.T) {
	t.Parallel()
	psql, err := exec.LookPath("psql")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("psql is not installed")
		}
		t.Skip("psql is not installed")
	}
	d := newSchema(t)
	files := []string{"001_outbox.sql", "001_outbox.sql", "roles.sql", "roles.sql"}
	audits, err := outboxsql.Files.ReadDir("postgres/audit")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range audits {
		files = append(files, "audit/"+a.Name())
	}
	run := func(file, text string) {
		cmd := exec.CommandContext(t.Context(), psql, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--dbname="+d.url, "--file=-")
		cmd.Env = append(os.Environ(), "PGOPTIONS=-c search_path="+d.schema+" -c client_min_messages=warning")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("psql --file %s: %v\n%s", file, err, out)
		}
	}
	for _, file := range files {
		text, err := Script(file, "")
		if err != nil {
			t.Fatal(err)
		}
		run(file, text)
	}
	checkState(t, d.connect(t, dialect.Options{}), dialect.SchemaCurrent)
	drop, err := Script("drop.sql", d.schema)
	if err != nil {
		t.Fatal(err)
	}
	run("drop.sql, rendered", drop)
	checkState(t, d.connect(t, dialect.Options{}), dialect.SchemaNone)
}
