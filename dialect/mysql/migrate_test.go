package mysql

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/dialect/dialecttest"
)

func checkState(t *testing.T, db *DB, want dialect.SchemaState) {
	t.Helper()
	dialecttest.CheckState(t, db, want)
}

func checkShape(t *testing.T, db *DB) {
	t.Helper()
	if err := db.CheckShape(t.Context()); err != nil {
		t.Errorf("the migrated tables: %v", err)
	}
}

func TestTables(t *testing.T) {
	t.Parallel()
	migrations, err := Migrations("")
	if err != nil {
		t.Fatal(err)
	}
	m := dialecttest.Migration{
		Statements: split(migrations[0].SQL), Tables: len(columns()),
		Foreign: "CREATE TABLE outbox (id varchar(37) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY, payload json)", Lacks: "aggregatetype",
	}
	if len(m.Statements) != m.Tables+1 {
		t.Fatalf("the file is split into %d statements, want one for each of %d tables and one for the version", len(m.Statements), m.Tables)
	}
	onBoth(t, func(t *testing.T, s testServer) {
		here := m
		here.Server = s.name + " "
		dialecttest.TestTables(t, here, func(t *testing.T) dialecttest.Backend { return seen{s.newSchema(t), t} })
	})
}

func TestMigrateMakesTheDatabase(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newSchema(t)
		d.schema += " `Mixed's\\" // A name that is wrong wherever it is not quoted.
		db := d.connect(t, dialect.Options{})
		t.Cleanup(func() {
			quoted, err := quote(d.schema)
			if err != nil {
				t.Fatal(err)
			}
			d.exec(t, "DROP DATABASE "+quoted)
		})
		checkState(t, db, dialect.SchemaNone)
		dialecttest.Migrate(t, db)
		drop, err := Script("drop.sql", d.schema)
		if err != nil {
			t.Fatal(err)
		}
		d.exec(t, drop)
		checkState(t, db, dialect.SchemaNone)
	})
}

// A migrator that waits for another one and is killed there leaves nothing, and the next one does the work.
func TestMigrateKilled(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newSchema(t)
		db := d.connect(t, dialect.Options{})
		holder, err := d.db.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var locked bool
		if err := holder.GetContext(t.Context(), &locked, lockMigrations, d.schema); err != nil || !locked {
			t.Fatalf("locked %v, %v", locked, err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := db.Migrate(t.Context())
			done <- err
		}()
		var waiting []int64
		eventually(t, "the migrator to wait for the lock", func() bool {
			const look = `SELECT ID FROM information_schema.PROCESSLIST WHERE DB = ? AND STATE = 'User lock'`
			err := d.db.Select(&waiting, look, d.schema)
			return err == nil && len(waiting) == 1 // MySQL fails where a statement of another session has bytes that are no text.
		})
		d.exec(t, "KILL ?", waiting[0])
		if class := dialect.ClassOf(<-done); class != dialect.Away && class != dialect.Cancelled {
			t.Errorf("a killed migrator is of class %s", class)
		}
		checkState(t, db, dialect.SchemaNone)
		if err := holder.Close(); err != nil {
			t.Fatal(err)
		}
		if err := d.db.Close(); err != nil { // The lock goes with the session.
			t.Fatal(err)
		}
		dialecttest.Migrate(t, db)
	})
}

// The files run as they are in the client of either product, and in any sql_mode that a session may have.
func TestFilesRunInClients(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		client := dialecttest.Client(t, "mariadb")
		for _, mode := range []string{"", "ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,IGNORE_SPACE"} {
			d := s.newSchema(t)
			d.revokeAtEnd(t)
			config, err := parseURL(s.url, false)
			if err != nil {
				t.Fatal(err)
			}
			host, port, _ := strings.Cut(config.Addr, ":")
			for _, file := range []string{"001_outbox.sql", "001_outbox.sql", "roles.sql", "roles.sql", "drop.sql", "001_outbox.sql"} {
				text, err := Script(file, "")
				if err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), client, "--no-defaults", "--user=root", "--host="+host, "--port="+port,
					"--init-command=SET sql_mode = '"+mode+"'", d.schema)
				cmd.Stdin = strings.NewReader(text)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s, sql_mode %q: %v\n%s", file, mode, err, out)
				}
			}
			db := d.connect(t, dialect.Options{})
			dialecttest.CheckMigrated(t, db)
			d.exec(t, "INSERT INTO outbox (type) VALUES ('a')")
		}
	})
}

func TestSplit(t *testing.T) {
	t.Parallel()
	got := split("-- a; b\nSELECT ';', \"x;\", `y;`, 'it''s;' /* ; */; -- c;\n\nSELECT 2;\n")
	want := []string{"-- a; b\nSELECT ';', \"x;\", `y;`, 'it''s;' /* ; */", "-- c;\n\nSELECT 2"}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("statement %d is %q, want %q", i, got[i], want[i])
		}
	}
}
