package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const waits = `"msg":"waiting for the database"`

// TestWaitsForTables: without its tables, or with unfinished ones, the relay waits, unready and with a line per 10 s, and
// goes on when they are there.
func TestWaitsForTables(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ prepare, want string }{
		"none": {
			"SELECT 1", `"err":"the tables of outboxd are not in the search_path: run outboxd migrate up"`,
		},
		"unfinished": {
			"CREATE TABLE outbox_version (version integer PRIMARY KEY, admits integer NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())",
			`"err":"the tables in the search_path are unfinished, at version 0 of 1: wait for the migration that is under way, or run outboxd migrate up"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := emptyDatabase(t)
			d.exec(t, c.prepare)
			began := time.Now()
			env := []string{"OUTBOXD_DATABASE_URL=" + d.url}
			r := startRelay(t, plainConfig, env)
			r.waitLog(t, c.want)
			r.waitReady(t, 503)
			if code, body := ask(t, r.address(t), "/livez"); code != 200 {
				t.Errorf("/livez answers %d, %s", code, body)
			}
			if _, body := ask(t, r.address(t), "/readyz"); !strings.Contains(body, "run outboxd migrate up") {
				t.Errorf("/readyz says %q", body)
			}
			eventually(t, patience, func() error { // the line comes again, as long as nobody does anything
				return wantLines(r, waits, int(scaleDuration(30*time.Second)/(10*time.Second)))
			})
			if _, stderr, code := outboxd(t, env, "migrate", "up"); code != 0 {
				t.Fatal(stderr)
			}
			d.insert(t, 1, "order_paid")
			d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox WHERE state = 'done'")
			r.waitReady(t, 200)
			lines, most := strings.Count(r.stderr.String(), waits), 1+int(time.Since(began)/(10*time.Second))
			if lines > most {
				t.Errorf("%d lines tell of the wait in %s, want at most one per 10 s", lines, time.Since(began))
			}
		})
	}
}

func wantLines(r *process, text string, n int) error {
	if lines := strings.Count(r.stderr.String(), text); lines < n {
		return fmt.Errorf("%d lines with %s, want %d", lines, text, n)
	}
	return nil
}

// TestNewerTables: tables of a later version that admits this program are worked with, and said.
func TestNewerTables(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.exec(t, "INSERT INTO outbox_version (version, admits) VALUES (99, 1)")
	d.exec(t, "ALTER TABLE outbox ADD later integer NOT NULL DEFAULT 0")
	d.insert(t, 10, "order_paid")
	r := startRelay(t, plainConfig, []string{"OUTBOXD_DATABASE_URL=" + d.url})
	d.waitCount(t, patience, 10, "SELECT count(*) FROM outbox WHERE state = 'done'")
	r.waitLog(t, `"msg":"the tables are newer than this outboxd, and admit it","version":99,"needed":1`)
}
