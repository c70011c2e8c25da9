package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

const chargeOrder = "samples/charge-order"

// checkout is the sample charge-order: its shop and its payment provider, as they are, and relays between the two.
type checkout struct {
	*database
	shop, provider string     // their addresses
	config         string     // the sample's own, that leads to them
	env, corrector []string   // of a relay, and of a person
	relays         []*process // all that were started
}

// newCheckout starts shop and provider. Each part has the rights of its role, and no other.
func newCheckout(t *testing.T, e engine, provider ...string) *checkout {
	t.Helper()
	driver := map[string]string{"postgres": "psycopg2", "mysql": "pymysql, cryptography"}[e.driver]
	python := pythonWith(t, driver)
	s := &checkout{database: e.withRoles(t)}
	schema, err := os.ReadFile(filepath.Join(chargeOrder, "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for statement := range strings.SplitSeq(strings.TrimSpace(string(schema)), ";\n") {
		s.exec(t, strings.TrimSuffix(statement, ";"))
	}
	application := s.as(t, "application")
	role := "outbox_application"
	if e.driver == "mysql" { // where the tests give users the rights of roles
		rewrite(t, application, func(u *url.URL) { role = u.User.Username() })
	}
	for _, table := range []string{"orders", "processed_message"} {
		s.exec(t, "GRANT SELECT, INSERT, UPDATE ON "+table+" TO "+role)
	}
	s.provider = startServer(t, nil, python, append([]string{filepath.Join(chargeOrder, "provider.py"), "0"}, provider...)...)
	s.shop = startServer(t, []string{"DATABASE_URL=" + application}, python, filepath.Join(chargeOrder, "shop.py"), "0")

	config, err := os.ReadFile(filepath.Join(chargeOrder, "outboxd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s.config = strings.NewReplacer("127.0.0.1:8001", s.shop, "127.0.0.1:8002", s.provider).Replace(string(config))
	s.env = []string{
		"OUTBOXD_DATABASE_URL=" + s.as(t, "relay"), "OUTBOXD_LISTEN=off", "OUTBOXD_RELAY_LEASE=" + e.leaseOf(2*time.Second).String(),
	}
	s.corrector = []string{"OUTBOXD_DATABASE_URL=" + s.as(t, "corrector")}
	return s
}

// pythonWith is an interpreter that has these modules.
func pythonWith(t *testing.T, modules string) string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), python, "-c", "import "+modules).Run() == nil {
			return python
		}
	}
	missing := "no python3 can import " + modules + ": scripts/languages installs them"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// startServer starts a program that prints the port that it listens on, and returns the address. It is killed at the end
// of the test.
func startServer(t *testing.T, env []string, path string, args ...string) string {
	t.Helper()
	p := &process{cmd: exec.Command(path, args...), stdout: &output{}, stderr: &output{}, exited: make(chan struct{})}
	p.cmd.Env = environment(env)
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	p.cmd.SysProcAttr = childAttributes()
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // as in start, and why
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("%s said:\n%s%s", strings.Join(args, " "), p.stdout, p.stderr)
		}
	})
	port := regexp.MustCompile(`listening on port (\d+)\n`)
	eventually(t, patience, func() error {
		if !port.MatchString(p.stdout.String()) {
			return fmt.Errorf("%s does not listen: %s", strings.Join(args, " "), p.stderr)
		}
		return nil
	})
	return "127.0.0.1:" + port.FindStringSubmatch(p.stdout.String())[1]
}

// relay starts a relay, and returns its number.
func (s *checkout) relay(t *testing.T) int {
	t.Helper()
	n := len(s.relays)
	s.relays = append(s.relays, startRelay(t, s.config, append(s.env, fmt.Sprint("OUTBOXD_RELAY_NAME=relay-", n))))
	return n
}

// order is a customer who orders. One customer in twenty has a card that expired.
func (s *checkout) order(number int) error {
	card := fmt.Sprint("card-of-", number)
	if expired(number) {
		card = "expired-" + card
	}
	body := fmt.Sprintf(`{"number": %d, "amount": %d, "card": %q}`, number, 100*number, card)
	response, err := http.Post("http://"+s.shop+"/orders", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		return fmt.Errorf("the shop answers %s to order %d", response.Status, number)
	}
	return nil
}

func expired(number int) bool { return number%20 == 7 }

// settled says whether all n orders are known to be paid, declined or failed, and nothing more is to be sent.
func (s *checkout) settled(t *testing.T, n int) error {
	t.Helper()
	var known, open int
	s.read(t, "SELECT (SELECT count(*) FROM orders WHERE status <> 'new'), (SELECT count(*) FROM outbox WHERE state IN ('pending', 'in_flight'))", &known, &open)
	if known != n || open > 0 {
		return fmt.Errorf("of %d orders %d have an end, and %d messages none", n, known, open)
	}
	return nil
}

// books are what the provider says of itself.
type books struct {
	Requests, Repeats int
	Charges           map[int][]string
}

func (s *checkout) books(t *testing.T) (b books) {
	t.Helper()
	status, text := ask(t, s.provider, "/charges")
	if err := json.Unmarshal([]byte(text), &b); err != nil || status != http.StatusOK {
		t.Fatalf("the provider answers %d: %v", status, err)
	}
	return b
}

// expectBooks holds the shop, the outbox and the provider against each other: each order has the status that it should
// have, was charged once if it is paid and otherwise not at all, and was told of by one order_paid if it is paid.
func (s *checkout) expectBooks(t *testing.T, n int, status func(number int) string) {
	t.Helper()
	for _, fault := range s.faults(t, n, status) {
		t.Error(fault)
	}
}

func (s *checkout) faults(t *testing.T, n int, status func(number int) string) (faults []string) {
	t.Helper()
	rows := s.rows(t, `SELECT o.number, o.status, coalesce(o.charge, ''), m.state, coalesce(m.reason, ''), coalesce(m.result, ''),
			(SELECT count(*) FROM outbox p WHERE p.type = 'order_paid' AND p.state = 'done' AND p.aggregateid = m.aggregateid)
		FROM orders o JOIN outbox m ON concat(m.id, '') = o.charge_message ORDER BY o.number`)
	if len(rows) != n {
		faults = append(faults, fmt.Sprintf("%d orders with their messages, want %d", len(rows), n))
	}
	charges := s.books(t).Charges
	for _, row := range rows {
		var number int
		if _, err := fmt.Sscan(row[0], &number); err != nil {
			t.Fatal(err)
		}
		for i := range row {
			row[i] = strings.TrimRight(row[i], " ") // where no column grows from NULL
		}
		want := status(number)
		wants := map[string]string{"paid": "done  1", "declined": "failed rejected 0", "failed": "failed cancelled 0"}[want]
		if has := strings.Join([]string{row[3], row[4], row[6]}, " "); row[1] != want || has != wants {
			faults = append(faults, fmt.Sprintf("order %d is %s, and its message with what it brought %q; want %s and %q", number, row[1], has, want, wants))
		}
		var once []string
		if want == "paid" {
			once = []string{fmt.Sprintf("charge-%d-1", number)}
		}
		if charged := charges[number]; fmt.Sprint(charged) != fmt.Sprint(once) || row[2] != strings.Join(once, "") || row[5] != row[2] {
			faults = append(faults, fmt.Sprintf("order %d was charged as %q, the shop knows of %q and the outbox of %q", number, charged, row[2], row[5]))
		}
		delete(charges, number)
	}
	if len(charges) > 0 {
		faults = append(faults, fmt.Sprintf("%d orders were charged that the shop does not know", len(charges)))
	}
	return faults
}
