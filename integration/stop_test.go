package integration

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStopDuringSends: at SIGTERM what is under way ends, what was claimed and not started is given back, and nothing is
// sent twice after the next start.
func TestStopDuringSends(t *testing.T) {
	onServers(t, stopDuringSends)
}

func stopDuringSends(t *testing.T, e engine) {
	d := e.database(t)
	database, url := d.proxy(t, d.url)
	broker, topic := newKafkaProxy(t), newTopic(t, 3)
	config := fmt.Sprintf(`
relay: {name: a, lease: 10s, stop_timeout: 20s}
http: {listen: "127.0.0.1:0"}
destinations: {broker: {kafka: {brokers: [%q], topic: %q}}}
routes: [{match: "*", to: broker}]
`, broker.address(), topic)
	env := []string{"OUTBOXD_DATABASE_URL=" + url}
	r := startRelay(t, config, env)

	produce := broker.hold(requests("Produce"))
	d.insert(t, 50, "sent")
	produce.wait(t)
	load := database.hold(answers(d.said.load))
	d.insert(t, 50, "claimed")
	load.wait(t)
	d.insert(t, 50, "waiting")
	r.signal(t, syscall.SIGTERM)
	r.waitReady(t, 503)
	load.release()
	d.waitCount(t, patience, 50, `SELECT count(*) FROM outbox WHERE type = 'claimed' AND state = 'pending'
		AND attempts = 0 AND lapses = 0 AND error_class IS NULL AND due_at <= {now}`)
	produce.release()
	if code := r.wait(t, patience); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if n := d.count(t, "SELECT count(*) FROM outbox WHERE type = 'sent' AND state = 'done' AND attempts = 1"); n != 50 {
		t.Errorf("%d of 50 messages under way are done", n)
	}
	if n := d.count(t, "SELECT count(*) FROM outbox WHERE state = 'pending'"); n != 100 {
		t.Errorf("%d messages are pending, want those claimed and those that waited, 100", n)
	}
	if n := d.count(t, "SELECT (SELECT count(*) FROM outbox_lease) + (SELECT count(*) FROM outbox_relay)"); n != 0 {
		t.Errorf("it left %d rows of leases and relays", n)
	}

	startRelay(t, config, env)
	d.waitCount(t, patience, 150, "SELECT count(*) FROM outbox WHERE state = 'done' AND attempts = 1")
	wantArrived(t, d, topic, 150)
	if n := len(readTopic(t, topic)); n != 150 {
		t.Errorf("%d records of 150 messages", n)
	}
}

// TestStopCutsOff: a send that outlasts the stop is cut off, and counts as a lapse: it may have taken effect.
func TestStopCutsOff(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		d := e.database(t)
		r, produce := hangingRelay(t, d, "1s")
		defer produce.release()
		if code := r.terminate(t); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		if n := d.count(t, "SELECT count(*) FROM outbox WHERE state = 'pending' AND attempts = 0 AND lapses = 1 AND {unknown}"); n != 1 {
			t.Error("the message is not pending with one lapse")
		}
	})
}

// TestSecondSignal: it ends the process at once, with the shells' code of that signal.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	for _, s := range []struct {
		syscall.Signal
		code int
	}{{syscall.SIGTERM, 143}, {syscall.SIGINT, 130}} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			r, produce := hangingRelay(t, d, "10m")
			defer produce.release()
			r.signal(t, s.Signal)
			r.waitReady(t, 503)
			r.signal(t, s.Signal)
			if code := r.wait(t, patience); code != s.code {
				t.Errorf("exit code %d, want %d", code, s.code)
			}
		})
	}
}

// hangingRelay is a relay with one message under way to a broker whose acknowledgement does not come.
func hangingRelay(t *testing.T, d *database, stopTimeout string) (*process, *trap) {
	t.Helper()
	broker := newKafkaProxy(t)
	produce := broker.hold(responses("Produce"))
	r := startRelay(t, fmt.Sprintf(`
relay: {name: a, lease: 1h, stop_timeout: %s}
http: {listen: "127.0.0.1:0"}
destinations: {broker: {kafka: {brokers: [%q], topic: %q}, timeout: 50m}}
routes: [{match: "*", to: broker}]
`, stopTimeout, broker.address(), newTopic(t, 1)), d.env())
	d.insert(t, 1, "order_paid")
	produce.wait(t)
	return r, produce
}

// TestHealthWithoutDatabase: while the database is away the process lives, says so, and goes on by itself.
func TestHealthWithoutDatabase(t *testing.T) {
	onServers(t, healthWithoutDatabase)
}

func healthWithoutDatabase(t *testing.T, e engine) {
	d := e.database(t)
	database, url := d.proxy(t, d.url)
	database.setDown(true)
	r := startRelay(t, e.plainConfig(), []string{"OUTBOXD_DATABASE_URL=" + url})
	alive := func() {
		t.Helper()
		for path, want := range map[string]string{"/livez": "ok", "/metrics": "outboxd_db_up "} {
			if code, body := ask(t, r.address(t), path); code != 200 || !strings.Contains(body, want) {
				t.Errorf("%s answers %d, %s", path, code, body)
			}
		}
	}
	r.waitReady(t, 503)
	alive()
	database.setDown(false)
	r.waitReady(t, 200)
	alive()

	database.setDown(true) // and again, in the midst of work
	d.insert(t, 10, "order_paid")
	away := time.Now()
	eventually(t, patience, func() error {
		alive()
		if time.Since(away) < scaleDuration(30*time.Second) {
			return errors.New("not away for long enough")
		}
		return nil
	})
	if scaleDuration(30*time.Second) == 30*time.Second { // readiness is patient for so long
		r.waitReady(t, 503)
		alive()
	}
	database.setDown(false)
	r.waitReady(t, 200)
	d.waitCount(t, patience, 10, "SELECT count(*) FROM outbox WHERE state = 'done' AND attempts = 1")
	alive()
}

// TestTakenPort: a second relay on the host works without health checks, and says so.
func TestTakenPort(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	d := newDatabase(t)
	d.insert(t, 1, "order_paid")
	r := startRelay(t, plainConfig, []string{"OUTBOXD_DATABASE_URL=" + d.url, "OUTBOXD_LISTEN=" + listener.Addr().String()})
	d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox WHERE state = 'done'")
	r.waitLog(t, `"level":"WARN","msg":"no health checks and no metrics: the address cannot be had; set http.listen to another one, or off"`)
}
