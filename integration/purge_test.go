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

// What a writer's INSERT with its COMMIT may take while retention removes millions of rows: at the 99th percentile, or three
// times what it took before, where that is more; and at all. Asserted with OUTBOXD_TEST_SLOW=1 only.
const (
	slowWrite = 100 * time.Millisecond
	heldUp    = 2 * time.Second
)

// TestPurgeBesideWriters: retention removes done messages, 5,000,000 with OUTBOXD_TEST_SLOW=1, while applications write and
// the relay claims. No session of the program holds up an application, and all that was written is sent.
func TestPurgeBesideWriters(t *testing.T) {
	onServers(t, func(t *testing.T, e engine) {
		old, slow := scale(20_000), os.Getenv("OUTBOXD_TEST_SLOW") != ""
		if slow {
			old = 5_000_000
		}
		server := need(t, e.variable())
		d := e.account(t, server, unique("outboxd_test"))
		t.Cleanup(func() { d.forget(t, server) })
		d.migrate(t)
		failed := d.oldMessages(t, old)
		application := d.connect(t, server, d.name, d.operator().hasty)

		stop := make(chan struct{})
		time.AfterFunc(scaleDuration(10*time.Second), func() { close(stop) })
		before := d.insertUntil(t, application, stop)()
		sender := startRelay(t, `
relay: {name: keeper}
http: {listen: "off"}
destinations: {screen: {stdout: {}}}
routes: [{match: "*", to: screen}]
`, d.env())
		began := time.Now()
		meanwhile := d.insertUntilPurged(t, application, old)
		t.Logf("%s: %d rows purged in %s. A transaction before that: %s; beside it: %s", e.name, old, time.Since(began).Round(time.Second), before, meanwhile)

		written := len(before) + len(meanwhile)
		d.waitCount(t, patience, 0, "SELECT count(*) FROM outbox WHERE state IN ('pending', 'in_flight')")
		if n := strings.Count(sender.stdout.String(), "\n"); n != written {
			t.Errorf("%d messages were sent, want the %d that were written", n, written)
		}
		d.expect(t, written+failed, "SELECT count(*) FROM outbox")
		if !slow {
			return
		}
		if meanwhile.at(99) > max(slowWrite, 3*before.at(99)) || meanwhile.at(100) > heldUp {
			t.Error("a writer was held up")
		}
		late := d.count(t, "SELECT count(*) FROM outbox WHERE state = 'done' AND done_at > created_at + {second} + {second}")
		if late -= len(before); late > written/100 { // what was written before waited for the relay
			t.Errorf("%d of %d messages took more than two seconds to be done", late, written)
		}
	})
}

// spans are how long some things took, ascending.
type spans []time.Duration

// at is a percentile; 0 where there is nothing.
func (s spans) at(percent int) time.Duration {
	if len(s) == 0 {
		return 0
	}
	return s[(len(s)-1)*percent/100]
}

func (s spans) String() string {
	return fmt.Sprintf("%d, p50 %s, p99 %s, longest %s", len(s), s.at(50), s.at(99), s.at(100))
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

// insertUntil lets four applications write until stop is closed. took waits for their end and tells how long each of their
// transactions took.
func (d *database) insertUntil(t *testing.T, application *sql.DB, stop <-chan struct{}) (took func() spans) {
	var mu sync.Mutex
	var all spans
	var writing sync.WaitGroup
	for range 4 {
		writing.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond): // the application's other work
				}
				began := time.Now()
				if _, err := application.ExecContext(t.Context(), "INSERT INTO outbox (type, payload) VALUES ('order_paid', '{}')"); err != nil {
					t.Errorf("an application's INSERT: %v", err)
					return
				}
				mu.Lock()
				all = append(all, time.Since(began))
				mu.Unlock()
			}
		})
	}
	return func() spans {
		writing.Wait()
		slices.Sort(all)
		return all
	}
}

// insertUntilPurged is insertUntil as long as an old done message is left.
func (d *database) insertUntilPurged(t *testing.T, application *sql.DB, old int) spans {
	t.Helper()
	stop := make(chan struct{})
	end := sync.OnceFunc(func() { close(stop) })
	took := d.insertUntil(t, application, stop)
	defer end()
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
				end()
				return took()
			}
		}
		select {
		case <-look.C:
		case <-deadline.C:
			t.Fatal("old messages are left")
		}
	}
}
