package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// TestBadNight: 40,000 messages wait, a provider is down, and a deployment wrote 5,000 payloads with a misspelt name, which
// their receiver answers with 500. An operator finds them, pauses their version, corrects all of them with one expression,
// replays what the provider's outage cost, and resolves the rest: with SQL alone, and with the commands alone, each under the
// shipped roles. In the end each effect is there once.
func TestBadNight(t *testing.T) {
	t.Parallel()
	for _, e := range []engine{postgresEngine(), mysqlEngine("mysql")} {
		for name, work := range map[string]func(*testing.T, *badNight){"SQL": bySQL, "commands": byCommands} {
			t.Run(e.name+" by "+name, func(t *testing.T) {
				t.Parallel()
				n := newBadNight(t, e)
				n.fall(t)
				work(t, n)
				n.expectEffects(t)
				n.expectTrail(t)
			})
		}
	}
}

// What the messages of the night are. The misspelt ones are of version 2 of order_paid, beside good ones of version 1.
const (
	nightOrders  = "order_paid"
	nightCharges = "charge_order"
	nightLetters = "newsletter" // nobody wants them any more: each is rejected
)

type badNight struct {
	*database
	shop, provider              *receiver
	bad, good, charges, letters int    // how many
	reader, operator, corrector string // URLs of the database, each for a user with that role
	began                       time.Time
}

func newBadNight(t *testing.T, e engine) *badNight {
	t.Helper()
	n := &badNight{database: e.withRoles(t), bad: scale(5000), charges: scale(15_000), letters: 10, began: time.Now()}
	n.good = scale(40_000) - n.bad - n.charges - n.letters
	n.reader, n.operator, n.corrector = n.as(t, "reader"), n.as(t, "operator"), n.as(t, "corrector")
	n.shop = newReceiver(t, func(one *request) reply {
		switch {
		case strings.Contains(one.body, "letter"):
			return reply{status: http.StatusGone}
		case !strings.Contains(one.body, `"amount"`):
			return reply{status: http.StatusInternalServerError, body: "undefined index: amount"}
		}
		return reply{}
	})
	n.provider = newReceiver(t, always(reply{status: http.StatusServiceUnavailable}))
	return n
}

// fall writes the messages and lets a relay send them, until all that can go well has, and misspelt ones are both pending
// and failed.
func (n *badNight) fall(t *testing.T) {
	t.Helper()
	startRelay(t, fmt.Sprintf(`
relay: {name: night, lease: %s}
http: {listen: "off"}
destinations:
  shop: {webhook: {url: %q, dedupe: 24h, outcomes: {410: fail}}, width: 100, breaker: {run: 5, pause: 20ms, cap: 100ms}}
  provider: {webhook: {url: %q, dedupe: 24h}, width: 100, breaker: {run: 5, pause: 20ms, cap: 100ms}}
routes:
  - {match: charge_order, to: provider, ordered: false, budget: 1}
  - {match: "*", to: shop, ordered: false, base: 500ms, cap: 1s, types: {order_paid: {budget: 2, versions: [1, 2]}}}
`, n.leaseOf(10*time.Second), n.shop.url(), n.provider.url()), []string{"OUTBOXD_DATABASE_URL=" + n.as(t, "relay")})
	later := n.bad / 5
	n.fill(t, n.bad-later)
	n.waitCount(t, 5*patience, n.good, "SELECT count(*) FROM outbox WHERE state = 'done'")
	n.waitLeast(t, n.bad/10, "SELECT count(*) FROM outbox WHERE state = 'failed' AND type = 'order_paid'")
	n.waitLeast(t, 10, "SELECT count(*) FROM outbox WHERE state = 'failed' AND type = 'charge_order'")
	n.waitCount(t, patience, n.letters, "SELECT count(*) FROM outbox WHERE state = 'failed' AND type = 'newsletter'")
	n.insertRows(t, n.orders(n.bad-later, n.bad, 2)...)
}

// fill writes all messages but the last bad ones, as a day has them: mixed.
func (n *badNight) fill(t *testing.T, bad int) {
	t.Helper()
	kinds := [][]string{n.orders(0, bad, 2), n.orders(n.bad, n.bad+n.good, 1)}
	var charges, letters []string
	for i := range n.charges {
		charges = append(charges, fmt.Sprintf(`('%s', 1, '{"charge":%d,"amount":%d}')`, nightCharges, i, 100*i))
	}
	for i := range n.letters {
		letters = append(letters, fmt.Sprintf(`('%s', 1, '{"letter":%d}')`, nightLetters, i))
	}
	kinds = append(kinds, charges, letters)
	var all []string
	for most, i := max(bad, n.good, n.charges), 0; i < most; i++ {
		for _, kind := range kinds {
			all = append(all, kind[i*len(kind)/most:(i+1)*len(kind)/most]...)
		}
	}
	n.insertRows(t, all...)
}

// orders are rows of orders by their numbers; those of version 2 have a misspelt name.
func (n *badNight) orders(from, to, version int) (rows []string) {
	name := map[int]string{1: "amount", 2: "amont"}[version]
	for i := from; i < to; i++ {
		rows = append(rows, fmt.Sprintf(`('%s', %d, '{"order":%d,"%s":%d}')`, nightOrders, version, i, name, 100*i))
	}
	return rows
}

func (n *badNight) insertRows(t *testing.T, rows ...string) {
	t.Helper()
	for len(rows) > 0 {
		some := rows[:min(1000, len(rows))]
		n.exec(t, "INSERT INTO outbox (type, schema_version, payload) VALUES "+strings.Join(some, ", "))
		rows = rows[len(some):]
	}
}

