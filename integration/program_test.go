package integration

import (
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outboxd/outboxd/outbox"
)

// programs is a folder that the programs of a test write into, and the mark that all of their processes have.
type programs struct{ dir, mark string }

func newPrograms(t *testing.T) *programs {
	t.Helper()
	return &programs{t.TempDir(), "marked-" + rand.Text()}
}

// path is that of a file in the folder.
func (p *programs) path(name string) string { return filepath.Join(p.dir, name) }

// lines are those of a file in the folder; none where there is no file.
func (p *programs) lines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(p.path(name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// left are the processes in /proc that are of our programs.
func (p *programs) left(t *testing.T) (pids []string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a guard")
	}
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		env, _ := os.ReadFile(file)                                                                            // it may have ended meanwhile
		if strings.Contains(string(env), "TEST_MARK="+p.mark) && strings.Contains(string(env), "OUTBOX_ID=") { // no relay
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

// waitGone waits until no process has the mark.
func (p *programs) waitGone(t *testing.T) {
	t.Helper()
	eventually(t, patience, func() error {
		if left := p.left(t); len(left) > 0 {
			return fmt.Errorf("processes %v are left", left)
		}
		return nil
	})
}

// relay starts one that executes a script for every message, in the folder.
func (p *programs) relay(t *testing.T, d *database, name, script string, s shop) *process {
	t.Helper()
	config := fmt.Sprintf(`
relay: {name: %s, lease: %s, stop_timeout: 1s}
http: {listen: "127.0.0.1:0"}
destinations:
  shop: {program: {command: [/bin/sh, -c, %q], dir: %q, env: [TEST_MARK], %s}, %s}
routes:
  - {match: "*", to: shop, ordered: false, %s}
`, name, d.leaseOf(2*time.Second), script, p.dir, s.webhook, s.destination, s.route)
	return startRelay(t, config, append(d.env(), "TEST_MARK="+p.mark))
}

// TestProgram: a message goes through a program with all of its bytes, and nothing but what is stated goes with it.
func TestProgram(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		d, p := e.database(t), newPrograms(t)
		payload := []byte("{\"price\": 1.10, \"name\": \"Zoë 😀\"}\n\x00\xff")
		ids := d.write(t, outbox.Message{
			Type: "charge order; `id`", AggregateType: "charges", AggregateID: "$(id)", SchemaVersion: 3, Payload: payload,
			Headers: map[string]string{"LD_PRELOAD": "x"}, Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		})
		p.relay(t, d, "a", `cat >payload; /usr/bin/env | sort >env; echo "ch_1"; echo more`, shop{"dedupe: 24h", "width: 1", "base: 10ms"})
		d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox WHERE state = 'done' AND attempts = 1 AND trim(result) = 'ch_1'")
		got, err := os.ReadFile(p.path("payload"))
		if err != nil || string(got) != string(payload) {
			t.Errorf("got %q, %v, want %q", got, err, payload)
		}
		env, err := os.ReadFile(p.path("env"))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"OUTBOX_AGGREGATE_ID=$(id)", "OUTBOX_AGGREGATE_TYPE=charges", "OUTBOX_ATTEMPT=1", "OUTBOX_ID=" + ids[0], "OUTBOX_SCHEMA_VERSION=3",
			"OUTBOX_TYPE=charge order; `id`", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "PWD=" + p.dir,
			"TEST_MARK=" + p.mark, "TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		} // PWD is of the shell
		if lines := strings.Split(strings.TrimSpace(string(env)), "\n"); !slices.Equal(lines, want) {
			t.Errorf("got\n%q\nwant\n%q", lines, want)
		}
		d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox_attempt WHERE outcome = 'done' AND answer LIKE 'ch_1%more%'")
	})
}

// TestProgramKilledRelay: a relay is killed again and again while its programs run, which start others in turn. Nothing of
// their sessions is left, and what remembers no key is started once, whatever becomes of it.
func TestProgramKilledRelay(t *testing.T) {
	t.Parallel()
	d, p := newDatabase(t), newPrograms(t)
	rounds := max(scale(20), 3)
	const script = `echo "$OUTBOX_ID" >>began; (sleep 600 & sleep 600) & timeout 600 sleep 600 & trap '' TERM; sleep 0.1`
	for round := range rounds {
		d.insert(t, 40, "charge_order")
		before := len(p.lines(t, "began"))
		r := p.relay(t, d, "a", script, shop{"dedupe: never", "width: 8", "base: 10ms"})
		eventually(t, patience, func() error {
			if now := len(p.lines(t, "began")); now <= before {
				return fmt.Errorf("no program began in round %d", round)
			}
			return nil
		})
		<-time.After(mathrand.N(300 * time.Millisecond)) // by which some have ended, and some are about to begin
		r.kill(t)
		p.waitGone(t)
	}
	p.relay(t, d, "a", script, shop{"dedupe: never", "width: 8", "base: 10ms"})
	d.waitCount(t, patience, 0, "SELECT count(*) FROM outbox WHERE NOT (state = 'done' OR state = 'failed' AND reason = 'unknown')")
	began := p.lines(t, "began")
	slices.Sort(began)
	if once := slices.Compact(slices.Clone(began)); len(once) != len(began) {
		t.Errorf("%d programs began for %d messages", len(began), len(once))
	}
	hit := d.count(t, "SELECT count(*) FROM outbox WHERE state = 'failed'")
	t.Logf("%d kills hit %d of %d messages", rounds, hit, rounds*40)
	if hit < rounds/2 {
		t.Error("the kills hit too few programs to show anything")
	}
	p.waitGone(t)
}

// TestProgramOutlivesItsLease: a program runs for several times the length of its lease, beside a relay that would take the
// message: the lease is renewed, and the program is started once.
func TestProgramOutlivesItsLease(t *testing.T) {
	onServers(t, func(t *testing.T, e engine) {
		d, p := e.database(t), newPrograms(t)
		d.insert(t, 1, "charge_order")
		for _, name := range []string{"a", "b"} {
			p.relay(t, d, name, "echo x >>began; while ! [ -e gate ]; do sleep 0.05; done", shop{"dedupe: 24h", "timeout: 5m", "base: 10ms"})
		}
		lease := int(d.leaseOf(2*time.Second) / time.Second)
		d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox_lease WHERE renewed_at > claimed_at"+strings.Repeat(" + {second}", 3*lease))
		if err := os.WriteFile(p.path("gate"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox WHERE state = 'done' AND attempts = 1 AND lapses = 0 AND NOT {unknown}")
		if n := len(p.lines(t, "began")); n != 1 {
			t.Errorf("%d programs began", n)
		}
	})
}

// TestProgramTimeOut: at its time-out a program gets SIGTERM and, a grace later, SIGKILL; only then is it tried again.
func TestProgramTimeOut(t *testing.T) {
	t.Parallel()
	d, p := newDatabase(t), newPrograms(t)
	d.insert(t, 1, "charge_order")
	p.relay(t, d, "a", `trap 'echo TERM >>seen' TERM; echo $OUTBOX_ATTEMPT >>seen; while :; do sleep 0.05; done`,
		shop{"dedupe: 24h, grace: 500ms", "timeout: 3s", "base: 1ms, cap: 2ms, budget: 2"})
	d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox WHERE state = 'failed' AND reason = 'unknown' AND attempts = 2 AND error_class = 'timeout' AND last_error LIKE 'no end in time, ended by signal 9 (killed)%'")
	if got := strings.Join(p.lines(t, "seen"), " "); got != "1 TERM 2 TERM" {
		t.Errorf("the programs saw %q", got)
	}
	p.waitGone(t)
}

// TestProgramCutOff: a program that outlasts a stop is ended with it, and counts as a lapse.
func TestProgramCutOff(t *testing.T) {
	t.Parallel()
	d, p := newDatabase(t), newPrograms(t)
	d.insert(t, 1, "charge_order")
	r := p.relay(t, d, "a", `trap 'echo TERM >>seen' TERM; echo began >>seen; while :; do sleep 0.05; done`, shop{"dedupe: 24h", "width: 2", "base: 10ms"})
	eventually(t, patience, func() error {
		if len(p.lines(t, "seen")) == 0 {
			return errors.New("the program did not begin")
		}
		return nil
	})
	r.signal(t, syscall.SIGTERM)
	if code := r.wait(t, patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.waitGone(t)
	d.expect(t, 1, "SELECT count(*) FROM outbox WHERE state = 'pending' AND attempts = 0 AND lapses = 1 AND {unknown}")
	if got := strings.Join(p.lines(t, "seen"), " "); got != "began TERM" {
		t.Errorf("the program saw %q", got)
	}
}
