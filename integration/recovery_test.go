package integration

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// recovery is how soon a relay has to be at work again once its database is.
const recovery = 30 * time.Second

// scene is a relay at work on a server that something happens to.
type scene struct {
	*database
	server *ownServer
	relay  *process
}

// outages are what happens. Each comes back when the database is as it should be.
func outages() map[string]func(*testing.T, *scene) {
	return map[string]func(*testing.T, *scene){
		"sessions killed": func(t *testing.T, s *scene) {
			end := s.passed()
			eventually(t, patience, func() error {
				s.killSessions(t)
				return end()
			})
		},
		"restarted": func(t *testing.T, s *scene) {
			s.server.stop()
			s.wait(t, s.passed())
			s.server.start(t)
		},
		"crashed": func(t *testing.T, s *scene) {
			s.server.crash()
			s.wait(t, s.passed())
			s.server.start(t)
		},
		"read-only": func(t *testing.T, s *scene) {
			s.order(t, s.operator().readOnly...)
			s.wait(t, s.says("read-only|standby"), s.passed())
			s.order(t, s.operator().writable...)
		},
		"read-only after its restart": func(t *testing.T, s *scene) {
			s.order(t, s.operator().readOnly...)
			s.server.stop()
			s.server.start(t, s.operator().startReadOnly...)
			s.wait(t, s.says("read-only|standby"), s.passed())
			s.order(t, s.operator().writable...)
		},
		"no connection left": noConnectionLeft,
	}
}

// noConnectionLeft gives every connection of the server away and ends those of the program, until it says that it has none.
func noConnectionLeft(t *testing.T, s *scene) {
	s.SetMaxIdleConns(1) // one to say all this
	defer s.SetMaxIdleConns(0)
	refused, end := s.says("no connection left"), s.passed()
	s.order(t, s.operator().full)
	crowd := s.connect(t, s.server.url, "")
	var held []*sql.Conn
	eventually(t, patience, func() error {
		if len(held) < s.operator().holders {
			if one, err := crowd.Conn(t.Context()); err == nil { // or the program was faster
				held = append(held, one)
			}
		}
		s.killSessions(t)
		return errors.Join(refused(), end())
	})
	for _, one := range held {
		one.Close()
	}
	s.order(t, s.operator().roomy)
}

// TestRecovery: whatever happens to the database under a running relay, the process goes on and is at work again soon
// after the database is. Nothing is charged for it, and the log tells of it without being filled.
func TestRecovery(t *testing.T) {
	onServers(t, func(t *testing.T, e engine) {
		server := e.ownServer(t)
		server.start(t)
		for name, happen := range outages() { // one after the other, since all are the same server's
			t.Run(name, func(t *testing.T) {
				s := newScene(t, server)
				stop := s.feed(t)
				happen(t, s)
				stop()
				s.insert(t, 10, "order_paid")
				s.recovered(t)
			})
		}
	})
}

// TestAnotherPrimary: the name of the server leads to another one, and the old one goes on as its read-only standby, with
// the sessions that it has. Nothing is due on the old one, so that only a look tells the relay. The new one has messages
// that are due, and one under the lease of a relay that is dead.
func TestAnotherPrimary(t *testing.T) {
	onServers(t, func(t *testing.T, e engine) {
		server := e.ownServer(t)
		server.start(t)
		second := need(t, e.variable())
		name := unique("outboxd_test")
		old, next := e.account(t, server.url, name), e.account(t, second, name)
		t.Cleanup(func() { next.forget(t, second) })
		next.leaveLease(t)
		p, through := e.proxy(t, old.url)
		s := &scene{database: old, server: server, relay: old.begin(t, "a", through)}
		s.insert(t, 10, "order_paid")
		s.waitCount(t, patience, 10, "SELECT count(*) FROM outbox WHERE state = 'done'")
		s.waitCount(t, patience, 0, "SELECT count(*) FROM outbox_lease")

		rewrite(t, second, func(u *url.URL) { p.setTarget(u.Host) })
		s.order(t, s.operator().readOnly...)
		s.database = next
		s.insert(t, 10, "order_paid")
		s.recovered(t)
		s.expect(t, 1, "SELECT count(*) FROM outbox_attempt WHERE outcome = 'lapse' AND relay = 'gone'")
	})
}

