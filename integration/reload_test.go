package integration

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// reloading is a relay whose file a test changes.
type reloading struct {
	*process
	file string
	told int // answers to reloads so far
}

func (d *database) reloading(t *testing.T, r *receiver, pairs ...string) *reloading {
	t.Helper()
	p := &reloading{file: configFile(t, d.reloadable(r, pairs...))}
	p.process = start(t, d.env(), "run", "--config", p.file)
	p.waitLog(t, `"msg":"working"`)
	return p
}

// reloadable is a configuration, changed by pairs of old and new.
func (d *database) reloadable(r *receiver, pairs ...string) string {
	return strings.NewReplacer(pairs...).Replace(fmt.Sprintf(`
relay: {lease: %s}
http: {listen: "127.0.0.1:0"}
destinations:
  shop: {webhook: {url: %q, dedupe: 24h}, rate: 5/s}
routes:
  - {match: orders, to: shop, ordered: false}
`, d.leaseOf(2*time.Second), r.url()))
}

// reload puts another text into the file and sends SIGHUP; the answer has to say these words.
func (p *reloading) reload(t *testing.T, text, words string) {
	t.Helper()
	if err := os.WriteFile(p.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.signal(t, syscall.SIGHUP)
	p.told++
	eventually(t, patience, func() error {
		answers := strings.Split(p.stderr.String(), "reloaded")
		if len(answers) <= p.told || !strings.Contains(answers[p.told], "\n") {
			return fmt.Errorf("%d answers, want %d", len(answers)-1, p.told)
		}
		if line, _, _ := strings.Cut(answers[p.told], "\n"); !strings.Contains(line, words) {
			t.Fatalf("it says %s, want %s", line, words)
		}
		return nil
	})
}

// TestReload: a rate is changed, and a route is there, while the relay works; a mistake and what wants a restart change
// nothing, and a reload that is in force is known to all.
func TestReload(t *testing.T) {
	onEngines(t, reload)
}

func reload(t *testing.T, e engine) {
	d, r := e.database(t), newReceiver(t, always(reply{}))
	p := d.reloading(t, r)
	d.insert(t, 300, "orders")
	done := "SELECT count(*) FROM outbox WHERE state = 'done'"
	eventually(t, patience, func() error {
		if d.count(t, done) < 5 {
			return fmt.Errorf("nothing is sent yet")
		}
		return nil
	})
	p.reload(t, d.reloadable(r, "routes:", "rutes:"), "unknown key rutes")
	p.reload(t, d.reloadable(r, r.url(), "http://127.0.0.1:1"), "a change of destinations.shop.webhook.url wants a restart")
	p.waitFigure(t, "outboxd_db_up", 1)
	if got := p.figure(t, "outboxd_config_last_reload_success"); got != 0 {
		t.Errorf("outboxd_config_last_reload_success is %v after reloads that were refused", got)
	}
	before := d.count(t, done)
	began := time.Now()
	p.reload(t, d.reloadable(r, "5/s", "200/s", "match: orders", `match: "*"`), `"config_hash"`)
	d.insert(t, 10, "invoices")
	d.waitCount(t, patience, 310, done)
	// At 5 a second the rest would have taken most of a minute.
	if took := time.Since(began); slowTests() && took > time.Second+time.Duration(310-before)*time.Second/200+time.Second {
		t.Errorf("%d messages at 200 a second took %s", 310-before, took)
	}
	p.waitFigure(t, "outboxd_config_last_reload_success", 1)
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	d.expect(t, 0, "SELECT count(*) FROM outbox WHERE attempts <> 1")
}

func slowTests() bool { return os.Getenv("OUTBOXD_TEST_SLOW") == "1" }

// TestMaxActive: with three relays and one seat, one works; when it is killed another takes its seat, and its messages.
func TestMaxActive(t *testing.T) {
	onEngines(t, maxActive)
}

func maxActive(t *testing.T, e engine) {
	d, r := e.database(t), newReceiver(t, always(reply{}))
	relays := map[string]*process{}
	for _, name := range []string{"a", "b", "c"} {
		config := strings.Replace(d.reloadable(r, ", rate: 5/s", ""), "relay: {", "relay: {max_active: 1, name: "+name+", ", 1)
		relays[name] = startRelay(t, config, d.env())
		relays[name].waitReady(t, 200)
	}
	workers := func() (active []string) {
		for name, p := range relays {
			if strings.Contains(p.stderr.String(), "active: this relay has one of the seats") {
				active = append(active, name)
			}
		}
		return active
	}
	d.insert(t, 20, "orders")
	d.waitCount(t, patience, 20, "SELECT count(*) FROM outbox WHERE state = 'done'")
	first := workers()
	if len(first) != 1 {
		t.Fatalf("%q are active, want one", first)
	}
	relays[first[0]].kill(t)
	delete(relays, first[0])
	d.insert(t, 20, "orders")
	d.waitCount(t, patience, 40, "SELECT count(*) FROM outbox WHERE state = 'done'")
	if second := workers(); len(second) != 1 {
		t.Errorf("%q are active, want one", second)
	}
	stdout, _, _ := outboxd(t, d.env(), "status")
	if !strings.Contains(stdout, "none: it stands by") {
		t.Errorf("status shows no standby:\n%s", stdout)
	}
}

// TestUpgrade: a relay goes on beside tables that a migration ahead made, where that admits it; where it does not, the
// relay stops in order and says so, and begins again once the migration is taken back.
func TestUpgrade(t *testing.T) {
	onEngines(t, upgrade)
}

func upgrade(t *testing.T, e engine) {
	d, r := e.database(t), newReceiver(t, always(reply{}))
	config := d.reloadable(r, ", rate: 5/s", "")
	done := "SELECT count(*) FROM outbox WHERE state = 'done'"
	old := startRelay(t, config, d.env())
	old.waitReady(t, 200)
	d.exec(t, "ALTER TABLE outbox ADD COLUMN tenant varchar(20)")
	d.exec(t, "INSERT INTO outbox_version (version, admits) VALUES (2, 1)")
	old.waitLog(t, "the tables are newer than this outboxd, and admit it")
	beside := startRelay(t, config, d.env())
	beside.waitReady(t, 200)
	d.insert(t, 20, "orders")
	d.waitCount(t, patience, 20, done)

	d.exec(t, "INSERT INTO outbox_version (version, admits) VALUES (3, 2)")
	for _, p := range []*process{old, beside} {
		if code := p.wait(t, patience); code != 6 {
			t.Errorf("exit code %d, want 6", code)
		}
		p.waitLog(t, "which admits an outboxd built for version 2 or later; this one was built for 1: install a newer outboxd")
	}
	if _, stderr, code := outboxd(t, d.env(), "run", "--config", configFile(t, config)); code != 6 || !strings.Contains(stderr, "install a newer outboxd") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	d.insert(t, 20, "orders")
	d.expect(t, 20, "SELECT count(*) FROM outbox WHERE state = 'pending'")

	d.exec(t, "DELETE FROM outbox_version WHERE version = 3")
	startRelay(t, config, d.env())
	d.waitCount(t, patience, 40, done)
	d.expect(t, 0, "SELECT count(*) FROM outbox WHERE attempts <> 1")
}
