package mysql

import (
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

func checkShape(t *testing.T, db *DB) {
	t.Helper()
	if err := db.CheckShape(t.Context()); err != nil {
		t.Errorf("the migrated tables: %v", err)
	}
}

func TestMigrateTwice(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		db := s.newSchema(t).connect(t, dialect.Options{})
		status := checkState(t, db, dialect.SchemaNone)
		if err := status.Err(); err == nil || !strings.Contains(err.Error(), "outboxd migrate up") {
			t.Errorf("without tables the error is %v, want one that says outboxd migrate up", err)
		}
		if !strings.HasPrefix(status.Server, s.name+" ") {
			t.Errorf("the server is %q, want a version of %s", status.Server, s.name)
		}
		for _, want := range []int{1, 0} {
			applied, err := db.Migrate(t.Context())
			if err != nil || len(applied) != want {
				t.Fatalf("applied %v, %v, want %d files", applied, err, want)
			}
		}
		checkState(t, db, dialect.SchemaCurrent)
		checkShape(t, db)
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
		if _, err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkState(t, db, dialect.SchemaCurrent)
		checkShape(t, db)
		drop, err := Script("drop.sql", d.schema)
		if err != nil {
			t.Fatal(err)
		}
		d.exec(t, drop)
		checkState(t, db, dialect.SchemaNone)
	})
}

func TestMigrateTwoAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newSchema(t)
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
	})
}

// These servers commit every CREATE by itself, so a migrator can die after any statement.
func TestMigrateAfterAnyStatement(t *testing.T) {
	t.Parallel()
	migrations, err := Migrations("")
	if err != nil {
		t.Fatal(err)
	}
	statements := split(migrations[0].SQL)
	if len(statements) != len(columns())+1 {
		t.Fatalf("the file is split into %d statements, want one for each of %d tables and one for the version", len(statements), len(columns()))
	}
	onBoth(t, func(t *testing.T, s testServer) {
		for cut := range statements {
			d := s.newSchema(t)
			for _, s := range statements[:cut+1] {
				d.exec(t, s)
			}
			want := dialect.SchemaUnfinished
			if cut == len(statements)-1 {
				want = dialect.SchemaCurrent
			}
			db := d.connect(t, dialect.Options{})
			checkState(t, db, want)
			if _, err := db.Migrate(t.Context()); err != nil {
				t.Fatalf("run again after %.60q: %v", statements[cut], err)
			}
			checkState(t, db, dialect.SchemaCurrent)
			checkShape(t, db)
		}
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
		if _, err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkState(t, db, dialect.SchemaCurrent)
	})
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
		{"version missing", "DELETE FROM outbox_version", dialect.SchemaUnfinished, "unfinished, at version 0 of 1"},
		{"version table missing", "DROP TABLE outbox_version", dialect.SchemaUnfinished, "run outboxd migrate up"},
	}
	onBoth(t, func(t *testing.T, s testServer) {
		for _, c := range cases {
			d := s.newDatabase(t)
			d.exec(t, c.sql)
			db := d.connect(t, dialect.Options{})
			err := checkState(t, db, c.state).Err()
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: the error is %v, want %q in it", c.name, err, c.says)
			}
			_, err = db.Migrate(t.Context())
			if refused := c.state == dialect.SchemaRefused; (err != nil) != refused {
				t.Errorf("%s: Migrate: %v, want an error: %v", c.name, err, refused)
			}
		}
	})
}

// Somebody else's table of the same name is left alone, and said to be so.
func TestMigrateForeignTable(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newSchema(t)
		d.exec(t, "CREATE TABLE outbox (id varchar(37) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY, payload json)")
		db := d.connect(t, dialect.Options{})
		for name, f := range map[string]func() error{
			"CheckSchema": func() error { _, err := db.CheckSchema(t.Context()); return err },
			"Migrate":     func() error { _, err := db.Migrate(t.Context()); return err },
		} {
			if err := f(); !errors.Is(err, dialect.ErrShape) || !strings.Contains(err.Error(), "aggregatetype") {
				t.Errorf("%s says %v, want dialect.ErrShape and the missing column", name, err)
			}
		}
	})
}

// The files run as they are in the client of either product, and in any sql_mode that a session may have.
func TestFilesRunInClients(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		client, err := exec.LookPath("mariadb")
		if err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal("the client mariadb is not installed")
			}
			t.Skip("the client mariadb is not installed")
		}
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
			checkState(t, db, dialect.SchemaCurrent)
			checkShape(t, db)
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
