package integration

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestWritersBesideRelays: applications write, slowly and with little patience for locks, while relays claim and settle.
// No writer gets an error or waits for a relay, and no message is claimed twice: neither under the server's default
// isolation, nor where that is SERIALIZABLE for everybody.
func TestWritersBesideRelays(t *testing.T) {
	onServers(t, func(t *testing.T, e engine) {
		server := e.ownServer(t)
		server.start(t)
		for _, isolation := range []string{"default", "serializable"} { // one after the other: the server has but one
			t.Run(isolation, func(t *testing.T) {
				d := e.account(t, server.url, unique("outboxd_test"))
				if isolation == "serializable" {
					d.order(t, d.operator().serializable)
				}
				d.migrate(t)
				writersBesideRelays(t, d, server)
			})
		}
	})
}

func writersBesideRelays(t *testing.T, d *database, server *ownServer) {
	const writers, relays = 8, 4
	var senders [relays]*process
	for i := range senders {
		senders[i] = startRelay(t, fmt.Sprintf(`
relay: {name: r%d}
http: {listen: "off"}
destinations: {screen: {stdout: {}}}
routes: [{match: "*", to: screen}]
`, i), d.env())
	}
	d.waitCount(t, patience, relays, "SELECT count(*) FROM outbox_relay")

	application := d.connect(t, server.url, d.name, d.operator().hasty)
	application.SetMaxIdleConns(writers)
	stop := make(chan struct{})
	time.AfterFunc(scaleDuration(time.Minute), func() { close(stop) })
	committed := write(t, application, writers, stop)
	written := make(chan int64)
	go func() { written <- committed() }()
	look := time.NewTicker(d.operator().look)
	defer look.Stop()
	total := int64(-1)
	for total < 0 {
		if n := d.waits(t); n > 0 {
			t.Errorf("%d locks of relays hold up an application", n)
		}
		select {
		case total = <-written:
		case <-look.C:
		}
	}

	d.waitCount(t, patience, int(total), "SELECT count(*) FROM outbox WHERE state = 'done'")
	d.expect(t, int(total), "SELECT count(*) FROM outbox WHERE attempts = 1 AND lapses = 0")
	d.expect(t, 0, "SELECT count(*) FROM outbox_attempt")
	expectOnce(t, senders[:], int(total))
}

// write lets so many applications write until stop is closed. committed waits for their end and tells how many messages
// there are.
func write(t *testing.T, application *sql.DB, writers int, stop <-chan struct{}) (committed func() int64) {
	var n atomic.Int64
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				ok, err := writeSlowly(t, application)
				if err != nil {
					t.Errorf("an application's transaction: %v", err)
					return
				}
				if ok {
					n.Add(1)
				}
			}
		})
	}
	return func() int64 {
		writing.Wait()
		return n.Load()
	}
}

// expectOnce checks that n messages were sent, each once and by one of these relays, and that they shared the work.
func expectOnce(t *testing.T, senders []*process, n int) {
	t.Helper()
	by := map[string]int{}
	shares := make([]int, len(senders))
	for i, sender := range senders {
		for line := range strings.Lines(sender.stdout.String()) {
			var message struct{ ID string }
			if err := json.Unmarshal([]byte(line), &message); err != nil {
				t.Fatalf("relay %d wrote %q: %v", i, line, err)
			}
			if other, twice := by[message.ID]; twice {
				t.Fatalf("message %s was sent by relay %d and by %d", message.ID, other, i)
			}
			by[message.ID] = i
			shares[i]++
		}
	}
	t.Logf("%d messages, sent by %d relays: %v", n, len(senders), shares)
	if len(by) != n {
		t.Errorf("%d messages were sent, want %d", len(by), n)
	}
	if slices.Max(shares) == n {
		t.Error("one relay sent them all: the others found nothing beside it")
	}
}

// waits counts what others wait for, where a session of the program holds it.
func (d *database) waits(t *testing.T) int {
	t.Helper()
	return d.count(t, strings.ReplaceAll(d.operator().waits, "{name}", d.name))
}

// TestWaitsAreSeen: what the test above looks at is where a wait would be.
func TestWaitsAreSeen(t *testing.T) {
	onServers(t, func(t *testing.T, e engine) {
		server := need(t, e.variable())
		d := e.account(t, server, unique("outboxd_test"))
		t.Cleanup(func() { d.forget(t, server) })
		pool := d.connect(t, d.url, d.name)
		if _, err := pool.ExecContext(t.Context(), "CREATE TABLE seen (n int PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
		program, err := pool.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		const insert = "INSERT INTO seen VALUES (1)"
		if _, err := program.ExecContext(t.Context(), insert); err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error, 1)
		go func() {
			_, err := d.ExecContext(t.Context(), insert)
			waiting <- err
		}()
		look := time.NewTicker(d.operator().look)
		defer look.Stop()
		for d.waits(t) == 0 {
			select {
			case <-look.C:
			case err := <-waiting:
				t.Fatalf("nothing was seen of an INSERT that ended with %v", err)
			}
		}
		if err := program.Rollback(); err != nil {
			t.Error(err)
		}
		if err := <-waiting; err != nil {
			t.Error(err)
		}
	})
}
