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
	onEngines(t, func(t *testing.T, e engine) {
		for name, c := range map[string]struct{ prepare, want string }{
			"none": {"SELECT 1", `"err":"the tables of outboxd are not in `},
			"unfinished": {
				"CREATE TABLE outbox_version (version integer PRIMARY KEY, admits integer NOT NULL, applied_at {moment})",
				`are unfinished, at version 0 of 1: wait for the migration that is under way, or run outboxd migrate up"`,
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				waitsForTables(t, e, c.prepare, c.want)
			})
		}
	})
}

func waitsForTables(t *testing.T, e engine, prepare, want string) {
	d := e.empty(t, e)
	d.exec(t, prepare)
	began := time.Now()
	r := startRelay(t, e.plainConfig(), d.env())
	r.waitLog(t, want)
	r.waitLog(t, "run outboxd migrate up")
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
	if _, stderr, code := outboxd(t, d.env(), "migrate", "up"); code != 0 {
		t.Fatal(stderr)
	}
	d.insert(t, 1, "order_paid")
	d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox WHERE state = 'done'")
	r.waitReady(t, 200)
	lines, most := strings.Count(r.stderr.String(), waits), 1+int(time.Since(began)/(10*time.Second))
	if lines > most {
		t.Errorf("%d lines tell of the wait in %s, want at most one per 10 s", lines, time.Since(began))
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
	onEngines(t, newerTables)
}

func newerTables(t *testing.T, e engine) {
	d := e.database(t)
	d.exec(t, "INSERT INTO outbox_version (version, admits) VALUES (99, 1)")
	d.exec(t, "ALTER TABLE outbox ADD later integer NOT NULL DEFAULT 0")
	d.insert(t, 10, "order_paid")
	r := startRelay(t, e.plainConfig(), d.env())
	d.waitCount(t, patience, 10, "SELECT count(*) FROM outbox WHERE state = 'done'")
	r.waitLog(t, `"msg":"the tables are newer than this outboxd, and admit it","version":99,"needed":1`)
}
