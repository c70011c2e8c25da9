package integration

import (
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestHarness goes once through every door of the harness: the other tests rely on all of them at once.
func TestHarness(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	database, url := newPostgresProxy(t, d.url)
	kafka := newKafkaProxy(t)
	topic := newTopic(t, 3)
	first := startRelay(t, harnessConfig("first", kafka, topic), []string{"OUTBOXD_DATABASE_URL=" + url})

	claim := database.hold(asks(claimStatement))
	d.exec(t, "INSERT INTO outbox (aggregateid, type, payload) VALUES ('k', 'order_paid', '{}')")
	claim.wait(t)
	d.expect(t, 1, "SELECT count(*) FROM outbox WHERE state = 'pending'")

	produce := kafka.hold(responses("Produce"))
	claim.release()
	produce.wait(t)
	d.expect(t, 1, "SELECT count(*) FROM outbox WHERE state = 'in_flight'")
	checkRecord(t, d, readTopic(t, topic))
	produce.release()
	d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox WHERE state = 'done'")
	var result string
	d.read(t, "SELECT result FROM outbox", &result)
	if r := readTopic(t, topic)[0]; place(r) != result {
		t.Errorf("result %s, and the record is at %s", result, place(r))
	}

	first.freeze(t)
	d.exec(t, "INSERT INTO outbox (type) VALUES ('order_paid')")
	first.thaw(t)
	d.waitCount(t, patience, 2, "SELECT count(*) FROM outbox WHERE state = 'done'")
	if code := first.terminate(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
}

// TestStatements sees each of the relay's statements go by: a trap for a text that no statement has any more would wait
// for ever, or let a test pass that breaks nothing.
func TestStatements(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	database, url := newPostgresProxy(t, d.url)
	kafka := newKafkaProxy(t)
	topic := newTopic(t, 1)
	seen := map[string]*tally{}
	for _, s := range []string{
		claimStatement, loadStatement, settleStatement, renewStatement, finishStatement, takeStatement, moveStatement,
	} {
		seen[s] = database.count(answers(s))
	}

	// The first relay dies in a send; the second watches it, takes its lease and sends again, and renews its own meanwhile.
	held := kafka.hold(requests("Produce"))
	first := startRelay(t, harnessConfig("first", kafka, topic), []string{"OUTBOXD_DATABASE_URL=" + url})
	d.exec(t, "INSERT INTO outbox (type) VALUES ('order_paid')")
	held.wait(t)
	first.kill(t)
	held.cut()
	held = kafka.hold(requests("Produce"))
	startRelay(t, harnessConfig("second", kafka, topic), []string{"OUTBOXD_DATABASE_URL=" + url})
	held.wait(t)
	eventually(t, patience, func() error {
		if seen[renewStatement].n.Load() == 0 {
			return errors.New("no lease was renewed")
		}
		return nil
	})
	held.release()
	d.waitCount(t, patience, 1, "SELECT count(*) FROM outbox WHERE state = 'done' AND lapses = 0")
	d.waitCount(t, patience, 0, "SELECT count(*) FROM outbox_lease")
	for s, n := range seen {
		if n.n.Load() == 0 {
			t.Errorf("no statement like %s", s)
		}
	}
}

func harnessConfig(name string, kafka *proxy, topic string) string {
	return fmt.Sprintf(`
relay: {name: %s, lease: 2s}
http: {listen: "off"}
destinations:
  broker: {kafka: {brokers: [%q], topic: %q}}
routes:
  - {match: "*", to: broker}
`, name, kafka.address(), topic)
}

// checkRecord compares the topic's only record with the table's only message.
func checkRecord(t *testing.T, d *database, records []*kgo.Record) {
	t.Helper()
	if len(records) != 1 {
		t.Fatalf("%d records, want 1", len(records))
	}
	var id, key, payload string
	d.read(t, "SELECT id, aggregateid, payload FROM outbox", &id, &key, &payload)
	r := records[0]
	if wireKey, once := header(r, "id"); !once || wireKey != id || string(r.Key) != key || string(r.Value) != payload {
		t.Errorf("message %s, key %s, %s; record %s (once: %t), key %s, %s", id, key, payload, wireKey, once, r.Key, r.Value)
	}
}
