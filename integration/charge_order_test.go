package integration

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestChargeOrder: customers order while connections are cut before and after the charge, answers come too late, cards are
// declined, and one of two relays after the other is killed. Each is charged exactly once or, declined, not at all. Declined
// ones are corrected, and paid; what is done is sent again, and charged no second time; what is cancelled is not charged.
func TestChargeOrder(t *testing.T) {
	onServers(t, func(t *testing.T, e engine) {
		n := scale(1000)
		s := newCheckout(t, e, "--cut-every", "20", "--slow-every", "50", "--takes", "0.2")
		kills := s.sell(t, n)
		b := s.books(t)
		t.Logf("%d orders, %d kills of a relay, %d requests, %d repeats, %d lapses", n, kills, b.Requests, b.Repeats,
			s.count(t, "SELECT count(*) FROM outbox_attempt WHERE outcome = 'lapse'"))
		if b.Repeats == 0 || s.count(t, "SELECT count(*) FROM outbox_attempt WHERE outcome = 'lapse' AND relay LIKE 'relay-%'") == 0 {
			t.Error("nothing was sent twice, or no relay was killed with a message in flight: that shows nothing")
		}
		s.expectBooks(t, n, func(number int) string {
			if expired(number) {
				return "declined"
			}
			return "paid"
		})
		s.correct(t, n)
		s.replay(t, n)
		s.cancel(t, n)
	})
}

// sell has n customers order while relays are killed, and waits until all is settled.
func (s *checkout) sell(t *testing.T, n int) (kills int) {
	t.Helper()
	ordered := make(chan error, 1)
	go func() {
		for number := 1; number <= n; number++ {
			if err := s.order(number); err != nil {
				ordered <- err
				return
			}
		}
		ordered <- nil
	}()
	running := [2]int{s.relay(t), s.relay(t)}
	every := time.NewTicker(max(scaleDuration(5*time.Second), time.Second))
	defer every.Stop()
	for s.settled(t, n) != nil && (os.Getenv("OUTBOXD_TEST_FULL") == "1" || kills < 3) { // no message lapses more often than that
		<-every.C
		victim := running[kills%2]
		eventually(t, 5*patience, func() error { // it has something in flight, or nothing is left
			if s.count(t, fmt.Sprintf(`SELECT count(*) FROM outbox o JOIN outbox_lease l ON l.lease_id = o.lease_id
				WHERE o.state = 'in_flight' AND l.relay = 'relay-%d'`, victim)) > 0 {
				return nil
			}
			return s.settled(t, n)
		})
		s.relays[victim].kill(t)
		running[kills%2] = s.relay(t)
		kills++
	}
	if err := <-ordered; err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*patience, func() error { return s.settled(t, n) })
	return kills
}

// operator asks for an operation, and waits until it is applied.
func (s *checkout) operator(t *testing.T, args ...string) {
	t.Helper()
	if _, stderr, code := outboxd(t, s.corrector, append(args, "--yes", "--wait")...); code != 0 {
		t.Fatalf("outboxd %s: exit code %d\n%s", strings.Join(args, " "), code, stderr)
	}
}

func allPaid(int) string { return "paid" }

