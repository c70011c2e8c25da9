package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestBrokersThatDoNotAnswer: they stop no start and flip no health check; the messages wait and say why, and cost nothing.
func TestBrokersThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.insert(t, 3, "order_paid")
	r := startRelay(t, `
relay: {name: a, lease: 2s}
http: {listen: "127.0.0.1:0"}
destinations: {broker: {kafka: {brokers: ["127.0.0.1:1"], topic: orders}, timeout: 2s}}
routes: [{match: "*", to: broker}]
`, []string{"OUTBOXD_DATABASE_URL=" + d.url})
	d.waitCount(t, patience, 3, `SELECT count(*) FROM outbox WHERE state = 'pending' AND attempts = 0 AND error_class = 'refused'
		AND last_error LIKE '%check the destination''s brokers'`)
	r.waitReady(t, 200)
	if code, body := ask(t, r.address(t), "/livez"); code != 200 {
		t.Errorf("/livez answers %d, %s", code, body)
	}
}

// TestUnknownTopic: messages for a topic that is not there wait visibly and cost nothing, the topic is not made, and
// another topic of the same cluster goes on. They go out as soon as somebody makes it.
func TestUnknownTopic(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	prefix := unique("outboxd.test")
	there, missing := newTopicNamed(t, prefix+".there", 1), prefix+".missing"
	env := []string{"OUTBOXD_DATABASE_URL=" + d.url}
	startRelay(t, fmt.Sprintf(`
relay: {name: a, lease: 10s}
http: {listen: "off"}
destinations: {broker: {kafka: {brokers: [%q], topic: "%s.{routing_key}"}, timeout: 5s}}
routes: [{match: "*", to: broker}]
`, brokers(t)[0], prefix), env)
	d.insert(t, 20, "missing")
	d.waitCount(t, patience, 20, fmt.Sprintf(`SELECT count(*) FROM outbox WHERE state = 'pending' AND attempts = 0 AND error_class = 'not_found'
		AND last_error LIKE 'topic "%s": %%; create the topic, or change the destination''s topic'`, missing))
	d.insert(t, 20, "there")
	d.waitCount(t, patience, 20, "SELECT count(*) FROM outbox WHERE type = 'there' AND state = 'done' AND attempts = 1")
	eventually(t, patience, func() error {
		if words := openBreakerIn(t, env); !strings.Contains(words, missing) {
			return fmt.Errorf("the status says %q", words)
		}
		return nil
	})
	if topicExists(t, missing) {
		t.Error("the topic was made")
	}
	newTopicNamed(t, missing, 1)
	d.waitCount(t, 2*patience, 40, "SELECT count(*) FROM outbox WHERE state = 'done' AND attempts = 1")
	if n := len(readTopic(t, there)); n != 20 {
		t.Errorf("%d records, want 20", n)
	}
}

func topicExists(t *testing.T, name string) bool {
	t.Helper()
	client := kafkaClient(t)
	defer client.Close()
	found, err := kmsg.NewPtrMetadataRequest().RequestWith(t.Context(), client) // without topics: all of them
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range found.Topics {
		if topic.Topic != nil && *topic.Topic == name {
			return true
		}
	}
	return false
}

// TestMessagesThatKafkaRefuses: a payload over the topic's limit, headers that are no text and a payload over the
// producer's own limit end failed, and say what to do; what was sent in one batch with them is done.
func TestMessagesThatKafkaRefuses(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	topic := newTopic(t, 1, "max.message.bytes=20000")
	d.insert(t, 50, "order_paid")
	d.exec(t, `INSERT INTO outbox (type, payload) VALUES ('over the producer', repeat('x', 3000000)),
		('over the topic', (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 3000) AS n))`) // which compression leaves large
	d.exec(t, `INSERT INTO outbox (type, headers) VALUES ('header', '{"good":"a","tenant":7}')`)
	d.insert(t, 50, "order_paid")
	startRelay(t, fmt.Sprintf(`
relay: {name: a, lease: 10s}
http: {listen: "off"}
destinations: {broker: {kafka: {brokers: [%q], topic: %q}, timeout: 5s}}
routes: [{match: "*", to: broker}]
`, brokers(t)[0], topic), []string{"OUTBOXD_DATABASE_URL=" + d.url})
	d.waitCount(t, patience, 0, "SELECT count(*) FROM outbox WHERE state NOT IN ('done', 'failed')")
	wantArrived(t, d, topic, 100)
	for kind, want := range map[string]string{
		"over the topic":    "failed, too_large, too_large, 1 attempt: topic \"" + topic + "\": ",
		"over the producer": "failed, too_large, too_large, 0 attempt: ",
		"header":            `failed, rejected, invalid, 0 attempt: header "tenant" is no string`,
	} {
		var got string
		d.read(t, `SELECT concat_ws(', ', state, reason, error_class, attempts || ' attempt: ' || last_error) FROM outbox WHERE type = '`+kind+`'`, &got)
		if !strings.HasPrefix(got, want) || strings.Contains(got, "xxx") {
			t.Errorf("%s: %s\nwant %s", kind, got, want)
		}

	}
}
