package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// TestLateCommits: a message is found by its due_at whenever its transaction commits, and however far its due_at lies
// back. An explicit NULL, as some ORMs write, is refused where it is written.
func TestLateCommits(t *testing.T) {
	onEngines(t, lateCommits)
}

func lateCommits(t *testing.T, e engine) {
	d := e.database(t)
	startRelay(t, e.plainConfig(), d.env())
	done := func(n int, kind string) {
		t.Helper()
		d.waitCount(t, patience, n, "SELECT count(*) FROM outbox WHERE type = '"+kind+"' AND state = 'done' AND attempts = 1")
	}
	if e.proxy != nil { // while one writes to SQLite all others wait
		late, err := d.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := late.ExecContext(t.Context(), "INSERT INTO outbox (aggregatetype, type) VALUES ('orders', 'late')"); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := late.Commit(); err != nil {
				t.Fatal(err)
			}
			done(1, "late")
		}()
	}
	// Others with a higher seq and a later due_at go by, over more than one sweep of the relay.
	for n := 1; n <= scale(600); n++ {
		d.exec(t, "INSERT INTO outbox (aggregatetype, type) VALUES ('orders', 'early')")
		done(n, "early")
	}
	d.exec(t, "INSERT INTO outbox (aggregatetype, type, due_at) VALUES ('orders', 'past', {long ago})")
	done(1, "past")
	_, err := d.ExecContext(t.Context(), "INSERT INTO outbox (aggregatetype, type, due_at) VALUES ('orders', 'null', NULL)")
	if err == nil || !strings.Contains(err.Error(), "due_") { // the column or its constraint
		t.Errorf("an explicit NULL for due_at: %v, want that it is refused", err)
	}
}

// TestInsertBeforeSettlement: a message of the same aggregate that comes between the send and the settlement of another
// is not taken for it.
func TestInsertBeforeSettlement(t *testing.T) {
	onServers(t, insertBeforeSettlement)
}

func insertBeforeSettlement(t *testing.T, e engine) {
	d := e.database(t)
	database, url := d.proxy(t, d.url)
	topic := newTopic(t, 1)
	settlement := database.hold(asks(d.said.settle))
	startRelay(t, fmt.Sprintf(`
relay: {name: a, lease: 10s}
http: {listen: "off"}
destinations: {broker: {kafka: {brokers: [%q], topic: %q}}}
routes: [{match: "*", to: broker}]
`, brokers(t)[0], topic), []string{"OUTBOXD_DATABASE_URL=" + url})
	d.exec(t, "INSERT INTO outbox (aggregatetype, aggregateid, type) VALUES ('orders', '1', 'first')")
	settlement.wait(t)
	d.exec(t, "INSERT INTO outbox (aggregatetype, aggregateid, type) VALUES ('orders', '1', 'second')")
	settlement.release()
	d.waitCount(t, patience, 2, "SELECT count(*) FROM outbox WHERE state = 'done' AND attempts = 1")
	wantArrived(t, d, topic, 2)
}

// TestRelaysStartTogether: many relays that meet the same messages, due for a retry, send each of them once.
func TestRelaysStartTogether(t *testing.T) {
	onEngines(t, relaysStartTogether)
}

func relaysStartTogether(t *testing.T, e engine) {
	const messages = 1000
	relays := max(scale(20), 5)
	if e.proxy == nil {
		relays = 5 // one writer at a time: SQLite is for few
	}
	d := e.database(t)
	d.insert(t, messages, "order_paid")
	d.exec(t, "UPDATE outbox SET attempts = 1, lease_id = 4711, error_class = 'http_5xx', due_at = {now} - {second}")
	sink := &relaytest.Sink{AnswerFunc: func(context.Context, *relaytest.Sending) relay.Outcome { return relay.Done("") }}
	var begin []func()
	for i := range relays {
		begin = append(begin, relayInside(t, d, fmt.Sprintf("r%d", i), relay.Destination{Name: "shop", Sink: sink, Width: 20}, relay.Policy{}))
	}
	for _, one := range begin {
		one()
	}
	d.waitCount(t, patience, messages, "SELECT count(*) FROM outbox WHERE state = 'done' AND attempts = 2")
	if n := len(sink.Log()); n != messages {
		t.Errorf("%d sends of %d messages by %d relays", n, messages, relays)
	}
}
