package postgres

import (
	"io/fs"
	"strings"
	"testing"

	outboxsql "github.com/outboxd/outboxd/sql"
)

func TestRender(t *testing.T) {
	t.Parallel()
	const text = "SELECT id FROM /*schema.*/outbox JOIN /*schema.*/outbox_lease USING (lease_id)"
	cases := []struct{ schema, want string }{
		{"", text},
		{"app", `SELECT id FROM "app".outbox JOIN "app".outbox_lease USING (lease_id)`},
		{"My-Schema", `SELECT id FROM "My-Schema".outbox JOIN "My-Schema".outbox_lease USING (lease_id)`},
		{`a"b`, `SELECT id FROM "a""b".outbox JOIN "a""b".outbox_lease USING (lease_id)`},
		{`x; DROP TABLE y --`, `SELECT id FROM "x; DROP TABLE y --".outbox JOIN "x; DROP TABLE y --".outbox_lease USING (lease_id)`},
	}
	for _, c := range cases {
		if got, err := render(text, c.schema); err != nil || got != c.want {
			t.Errorf("%q: %s, %v, want %s", c.schema, got, err, c.want)
		}
	}
	if _, err := render("SELECT FROM /*schema*/outbox", "app"); err == nil {
		t.Error("a misspelt placeholder is accepted")
	}
}

// Every name of ours in every file has the placeholder, or a second outbox in another schema would share something.
func TestFilesAreRendered(t *testing.T) {
	t.Parallel()
	err := fs.WalkDir(outboxsql.Files, "postgres", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := Script(strings.TrimPrefix(path, "postgres/"), "s")
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			code, _, _ := strings.Cut(line, "--")
			for _, before := range []string{"FROM ", "JOIN ", "INTO ", "TABLE ", "UPDATE ", "ON ", "FUNCTION "} {
				if strings.Contains(code, before+"outbox") {
					t.Errorf("%s: no schema in %q", path, code)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
