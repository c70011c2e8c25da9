package integration

import (
	"fmt"
	"testing"
	"time"
)

// TestWaitsForTheNextConfiguration: a version that no policy accepts, and a routing key that no route takes, wait where
// people see them. A relay with a configuration that knows them sends them at once: the message is a day old, and would
// wait for ten minutes by itself.
func TestWaitsForTheNextConfiguration(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	r := newReceiver(t, always(reply{}))
	config := func(versions, routes string) string {
		return fmt.Sprintf(`
relay: {name: a, lease: 2s}
http: {listen: "127.0.0.1:0"}
destinations:
  shop: {webhook: {url: %q, dedupe: 24h}}
routes:
  - {match: charges, to: shop, ordered: false, types: {charge_order: {versions: [%s]}}}
  %s
`, r.url(), versions, routes)
	}
	d.exec(t, `INSERT INTO outbox (aggregatetype, type, schema_version, created_at) VALUES
		('charges', 'charge_order', 1, {now}), ('charges', 'charge_order', 2, {now} - 24 * {hour}), ('refunds', 'refund_order', 1, {now})`)
	old := config("1", "")
	p := startRelay(t, old, d.env())
	d.waitDone(t, 1, "charge_order")
	d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox WHERE schema_version = 2 AND state = 'pending' AND error_class = 'no_policy' AND attempts = 0")
	p.waitFigure(t, `outboxd_turned_back_total{cause="version",type="charge_order"}`, 1)
	p.waitFigure(t, `outboxd_unrouted_messages`, 1)
	d.waitProblem(t, old, "1 message of routing key charges", "no policy accepts its schema version")
	d.waitProblem(t, old, "1 message of routing key refunds", "has no route")
	d.expect(t, 1, "SELECT count(*) FROM outbox WHERE schema_version = 2 AND due_at > {now} + 300 * {second}")
	if code := p.terminate(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}

	startRelay(t, config("1, 2", "- {match: refunds, to: shop, ordered: false}"), d.env())
	d.waitDone(t, 2, "charge_order")
	d.waitDone(t, 1, "refund_order")
	r.expectSends(t, d)
	if came, _, _ := r.figures(); came != 3 {
		t.Errorf("%d requests came, want 3", came)
	}
}

// TestWebhookPauses: what is paused waits and the status says why, all else goes on, and what is resumed is sent.
func TestWebhookPauses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		target []string
		says   string
		waits  string // what is paused, of the messages below
		n      int    // how many that are
	}{
		{"a destination", []string{"shop"}, "destination:shop is paused by ", "routing_key <> 'other'", 4},
		{"a routing key", []string{"--routing-key", "charges"}, "routing_key:charges is paused by ", "routing_key = 'charges'", 3},
		{"a type", []string{"--type", "charge_order"}, "type:charge_order", "type = 'charge_order'", 2},
		{"a version", []string{"--type", "charge_order", "--schema-version", "2"}, "type_version:2@charge_order", "type = 'charge_order' AND schema_version = 2", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			shop, other := newReceiver(t, always(reply{})), newReceiver(t, always(reply{}))
			startRelay(t, fmt.Sprintf(`
relay: {name: a, lease: 2s}
http: {listen: "off"}
destinations:
  shop: {webhook: {url: %q, dedupe: 24h}}
  other: {webhook: {url: %q, dedupe: 24h}}
routes:
  - {match: other, to: other, ordered: false}
  - {match: "*", to: shop, ordered: false}
`, shop.url(), other.url()), d.env())
			d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox_relay")
			d.operate(t, append([]string{"pause", "--indefinitely", "--note", "they move house"}, c.target...)...)
			d.exec(t, `INSERT INTO outbox (aggregatetype, type, schema_version) VALUES ('charges', 'charge_order', 1), ('charges', 'charge_order', 2),
				('charges', 'charge_later', 1), ('refunds', 'refund_order', 1), ('other', 'other', 1)`)
			d.waitCount(t, patience, 5-c.n, "SELECT count(*) FROM outbox WHERE state = 'done'")
			d.waitProblem(t, "", c.says, "they move house", "until outboxd resume")
			if c.name == "a type" || c.name == "a version" {
				d.waitCount(t, patience, c.n, "SELECT count(*) FROM outbox WHERE error_class = 'paused' AND "+c.waits)
			}
			d.waitCount(t, patience, c.n, "SELECT count(*) FROM outbox WHERE state = 'pending' AND attempts = 0 AND "+c.waits) // but for a moment of each look
			if came, _, _ := shop.figures(); came != 4-c.n {
				t.Errorf("%d requests came while some are paused, want %d", came, 4-c.n)
			}
			d.operate(t, append([]string{"resume"}, c.target...)...)
			d.waitCount(t, patience, 5, "SELECT count(*) FROM outbox WHERE state = 'done' AND attempts = 1")
		})
	}
}

