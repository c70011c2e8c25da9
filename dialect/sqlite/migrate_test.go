package sqlite

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/dialecttest"
)

func TestTables(t *testing.T) {
	t.Parallel()
	migrations, err := Migrations()
	if err != nil {
		t.Fatal(err)
	}
	m := dialecttest.Migration{
		Statements: splitStatements(migrations[0].SQL), Tables: len(tables()), Server: "SQLite 3.",
		Foreign: foreignTable, Lacks: "aggregateid",
	}
	dialecttest.TestTables(t, m, func(t *testing.T) dialecttest.Backend {
		f := newEmptyFile(t)
		f.exec(t, "CREATE TABLE shop_order (id INTEGER PRIMARY KEY)") // in a rollback journal, which a migrator changes
		return seen{f, t}
	})
}

const foreignTable = "CREATE TABLE outbox (id TEXT PRIMARY KEY, aggregatetype TEXT, payload TEXT)"

// A file with somebody else's table keeps its journal.
func TestForeignTableKeepsItsJournal(t *testing.T) {
	t.Parallel()
	f := newEmptyFile(t)
	f.exec(t, foreignTable)
	db := f.open(t, dialect.Options{})
	if _, err := db.Migrate(t.Context()); !errors.Is(err, dialect.ErrShape) {
		t.Errorf("Migrate says %v, want ErrShape", err)
	}
	var mode string
	if err := f.app.Get(&mode, "PRAGMA journal_mode"); err != nil || mode != "delete" {
		t.Errorf("the mode of a file that is not ours became %s, %v", mode, err)
	}
}

// The place of the tables is the file.
func TestPlace(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	if status := dialecttest.CheckState(t, f.open(t, dialect.Options{}), dialect.SchemaCurrent); status.Place != f.path {
		t.Errorf("the place is %q, want %q", status.Place, f.path)
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
	dialecttest.CheckState(t, db, dialect.SchemaNone)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	dialecttest.Migrate(t, db)
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

func TestFilesRunInShell(t *testing.T) {
	t.Parallel()
	shell := dialecttest.Client(t, "sqlite3")
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
	dialecttest.CheckMigrated(t, db)
	id := strings.TrimSpace(run("INSERT INTO outbox (type, payload) VALUES ('order_paid', 'né') RETURNING id;"))
	if payload, err := db.Payload(t.Context(), id); err != nil || string(payload) != "né" {
		t.Errorf("the payload that the shell wrote is %q, %v", payload, err)
	}
	drop, err := Script("drop.sql")
	if err != nil {
		t.Fatal(err)
	}
	run(drop)
	dialecttest.CheckState(t, db, dialect.SchemaNone)
}