// leaveLease makes the tables, and leaves a message in flight under the lease of a relay that was killed.
func (d *database) leaveLease(t *testing.T) {
	t.Helper()
	p, through := d.proxy(t, d.url)
	claimed := p.hold(d.said.claimed)
	gone := d.begin(t, "gone", through)
	d.insert(t, 1, "order_paid")
	claimed.wait(t)
	gone.kill(t)
	claimed.cut()
}

// newScene makes a database on the server and starts a relay.
func newScene(t *testing.T, server *ownServer) *scene {
	t.Helper()
	d := server.account(t, server.url, unique("outboxd_test"))
	return &scene{database: d, server: server, relay: d.begin(t, "a", d.url)}
}

// begin makes the tables and starts a relay of that name that finds them at a URL.
func (d *database) begin(t *testing.T, name, at string) *process {
	t.Helper()
	d.migrate(t)
	relay := startRelay(t, fmt.Sprintf(`
relay: {name: %s, lease: %s}
http: {listen: "off"}
destinations: {screen: {stdout: {}}}
routes: [{match: "*", to: screen}]
`, name, d.leaseOf(3*time.Second)), []string{"OUTBOXD_DATABASE_URL=" + at})
	d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox_relay")
	return relay
}

// feed inserts messages as an application that does not care whether it can, until it is told to stop.
func (s *scene) feed(t *testing.T) (stop func()) {
	t.Helper()
	application := s.connect(t, s.url, s.name)
	application.SetMaxIdleConns(1)
	stopping, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		pace := time.NewTicker(5 * time.Millisecond)
		defer pace.Stop()
		for {
			_, _ = application.ExecContext(t.Context(), "INSERT INTO outbox (type) VALUES ('order_paid')")
			select {
			case <-pace.C:
			case <-stopping:
				return
			}
		}
	}()
	s.waitCount(t, patience, 1, "SELECT least(count(*), 1) FROM outbox WHERE state = 'done'")
	return func() {
		close(stopping)
		<-stopped
	}
}

// passed makes a condition that is met when the outage has lasted as long as it should.
func (s *scene) passed() func() error {
	end := time.Now().Add(scaleDuration(20 * time.Second))
	return func() error {
		if time.Now().Before(end) {
			return errors.New("it has not lasted long enough")
		}
		return nil
	}
}

// says makes a condition that is met when the relay's log has an expression that it does not have yet.
func (s *scene) says(expression string) func() error {
	re, from := regexp.MustCompile(expression), len(s.relay.stderr.String())
	return func() error {
		if !re.MatchString(s.relay.stderr.String()[from:]) {
			return fmt.Errorf("nothing of %s in the log", expression)
		}
		return nil
	}
}

// wait waits until all conditions are met.
func (s *scene) wait(t *testing.T, conditions ...func() error) {
	t.Helper()
	for _, condition := range conditions {
		eventually(t, patience, condition)
	}
}

// recovered checks the end of a scene, whose database is well again and has new messages.
func (s *scene) recovered(t *testing.T) {
	t.Helper()
	well := time.Now()
	eventually(t, recovery, func() error {
		var left int
		err := s.QueryRowContext(t.Context(), "SELECT count(*) FROM outbox WHERE state <> 'done'").Scan(&left)
		if err == nil && left > 0 {
			err = fmt.Errorf("%d messages are not done", left)
		}
		return err
	})
	t.Logf("at work again in %s", time.Since(well).Round(time.Millisecond))
	s.expect(t, 0, "SELECT count(*) FROM outbox WHERE attempts <> 1")
	s.expect(t, 0, "SELECT count(*) FROM outbox_attempt WHERE outcome <> 'lapse'")
	if code := s.relay.terminate(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	s.relay.expectQuiet(t)
}

// expectQuiet checks that a log has nothing but lines of its own form, and none of a fault twice within 10 s.
func (p *process) expectQuiet(t *testing.T) {
	t.Helper()
	last := map[string]time.Time{}
	for line := range strings.Lines(p.stderr.String()) {
		var one struct {
			Time            time.Time
			Msg, Query, Err string
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Errorf("not a line of a log: %q", line)
			continue
		}
		if one.Err == "" {
			continue
		}
		what := one.Msg + ": " + one.Query
		if apart := one.Time.Sub(last[what]); apart < 9900*time.Millisecond {
			t.Errorf("%q again after %s", what, apart)
		}
		last[what] = one.Time
	}
}
