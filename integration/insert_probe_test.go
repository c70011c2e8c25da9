package integration

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// blocked counts what an application waits for, where one of ours holds it. The moment in which a table grows by some
// pages is not ours: every writer takes it.
const blocked = `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) CROSS JOIN unnest(pg_blocking_pids(l.pid)) AS by(pid)
	JOIN pg_stat_activity o ON o.pid = by.pid
	WHERE NOT l.granted AND l.locktype <> 'extend' AND a.application_name = 'shop' AND o.application_name LIKE 'outboxd%'`

// application is a pool of an application's own. A wait for a lock ends it at once.
func (d *database) application(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", rewrite(t, d.url, func(u *url.URL) {
		q := u.Query()
		q.Set("application_name", "shop")
		u.RawQuery = q.Encode()
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// TestInsertsWaitForNoTransactionOfOurs holds transactions of the relay open, one statement after the other, and inserts
// meanwhile. Behind a pooler each statement is in a transaction of its own, which is where a proxy can hold it.
func TestInsertsWaitForNoTransactionOfOurs(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"claim":      claimStatement,
		"settlement": settleStatement,
		"renewal":    renewStatement,
		"look":       `WHERE due_at IS NOT NULL ORDER BY routing_key`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			app := d.application(t)
			proxy, through := newPostgresProxy(t, d.url)
			broker, topic := newKafkaProxy(t), newTopic(t, 1)
			if name == "renewal" { // there is one while something is under way
				broker.hold(responses("Produce"))
			}
			held := proxy.hold(commits(toServer, statement))
			startRelay(t, fmt.Sprintf(`
database: {pooler: transaction}
relay: {name: a, lease: 3s}
http: {listen: "off"}
destinations: {broker: {kafka: {brokers: [%q], topic: %q}}}
routes: [{match: "*", to: broker}]
`, broker.address(), topic), []string{"OUTBOXD_DATABASE_URL=" + through})
			d.insert(t, 10, "order_paid")
			held.wait(t)
			if n := d.count(t, "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'outboxd%' AND state = 'idle in transaction'"); n == 0 {
				t.Error("no transaction of ours is open")
			}
			for _, query := range []string{
				"INSERT INTO outbox (type, aggregateid) VALUES ('order_paid', '1')",
				"INSERT INTO outbox (id, type) VALUES (gen_random_uuid(), 'order_paid') ON CONFLICT (id) DO NOTHING RETURNING id, state",
				"SELECT outbox_write('order_paid', '{}')",
			} {
				// Any wait for a lock at all is longer than a millisecond.
				if _, err := app.ExecContext(t.Context(), "SET lock_timeout = '1ms'; "+query); err != nil {
					t.Errorf("%s while a %s is held: %v", query, name, err)
				}
			}
			held.release()
		})
	}
}

// TestSlowWriters: the rows of transactions that commit late, in another order than they inserted, are all found, and no
// writer waits for a lock of ours.
func TestSlowWriters(t *testing.T) {
	t.Parallel()
	const writers = 8
	d := newDatabase(t)
	app := d.application(t)
	for i := range 2 {
		startRelay(t, plainConfig, []string{"OUTBOXD_DATABASE_URL=" + d.url, fmt.Sprintf("OUTBOXD_RELAY_NAME=r%d", i)})
	}
	d.waitCount(t, patience, 2, "SELECT count(*) FROM outbox_relay")

	var left, committed atomic.Int64
	left.Store(int64(scale(10_000)))
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for left.Add(-1) >= 0 {
				ok, err := writeSlowly(t, app)
				if err != nil {
					t.Errorf("an application's transaction: %v", err)
					return
				}
				if ok {
					committed.Add(1)
				}
			}
		})
	}
	written := make(chan struct{})
	go func() {
		writing.Wait()
		close(written)
	}()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for open := true; open; {
		if n := d.count(t, blocked); n > 0 {
			t.Errorf("%d locks of ours hold up an application", n)
		}
		select {
		case <-written:
			open = false
		case <-look.C:
		}
	}
	d.waitCount(t, patience, int(committed.Load()), "SELECT count(*) FROM outbox WHERE state = 'done' AND attempts = 1")
	if n := d.count(t, "SELECT count(*) FROM outbox"); n != int(committed.Load()) {
		t.Errorf("%d rows of %d committed transactions", n, committed.Load())
	}
}

// writeSlowly is one transaction of an application that takes its time; one in five is rolled back.
func writeSlowly(t *testing.T, app *sql.DB) (committed bool, err error) {
	tx, err := app.BeginTx(t.Context(), nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback() // of what was not committed
	if _, err := tx.ExecContext(t.Context(), "INSERT INTO outbox (aggregatetype, type) VALUES ('orders', 'order_paid')"); err != nil {
		return false, err
	}
	time.Sleep(rand.N(50 * time.Millisecond)) //nolint:forbidigo // the application's other work, no waiting of the test
	if rand.IntN(5) == 0 {
		return false, nil
	}
	return true, tx.Commit()
}
