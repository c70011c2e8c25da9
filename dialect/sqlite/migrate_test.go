package sqlite

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
)

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
	f := newEmptyFile(t)
	f.exec(t, "CREATE TABLE shop_order (id INTEGER PRIMARY KEY)")
	db := f.open(t, dialect.Options{})
	if err := checkState(t, db, dialect.SchemaNone).Err(); err == nil || !strings.Contains(err.Error(), "outboxd migrate up") {
		t.Errorf("without tables the error is %v, want one that says outboxd migrate up", err)
	}
	for _, want := range []int{1, 0} {
		applied, err := db.Migrate(t.Context())
		if err != nil || len(applied) != want {
			t.Fatalf("applied %v, %v, want %d files", applied, err, want)
		}
	}
	if status := checkState(t, db, dialect.SchemaCurrent); !strings.HasPrefix(status.Server, "3.") || status.Place != f.path {
		t.Errorf("the status is %+v", status)
	}
	if err := db.CheckShape(t.Context()); err != nil {
		t.Errorf("the migrated tables: %v", err)
	}
}

func TestMigrateTwoAtOnce(t *testing.T) {
	t.Parallel()
	f := newEmptyFile(t)
	f.exec(t, "CREATE TABLE shop_order (id INTEGER PRIMARY KEY)") // in a rollback journal, which one of them changes
	results := make(chan int, 4)
	failed := make(chan error, cap(results))
	for range cap(results) {
		db := f.open(t, dialect.Options{})
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
	migrations, err := Migrations()
	if err != nil {
		t.Fatal(err)
	}
	statements := splitStatements(migrations[0].SQL)
	made := 0
	for cut, statement := range statements {
		if strings.HasPrefix(statement, "CREATE TABLE") {
			made++
		}
		f := newEmptyFile(t)
		for _, s := range statements[:cut+1] {
			f.exec(t, s)
		}
		want := dialect.SchemaUnfinished
		if made == 0 {
			want = dialect.SchemaNone
		} else if cut == len(statements)-1 {
			want = dialect.SchemaCurrent
		}
		db := f.open(t, dialect.Options{})
		checkState(t, db, want)
		if _, err := db.Migrate(t.Context()); err != nil {
			t.Fatalf("run again after %.60q: %v", statement, err)
		}
		checkState(t, db, dialect.SchemaCurrent)
		if err := db.CheckShape(t.Context()); err != nil {
			t.Errorf("run again after %.60q: %v", statement, err)
		}
	}
	if made != len(tables()) {
		t.Errorf("the file was cut at %d tables, want %d", made, len(tables()))
	}
}

// splitStatements cuts at semicolons at the end of a line.
func splitStatements(text string) (statements []string) {
	var current strings.Builder
	for line := range strings.Lines(text) {
		if current.Len() == 0 && (strings.HasPrefix(line, "--") || strings.TrimSpace(line) == "") {
			continue
		}
		current.WriteString(line)
		if strings.HasSuffix(line, ";\n") {
			statements = append(statements, current.String())
			current.Reset()
		}
	}
	return statements
}

// A migrator that is killed in the middle of its transaction leaves nothing, and the next one does the work.
func TestMigrateKilled(t *testing.T) {
	t.Parallel()
	f := newEmptyFile(t)
	f.exec(t, "PRAGMA journal_mode = WAL")
	child, said := f.child(t, "TestHalfMigration")
	if line := said(); line != "half way" {
		t.Fatalf("the migrator says %q", line)
	}
	db := f.open(t, dialect.Options{})
	checkState(t, db, dialect.SchemaNone)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkState(t, db, dialect.SchemaCurrent)
	if err := db.CheckShape(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestHalfMigration is the migrator of TestMigrateKilled.
func TestHalfMigration(t *testing.T) {
	path := os.Getenv(childFile)
	if path == "" {
		t.Skip("is run as a child of another test")
	}
	migrations, err := Migrations()
	if err != nil {
		t.Fatal(err)
	}
	tx, err := testFile{path: path}.connect(t).Beginx()
	if err != nil {
		t.Fatal(err)
	}
	statements := splitStatements(migrations[0].SQL)
	for _, s := range statements[:len(statements)/2] {
		if _, err := tx.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	say(t, "half way")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until it is killed, or its parent is
	_ = tx.Rollback()
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
		{"newer, without the first", "UPDATE outbox_version SET version = 2", dialect.SchemaUnfinished, "unfinished"},
		{"version missing", "DELETE FROM outbox_version", dialect.SchemaUnfinished, "unfinished, at version 0 of 1"},
		{"version table missing", "DROP TABLE outbox_version", dialect.SchemaUnfinished, "run outboxd migrate up"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFile(t)
			f.exec(t, c.sql)
			db := f.open(t, dialect.Options{})
			err := checkState(t, db, c.state).Err()
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v, want %q in it", err, c.says)
			}
			_, err = db.Migrate(t.Context())
			if refused := c.state == dialect.SchemaRefused; (err != nil) != refused {
				t.Errorf("Migrate: %v, want an error: %v", err, refused)
			}
			if err == nil && !checkUsable(t, db) {
				t.Error("migrated, and not usable")
			}
		})
	}
}

func checkUsable(t *testing.T, db *DB) bool {
	t.Helper()
	status, err := db.CheckSchema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return status.Usable()
}

// Somebody else's table of the same name is left alone, and said to be so.
func TestMigrateForeignTable(t *testing.T) {
	t.Parallel()
	f := newEmptyFile(t)
	f.exec(t, "CREATE TABLE outbox (id TEXT PRIMARY KEY, aggregatetype TEXT, payload TEXT)")
	db := f.open(t, dialect.Options{})
	for name, check := range map[string]func() error{
		"CheckSchema": func() error { _, err := db.CheckSchema(t.Context()); return err },
		"Migrate":     func() error { _, err := db.Migrate(t.Context()); return err },
	} {
		if err := check(); !errors.Is(err, dialect.ErrShape) || !strings.Contains(err.Error(), "aggregateid") {
			t.Errorf("%s says %v, want dialect.ErrShape and the missing column", name, err)
		}
	}
	var mode string
	if err := f.app.Get(&mode, "PRAGMA journal_mode"); err != nil || mode != "delete" {
		t.Errorf("the mode of a file that is not ours became %s, %v", mode, err)
	}
}

func TestFilesRunInShell(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sqlite3")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("sqlite3 is not installed")
		}
		t.Skip("sqlite3 is not installed")
	}
	f := newEmptyFile(t)
	run := func(text string) string {
		cmd := exec.CommandContext(t.Context(), shell, "-bail", f.path)
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("sqlite3: %v\n%s", err, out)
		}
		return string(out)
	}
	for _, file := range []string{"001_outbox.sql", "001_outbox.sql"} {
		text, err := Script(file)
		if err != nil {
			t.Fatal(err)
		}
		run(text)
	}
	db := f.open(t, dialect.Options{})
	checkState(t, db, dialect.SchemaCurrent)
	if err := db.CheckShape(t.Context()); err != nil {
		t.Error(err)
	}
	id := strings.TrimSpace(run("INSERT INTO outbox (type, payload) VALUES ('order_paid', 'né') RETURNING id;"))
	if payload, err := db.Payload(t.Context(), id); err != nil || string(payload) != "né" {
		t.Errorf("the payload that the shell wrote is %q, %v", payload, err)
	}
	drop, err := Script("drop.sql")
	if err != nil {
		t.Fatal(err)
	}
	run(drop)
	checkState(t, db, dialect.SchemaNone)
}