// correct gives the declined orders another card. A new key comes with it: the provider gives its old answer to the old one.
func (s *checkout) correct(t *testing.T, n int) {
	t.Helper()
	for number := 1; number <= n; number++ {
		if !expired(number) {
			continue
		}
		payload := filepath.Join(t.TempDir(), "payload.json")
		text := fmt.Sprintf(`{"order": %d, "amount": %d, "card": "another-card"}`, number, 100*number)
		if err := os.WriteFile(payload, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		id := s.texts(t, fmt.Sprintf("SELECT charge_message FROM orders WHERE number = %d", number))[0]
		args := []string{"correct", id, "--payload-file", payload, "--note", "the customer gave another card"}
		if s.count(t, "SELECT count(*) FROM outbox WHERE id = '"+id+"' AND {unknown}") == 1 {
			// A send that had no answer may have taken effect. Who corrects that looks into the provider's books, as faults did.
			args = append(args, "--force")
		}
		s.operator(t, args...)
	}
	s.waitCount(t, 5*patience, n, "SELECT count(*) FROM orders WHERE status = 'paid'")
	eventually(t, patience, func() error { return s.settled(t, n) })
	s.expectBooks(t, n, allPaid)
}

// replay sends again what is done, under its old key.
func (s *checkout) replay(t *testing.T, n int) {
	t.Helper()
	before := s.books(t)
	ids := s.texts(t, "SELECT charge_message FROM orders WHERE number IN (1, 2, 3)")
	s.operator(t, append([]string{"replay", "--state", "done", "--note", "does it charge again?"}, ids...)...)
	told := "SELECT count(*) FROM outbox WHERE type = 'charge_result' AND state = 'done' AND aggregateid IN ('1', '2', '3')"
	s.waitCount(t, patience, 2*len(ids), told)
	eventually(t, patience, func() error { return s.settled(t, n) })
	if after := s.books(t); after.Repeats < before.Repeats+len(ids) {
		t.Errorf("the provider had %d repeats more, want %d", after.Repeats-before.Repeats, len(ids))
	}
	s.expectBooks(t, n, allPaid)
}

// cancel ends an order before anybody is charged. The relay is one that started after the pause, so that it cannot be faster.
func (s *checkout) cancel(t *testing.T, n int) {
	t.Helper()
	s.operator(t, "pause", "--type", "charge_order", "--for", "1h", "--note", "the customer calls")
	for _, relay := range s.relays[len(s.relays)-2:] {
		relay.kill(t)
	}
	s.relay(t)
	if err := s.order(n + 1); err != nil {
		t.Fatal(err)
	}
	id := s.texts(t, fmt.Sprintf("SELECT charge_message FROM orders WHERE number = %d", n+1))[0]
	s.operator(t, "cancel", id, "--note", "the customer changed their mind")
	s.operator(t, "resume", "--type", "charge_order")
	s.waitCount(t, patience, 1, "SELECT count(*) FROM orders WHERE status = 'failed'")
	eventually(t, patience, func() error { return s.settled(t, n+1) })
	s.expectBooks(t, n+1, func(number int) string {
		if number > n {
			return "failed"
		}
		return "paid"
	})
}

// TestChargeOrderForgetful: where the provider remembers no key, the books show who was charged twice. So the test above
// can fail.
func TestChargeOrderForgetful(t *testing.T) {
	t.Parallel()
	s := newCheckout(t, postgresEngine(), "--forgetful", "--cut-every", "4", "--takes", "0")
	n := 16
	for number := 101; number <= 100+n; number++ {
		if err := s.order(number); err != nil {
			t.Fatal(err)
		}
	}
	s.relay(t)
	eventually(t, 5*patience, func() error { return s.settled(t, n) })
	twice := 0
	for _, ids := range s.books(t).Charges {
		if len(ids) > 1 {
			twice++
		}
	}
	if found := len(s.faults(t, n, func(number int) string {
		if expired(number) {
			return "declined"
		}
		return "paid"
	})); twice == 0 || found < twice {
		t.Errorf("%d customers were charged twice, and the books have %d faults", twice, found)
	}
}

// TestChargeOrderByHand does what the sample's README says, in its order and in a fresh copy of the checkout.
func TestChargeOrderByHand(t *testing.T) {
	t.Parallel()
	for _, client := range []string{"psql", "curl"} {
		if _, err := exec.LookPath(client); err != nil {
			t.Skip(client + " is not installed, and the README uses it")
		}
	}
	d, python := emptyDatabase(t), pythonWith(t, "psycopg2")
	sample := filepath.Join(copyCheckout(t), "integration", chargeOrder)
	replace := strings.NewReplacer(
		"8001", freePort(t), "8002", freePort(t), "python3 ", python+" ",
		"postgres://postgres:outboxd@127.0.0.1:5432/postgres?sslmode=disable", d.url,
	)
	texts := map[string]string{}
	for _, name := range []string{"README.md", "outboxd.yaml"} {
		text, err := os.ReadFile(filepath.Join(sample, name))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = replace.Replace(string(text))
		if err := os.WriteFile(filepath.Join(sample, name), []byte(texts[name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := "set -eux\ncd ../../..\n"
	for _, b := range blocks(t, texts["README.md"]) {
		if b.language == "sh" {
			script += b.text
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.WaitDelay = sample, patience
	cmd.Env = append(environment(nil), "OUTBOXD_LISTEN=off")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with all that it started, if it does not end that itself
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	d.expect(t, 9, "SELECT count(*) FROM orders WHERE status = 'paid' AND charge = concat('charge-', number, '-1')")
	d.expect(t, 1, "SELECT count(*) FROM outbox WHERE type = 'charge_order' AND aggregateid = '1' AND replays = 1 AND state = 'done'")
}

func freePort(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}
