package integration

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// spine is a database and a topic, and relays between them that send everything from the one to the other.
type spine struct {
	*database
	topic string
	lease time.Duration
}

func newSpine(t *testing.T, e engine, lease time.Duration) *spine {
	t.Helper()
	return &spine{database: e.database(t), topic: newTopic(t, 3), lease: e.leaseOf(lease)}
}

// at says where a relay finds its database and its broker: straight, or at a proxy.
type at struct{ url, broker string }

// straight is the way without proxies.
func (s *spine) straight(t *testing.T) at {
	t.Helper()
	return at{url: s.url, broker: brokers(t)[0]}
}

// relay starts a relay of that name. Further lines belong to its configuration.
func (s *spine) relay(t *testing.T, name string, way at, lines ...string) *process {
	t.Helper()
	config := fmt.Sprintf(`
relay: {name: %s, lease: %s}
http: {listen: "off"}
destinations:
  broker: {kafka: {brokers: [%q], topic: %q, compression: none}}
routes:
  - {match: "*", to: broker}
`, name, s.lease, way.broker, s.topic)
	for _, line := range lines {
		config += line + "\n"
	}
	return startRelay(t, config, []string{"OUTBOXD_DATABASE_URL=" + way.url})
}

// watcher starts a relay that takes no message of the tests, but takes back what others leave.
func (s *spine) watcher(t *testing.T) {
	t.Helper()
	startRelay(t, fmt.Sprintf(`
relay: {name: watcher, lease: %s}
http: {listen: "off"}
destinations:
  out: {stdout: {}}
routes:
  - {match: nothing, to: out}
`, s.lease), s.env())
	s.waitAlive(t, "watcher")
}

// waitAlive waits until a relay has told the others that it is there.
func (s *spine) waitAlive(t *testing.T, name string) {
	t.Helper()
	s.waitCount(t, patience, 1, "SELECT count(*) FROM outbox_relay WHERE name = '"+name+"'")
}

// waitDone waits until n messages are done and nothing else is there.
func (s *spine) waitDone(t *testing.T, n int) {
	t.Helper()
	eventually(t, 5*patience, func() error {
		var done, open int
		s.read(t, "SELECT count(CASE WHEN state = 'done' THEN 1 END), count(CASE WHEN state <> 'done' THEN 1 END) FROM outbox", &done, &open)
		if done != n || open != 0 {
			return fmt.Errorf("%d messages done and %d not, want %d and 0", done, open, n)
		}
		return nil
	})
}

// waitRecords waits until the topic holds at least so many records.
func (s *spine) waitRecords(t *testing.T, n int) {
	t.Helper()
	eventually(t, patience, func() error {
		if got := len(readTopic(t, s.topic)); got < n {
			return fmt.Errorf("%d records in the topic, want %d", got, n)
		}
		return nil
	})
}

// all are the messages and the recorded attempts, each row as one text, to be compared with what they become.
func (s *spine) all(t *testing.T) []string {
	t.Helper()
	var texts []string
	for _, query := range []string{"SELECT * FROM outbox ORDER BY seq", "SELECT * FROM outbox_attempt ORDER BY attempt_id"} {
		for _, row := range s.rows(t, query) {
			texts = append(texts, strings.Join(row, "|"))
		}
	}
	return texts
}

// sent is what the topic holds of one message.
type sent struct {
	text   string          // as its receiver sees it
	places map[string]bool // of its records
}

// inTopic reads the topic. Records of one message that are not alike are a failure.
func (s *spine) inTopic(t *testing.T) map[string]*sent {
	t.Helper()
	all := map[string]*sent{}
	for _, r := range readTopic(t, s.topic) {
		id, once := header(r, "id")
		if !once {
			t.Fatalf("record %s has no id, or more than one", place(r))
		}
		text := onWire(r)
		if all[id] == nil {
			all[id] = &sent{text: text, places: map[string]bool{}}
		}
		if first := all[id].text; first != text {
			t.Errorf("message %s was sent as\n%s\nand as\n%s", id, first, text)
		}
		all[id].places[place(r)] = true
	}
	return all
}

// delivered holds the topic against the table, and tells how many records each message has: every record is of a message
// that exists and carries its key and its bytes, and repeats are alike; the result of every done message names a record
// of its own.
func (s *spine) delivered(t *testing.T) map[string]int {
	t.Helper()
	topic := s.inTopic(t)
	times := map[string]int{}
	for _, row := range s.rows(t, "SELECT id, state, coalesce(aggregateid, ''), coalesce(result, ''), {payload} FROM outbox") {
		id, state, key, result, payload := row[0], row[1], row[2], strings.TrimRight(row[3], " "), row[4]
		out, there := topic[id]
		if state == "done" && (!there || !out.places[result]) {
			t.Errorf("message %s is done with the result %q, and the topic has it as %+v", id, result, out)
		}
		if !there {
			continue
		}
		if !strings.HasPrefix(out.text, key+"\n"+payload+"\n") {
			t.Errorf("message %s has the key %q and %q, and was sent as %q", id, key, payload, out.text)
		}
		times[id] = len(out.places)
		delete(topic, id)
	}
	if len(topic) > 0 {
		t.Errorf("%d messages are in the topic and not in the table: %v", len(topic), slices.Collect(maps.Keys(topic)))
	}
	return times
}

// onWire is all of a record that its receiver sees, but its place and time.
func onWire(r *kgo.Record) string {
	text := string(r.Key) + "\n" + string(r.Value)
	for _, h := range r.Headers {
		text += "\n" + h.Key + "=" + string(h.Value)
	}
	return text
}

// expectTimes checks that each of n messages is in the topic, from least to most times.
func expectTimes(t *testing.T, delivered map[string]int, n, least, most int) {
	t.Helper()
	if len(delivered) != n {
		t.Errorf("%d messages are in the topic, want %d", len(delivered), n)
	}
	wrong := 0
	for id, times := range delivered {
		if least <= times && times <= most {
			continue
		}
		if wrong++; wrong <= 5 {
			t.Errorf("message %s is in the topic %d times, want %d to %d", id, times, least, most)
		}
	}
	if wrong > 5 {
		t.Errorf("and %d more are not", wrong-5)
	}
}

// bounds tells whether times may be asserted: OUTBOXD_TEST_SLOW=1, on a machine that does nothing else.
func bounds() bool { return os.Getenv("OUTBOXD_TEST_SLOW") == "1" }
