package postgres

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/dialecttest"
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

func TestTables(t *testing.T) {
	t.Parallel()
	migrations, err := Migrations("")
	if err != nil {
		t.Fatal(err)
	}
	m := dialecttest.Migration{
		Statements: splitStatements(migrations[0].SQL), Tables: len(columns()),
		Foreign: "CREATE TABLE outbox (id uuid PRIMARY KEY, aggregatetype text, payload jsonb)", Lacks: "aggregateid",
	}
	dialecttest.TestTables(t, m, func(t *testing.T) dialecttest.Backend { return seen{newSchema(t), t} })
}

func TestMigrateTwiceBothWays(t *testing.T) {
	t.Parallel()
	for name, db := range bothWays(t, dialect.Options{}) {
		t.Run(name, func(t *testing.T) { dialecttest.MigrateTwice(t, db, "") })
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
	dialecttest.Migrate(t, db)
	for _, name := range []string{"roles.sql", "drop.sql"} {
		text, err := Script(name, d.schema)
		if err != nil {
			t.Fatal(err)
		}
		d.exec(t, text)
	}
	dialecttest.CheckState(t, db, dialect.SchemaNone)
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
	dialecttest.CheckState(t, db, dialect.SchemaNone)
	if err := holder.Rollback(); err != nil {
		t.Fatal(err)
	}
	dialecttest.Migrate(t, db)
}

func TestFilesRunInPsql(t *testing.T) {
	t.Parallel()
	psql := dialecttest.Client(t, "psql")
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
	dialecttest.CheckState(t, d.connect(t, dialect.Options{}), dialect.SchemaCurrent)
	drop, err := Script("drop.sql", d.schema)
	if err != nil {
		t.Fatal(err)
	}
	run("drop.sql, rendered", drop)
	dialecttest.CheckState(t, d.connect(t, dialect.Options{}), dialect.SchemaNone)
}