// TestGone: a receiver that answers 410 asks for no more. The destination is paused until somebody resumes it, also in a
// relay that starts later.
func TestGone(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	r := newReceiver(t, always(reply{status: 410}))
	words := shop{"dedupe: 24h, on_gone: pause", "width: 1", "base: 10ms, cap: 10ms"}
	p := d.relayTo(t, "a", r, words)
	d.insert(t, 10, "charge_order")
	d.waitProblem(t, "", "destination:shop is paused by relay a", "410", "until outboxd resume")
	p.terminate(t)
	came, _, _ := r.figures()
	r.answers(always(reply{}))
	p = d.relayTo(t, "b", r, words)
	p.waitFigure(t, `outboxd_destination_state{destination="shop",state="paused"}`, 1)
	d.waitCount(t, patience, 10, "SELECT count(*) FROM outbox WHERE state = 'pending' AND due_at < {now}")
	if now, _, _ := r.figures(); now != came {
		t.Errorf("%d requests came while it was paused", now-came)
	}
	d.operate(t, "resume", "shop")
	d.waitDone(t, 10, "charge_order")
	r.expectSends(t, d)
}

// TestThrottled: a receiver that answers 429 with a Retry-After is left alone for so long, and people see that.
func TestThrottled(t *testing.T) {
	t.Parallel()
	t.Run("for long", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		r := newReceiver(t, always(reply{status: 429, header: "Retry-After: 250\r\n"}))
		p := d.relayTo(t, "a", r, shop{"dedupe: 24h", "width: 1", "base: 10ms"})
		d.insert(t, 10, "charge_order")
		p.waitFigure(t, `outboxd_destination_state{destination="shop",state="throttled"}`, 1)
		d.waitProblem(t, "", "destination shop is left alone by relay a, because it asked for that", "429", "4m10s")
		d.expect(t, 1, "SELECT count(*) FROM outbox WHERE attempts = 1 AND error_class = 'throttled' AND due_at > {now} + 60 * {second}")
		d.expect(t, 9, "SELECT count(*) FROM outbox WHERE attempts = 0 AND state = 'pending'")
		if came, _, _ := r.figures(); came != 1 {
			t.Errorf("%d requests came, want 1", came)
		}
	})
	t.Run("and goes on", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		r := newReceiver(t, func(one *request) reply {
			if one.before == 0 {
				return reply{status: 429, header: "Retry-After: 2\r\n"}
			}
			return reply{}
		})
		d.insert(t, 10, "charge_order")
		d.relayTo(t, "a", r, shop{"dedupe: 24h", "width: 1", "base: 10ms"})
		d.waitDone(t, 10, "charge_order")
		seen := r.seen()
		if wait := seen[1].at.Sub(seen[0].over); len(seen) != 11 || wait < 2*time.Second {
			t.Errorf("%d requests, the second %s after the answer to the first", len(seen), wait)
		}
	})
}