// page is the night in docs/operations.md, step by step.
func (n *badNight) page(t *testing.T) []block {
	t.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## The bad night\n")
	section, _, _ = strings.Cut(section, "\n## ")
	return blocks(t, section)
}

// before is what happens in the world before a step: the provider comes back before its messages are replayed.
func (n *badNight) before(t *testing.T, step string) {
	t.Helper()
	if step == "replay" {
		n.provider.answers(always(reply{}))
		n.waitSent(t)
	}
}

// after is what a step must have come to.
func (n *badNight) after(t *testing.T, step string) {
	t.Helper()
	switch step {
	case "pause":
		n.expectPaused(t)
	case "replay":
		n.waitSent(t)
	case "resolve":
		n.waitQuiet(t)
	}
}

// expectPaused: what was misspelt is partly pending and partly failed now, and nothing of it goes out.
func (n *badNight) expectPaused(t *testing.T) {
	t.Helper()
	eventually(t, patience, func() error { // each is claimed and turned back now and then
		failed := n.count(t, "SELECT count(*) FROM outbox WHERE type = 'order_paid' AND state = 'failed'")
		pending := n.count(t, "SELECT count(*) FROM outbox WHERE type = 'order_paid' AND state = 'pending'")
		if failed == 0 || pending == 0 || failed+pending != n.bad {
			return fmt.Errorf("%d misspelt messages are pending and %d failed, want some of each, %d in all", pending, failed, n.bad)
		}
		return nil
	})
}

// waitSent waits until all is done but what waits for a person.
func (n *badNight) waitSent(t *testing.T) {
	t.Helper()
	n.waitCount(t, 5*patience, 0, "SELECT count(*) FROM outbox WHERE state IN ('pending', 'in_flight')")
}

// waitQuiet waits until nothing wants a person, as monitoring sees it.
func (n *badNight) waitQuiet(t *testing.T) {
	t.Helper()
	n.expect(t, n.good+n.bad+n.charges, "SELECT count(*) FROM outbox WHERE state = 'done'")
	n.expect(t, n.letters, "SELECT count(*) FROM outbox WHERE state = 'failed' AND type = 'newsletter'")
	eventually(t, patience, func() error { // the relay tells every few seconds that its breakers are closed
		stdout, stderr, code := outboxd(t, []string{"OUTBOXD_DATABASE_URL=" + n.reader}, "check", "--max-open", "0", "--max-paused", "0")
		if code != 0 {
			return fmt.Errorf("outboxd check: exit code %d: %s%s", code, stdout, stderr)
		}
		return nil
	})
	t.Logf("all of it took %s", time.Since(n.began).Round(time.Millisecond))
}

// expectEffects: each receiver took each of its messages once, and with the right payload.
func (n *badNight) expectEffects(t *testing.T) {
	t.Helper()
	effects := func(r *receiver) map[string]int {
		times := map[string]int{}
		for _, one := range r.seen() {
			if one.status() == http.StatusOK {
				times[plainJSON(t, one.body)]++
			}
		}
		return times
	}
	want := map[string]int{}
	for i := range n.bad + n.good {
		want[fmt.Sprintf(`{"amount":%d,"order":%d}`, 100*i, i)] = 1
	}
	sameEffects(t, effects(n.shop), want)
	want = map[string]int{}
	for i := range n.charges {
		want[fmt.Sprintf(`{"amount":%d,"charge":%d}`, 100*i, i)] = 1
	}
	sameEffects(t, effects(n.provider), want)
}

func sameEffects(t *testing.T, got, want map[string]int) {
	t.Helper()
	wrong := 0
	for payload, times := range got {
		if times != want[payload] {
			if wrong++; wrong < 5 {
				t.Errorf("%s took effect %d times, want %d", payload, times, want[payload])
			}
		}
	}
	if len(got) != len(want) || wrong > 0 {
		t.Errorf("%d payloads took effect, %d of them wrongly, want %d", len(got), wrong, len(want))
	}
}

// plainJSON is a JSON text with its keys in order.
func plainJSON(t *testing.T, text string) string {
	t.Helper()
	var value any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	plain, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// expectTrail: who did what, and why, is on record, and how many messages it changed.
func (n *badNight) expectTrail(t *testing.T) {
	t.Helper()
	var steps []string
	for _, row := range n.rows(t, `SELECT op, actor, coalesce(note, ''), coalesce(affected, -1), coalesce(detail, '') FROM outbox_operation
		WHERE applied_at IS NOT NULL AND actor NOT LIKE 'relay %' AND note NOT LIKE 'resumes %' AND NOT dry_run ORDER BY requested_at, id`) {
		steps = append(steps, row[0])
		if row[1] == "" || row[2] == "" || strings.Contains(row[4], "refused") {
			t.Errorf("%s was asked for by %q, for %q, and came to %s", row[0], row[1], row[2], row[4])
		}
		if row[0] == "correct" && (row[3] != fmt.Sprint(n.bad) || row[4] != "") {
			t.Errorf("corrected are %s of %d: %s", row[3], n.bad, row[4])
		}
	}
	if got := strings.Join(steps, ", "); got != "pause, correct, resume, replay, resolve" {
		t.Errorf("the steps on record are: %s", got)
	}
	n.expect(t, 0, "SELECT count(*) FROM outbox_operation WHERE applied_at IS NULL")
	n.expect(t, n.bad, `SELECT count(*) FROM outbox_correction c JOIN outbox_operation o ON o.id = c.operation_id
		WHERE NOT o.dry_run AND c.old_payload LIKE '%"amont"%' AND c.payload LIKE '%"amount"%'`)
}
