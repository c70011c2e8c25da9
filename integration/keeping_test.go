package integration

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/outbox"
)

// TestCopy: beside a copy of an outbox, relays of another instance, or of none, send nothing and say why, until somebody
// says that it is theirs. Those of the first one send.
func TestCopy(t *testing.T) {
	onEngines(t, copied)
}

func copied(t *testing.T, e engine) {
	d := e.database(t)
	config := e.plainConfig()
	first := startRelay(t, "instance: shop-production"+config, d.env())
	d.insert(t, 3, "order_paid")
	d.waitCount(t, patience, 3, "SELECT count(*) FROM outbox WHERE state = 'done'")
	if code := first.terminate(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	// What a copy holds is all that the relays of the second one know.
	d.insert(t, 3, "order_paid")
	foreign := []*process{startRelay(t, "instance: shop-staging"+config, d.env()), startRelay(t, strings.Replace(config, "name: a", "name: b", 1), d.env())}
	for _, p := range foreign {
		p.waitReady(t, http.StatusServiceUnavailable)
		p.waitLog(t, "the outbox belongs to the instance shop-production")
	}
	for _, own := range []string{"", "instance: shop-staging"} {
		_, stderr, code := outboxd(t, d.env(), "run", "--once", "--config", configFile(t, own+strings.Replace(config, "name: a", "name: once", 1)))
		if code != 9 || !strings.Contains(stderr, "the outbox belongs to the instance shop-production") {
			t.Errorf("run --once of %q: exit code %d\n%s", own, code, stderr)
		}
	}
	eventually(t, patience, func() error {
		stdout, _, _ := outboxd(t, d.env(), "status")
		for _, words := range []string{"relay a is of the instance shop-staging and sends nothing", "relay b names no instance and sends nothing"} {
			if !strings.Contains(stdout, words) {
				return fmt.Errorf("status says\n%s", stdout)
			}
		}
		return nil
	})
	d.expect(t, 3, "SELECT count(*) FROM outbox WHERE state = 'pending' AND lease_id = 0")
	d.expect(t, 0, "SELECT count(*) FROM outbox_operation WHERE applied_at IS NOT NULL AND op <> 'retry_now'")

	if _, stderr, code := outboxd(t, d.env(), "instance", "set", "shop-staging", "--note", "a copy of its own", "--yes"); code != 0 {
		t.Fatalf("instance set: exit code %d\n%s", code, stderr)
	}
	if stdout, _, _ := outboxd(t, d.env(), "instance"); stdout != "shop-staging\n" {
		t.Errorf("outboxd instance prints %q", stdout)
	}
	d.waitCount(t, patience, 6, "SELECT count(*) FROM outbox WHERE state = 'done'")
	if sent := strings.Count(foreign[0].stdout.String(), "\n"); sent != 3 || foreign[1].stdout.String() != "" {
		t.Errorf("the one of that name sent %d messages, want 3, and the one of none:\n%s", sent, foreign[1].stdout)
	}
	d.expect(t, 1, "SELECT count(*) FROM outbox_operation WHERE op = 'instance' AND note = 'a copy of its own'")
}

// TestRestoreInPlace does what docs/keeping.md says of a restore, after the table was set back to what a backup had.
func TestRestoreInPlace(t *testing.T) {
	onEngines(t, restored)
}

func restored(t *testing.T, e engine) {
	d := e.database(t)
	d.insert(t, 3, "order_paid") // as in the backup: they were sent since, and the table does not know it any more
	d.insert(t, 2, "letter")
	p := startRelay(t, e.plainConfig(), d.env(), "--paused")
	d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox_operation WHERE op = 'pause' AND applied_at IS NOT NULL AND note = 'started paused'")
	d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox_relay")
	d.expect(t, 5, "SELECT count(*) FROM outbox WHERE state = 'pending' AND lease_id = 0")
	said := d.runPage(t, "A restore in place", "BACKUP="+time.Now().UTC().Add(time.Hour).Format(time.RFC3339))
	if !strings.Contains(said, "everything is paused by relay a (started paused)") {
		t.Errorf("status does not say that everything is paused:\n%s", said)
	}
	d.waitCount(t, patience, 2, "SELECT count(*) FROM outbox WHERE type = 'letter' AND state = 'done'")
	d.expect(t, 3, "SELECT count(*) FROM outbox WHERE type = 'order_paid' AND state = 'failed' AND reason = 'cancelled'")
	if out := p.stdout.String(); strings.Contains(out, "order_paid") || strings.Count(out, "\n") != 2 {
		t.Errorf("the relay sent\n%s", out)
	}
}

// TestPurgeByHand does what docs/keeping.md says of it.
func TestPurgeByHand(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		d := e.database(t)
		for n := range 4 { // an id tells when it was made
			d.write(t, outbox.Message{ID: fmt.Sprintf("01800000-0000-7000-8000-00000000000%d", n), Type: "order_paid"})
		}
		d.exec(t, "UPDATE outbox SET state = 'done', due_at = {not due}, done_at = {last year}")
		d.insert(t, 1, "order_paid")
		d.exec(t, "UPDATE outbox SET state = 'done', due_at = {not due}, done_at = {now} WHERE state = 'pending'")
		d.insert(t, 1, "order_paid")
		said := d.runPage(t, "By hand")
		for _, words := range []string{"dry run: purge: 4 messages, 0 attempts, 0 operations", "purge: removed 4 messages"} {
			if !strings.Contains(said, words) {
				t.Errorf("%q is not said:\n%s", words, said)
			}
		}
		d.expect(t, 2, "SELECT count(*) FROM outbox")
		d.expect(t, 1, "SELECT count(*) FROM outbox_operation WHERE op = 'purge' AND affected = 4 AND note = 'the disk is full' AND actor <> ''")
		if _, stderr, code := outboxd(t, d.env(), "purge", "--done-after", "0s", "--limit", "-1"); code != 2 {
			t.Errorf("purge --limit -1: exit code %d, %s", code, stderr)
		}
	})
}

// runPage runs the shell blocks of a section of docs/keeping.md and returns all that they print.
func (d *database) runPage(t *testing.T, heading string, env ...string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/keeping.md")
	if err != nil {
		t.Fatal(err)
	}
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	script := "set -eu\noutboxd() { \"" + path + "\" \"$@\"; }\n"
	steps := 0
	for _, b := range blocks(t, strings.ReplaceAll(section, "\n   ", "\n")) {
		if b.language == "sh" {
			script += b.text
			steps++
		}
	}
	if steps == 0 {
		t.Fatalf("docs/keeping.md has no commands under %q", heading)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Env = environment(append(d.env(), env...))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the commands under %q: %v\n%s", heading, err, out)
	}
	return string(out)
}
