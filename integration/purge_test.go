package integration

import (
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// What a writer's INSERT with its COMMIT may take while retention removes millions of rows: at the 99th percentile, and at
// all. Asserted with OUTBOXD_TEST_SLOW=1 only.
const (
	slowWrite = 100 * time.Millisecond
	heldUp    = 2 * time.Second
)

// TestPurgeBesideWriters: retention removes done messages, 5,000,000 with OUTBOXD_TEST_SLOW=1, while applications write and
// the relay claims. No session of the program holds up an application, and all that was written is sent.
func TestPurgeBesideWriters(t *testing.T) {
	onServers(t, func(t *testing.T, e engine) {
		old := scale(20_000)
		if os.Getenv("OUTBOXD_TEST_SLOW") != "" {
			old = 5_000_000
		}
		server := need(t, e.variable())
		d := e.account(t, server, unique("outboxd_test"))
		t.Cleanup(func() { d.forget(t, server) })
		d.migrate(t)
		failed := d.oldMessages(t, old)
		senders := startRelay(t, `
relay: {name: keeper}
http: {listen: "off"}
destinations: {screen: {stdout: {}}}
routes: [{match: "*", to: screen}]
`, d.env())

		application := d.connect(t, server, d.name, d.operator().hasty)
		took, written := d.writeUntilPurged(t, application, old)
		d.waitCount(t, patience, 0, "SELECT count(*) FROM outbox WHERE state IN ('pending', 'in_flight')")
		if n := strings.Count(senders.stdout.String(), "\n"); n != written {
			t.Errorf("%d messages were sent, want the %d that were written meanwhile", n, written)
		}
		d.expect(t, written+failed, "SELECT count(*) FROM outbox")
		slices.Sort(took)
		t.Logf("%s: %d rows purged beside %d transactions: p50 %s, p99 %s, longest %s", e.name, old, len(took),
			took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
		if os.Getenv("OUTBOXD_TEST_SLOW") != "" && (took[len(took)*99/100] > slowWrite || took[len(took)-1] > heldUp) {
			t.Errorf("a writer took longer than %s at p99, or %s at all", slowWrite, heldUp)
		}
	})
}

// oldMessages fills the table with n messages that were done a year ago, behind failed ones that nobody resolved. It
// returns how many these are.
func (d *database) oldMessages(t *testing.T, n int) (failed int) {
	t.Helper()
	failed = 100
	series := "SELECT n FROM generate_series(1, %d) AS n"
	columns, id := "", ""
	if d.driver == "postgres" { // an id says when it was made
		columns = "id, "
		id = "(lpad(to_hex((extract(epoch FROM {last year}) * 1000)::bigint), 12, '0') || '7' || left(md5(random()::text), 19))::uuid, "
	} else {
		series = "SELECT a.n * 1000 + b.n AS n FROM thousand a JOIN thousand b WHERE a.n * 1000 + b.n < %d"
		d.exec(t, "CREATE TABLE thousand (n bigint PRIMARY KEY)")
		d.exec(t, "INSERT INTO thousand WITH RECURSIVE s AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 999) SELECT n FROM s")
	}
	insert := func(n int, more, values string) {
		for ; n > 0; n -= 1_000_000 {
			d.exec(t, "INSERT INTO outbox ("+columns+"created_at, type, payload, due_at, "+more+") SELECT "+id+
				"{last year}, 'order_paid', '{}', {not due}, "+values+" FROM ("+fmt.Sprintf(series, min(n, 1_000_000))+") s")
		}
	}
	insert(failed, "state, failed_at, reason", "'failed', {last year}, 'rejected'")
	insert(n, "state, done_at", "'done', {last year}")
	return failed
}

// writeUntilPurged lets four applications write until only the failed messages are left of the old ones, and tells how long
// each of their transactions took, and how many messages were written.
func (d *database) writeUntilPurged(t *testing.T, application *sql.DB, old int) (took []time.Duration, written int) {
	t.Helper()
	stop := make(chan struct{})
	var mu sync.Mutex
	var writing sync.WaitGroup
	for range 4 {
		writing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				began := time.Now()
				if _, err := application.ExecContext(t.Context(), "INSERT INTO outbox (type, payload) VALUES ('order_paid', '{}')"); err != nil {
					t.Errorf("an application's INSERT: %v", err)
					return
				}
				mu.Lock()
				took, written = append(took, time.Since(began)), written+1
				mu.Unlock()
				time.Sleep(10 * time.Millisecond) //nolint:forbidigo // the application's other work, no waiting of the test
			}
		})
	}
	defer writing.Wait()
	look := time.NewTicker(d.operator().look)
	defer look.Stop()
	deadline := time.NewTimer(patience + time.Duration(old)*time.Millisecond)
	defer deadline.Stop()
	for asked := time.Now(); ; {
		if held := d.waits(t); held > 0 {
			t.Errorf("%d locks of the program hold up an application", held)
		}
		if time.Since(asked) > time.Second {
			if asked = time.Now(); d.count(t, "SELECT count(*) FROM (SELECT 1 FROM outbox WHERE state = 'done' AND created_at < {now} - {hour} LIMIT 1) s") == 0 {
				close(stop)
				writing.Wait()
				return took, written
			}
		}
		select {
		case <-look.C:
		case <-deadline.C:
			close(stop)
			t.Fatal("old messages are left")
		}
	}
}
