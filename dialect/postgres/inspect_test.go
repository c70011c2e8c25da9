package postgres

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// knownState fills a table with messages whose last digit tells what they are.
const knownState = `
INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) SELECT ('00000000-0000-7000-8000-00000000000' || n)::uuid, 'orders', n::text, 'paid', 'secret' FROM generate_series(1, 9) n;
INSERT INTO outbox (id, type, payload_bytes, headers) VALUES ('00000000-0000-7000-8000-00000000000a', 'mail', '\x00ff', '{"a":"b"}');
-- 1, 2: due for 10 and 5 minutes; 3: delayed by the application; 4: retrying; 5: no policy
UPDATE outbox SET due_at = clock_timestamp() - interval '10 minutes' WHERE id::text LIKE '%1';
UPDATE outbox SET due_at = clock_timestamp() - interval '5 minutes', lapses = 1, lease_id = -1 WHERE id::text LIKE '%2';
UPDATE outbox SET due_at = clock_timestamp() + interval '1 hour' WHERE id::text LIKE '%3';
UPDATE outbox SET due_at = clock_timestamp() + interval '1 hour', attempts = 1, lease_id = 7, error_class = 'http_5xx', last_error = '503' WHERE id::text LIKE '%4';
UPDATE outbox SET due_at = clock_timestamp() + interval '1 hour', lease_id = 7, error_class = 'no_policy' WHERE id::text LIKE '%5';
-- 6: in flight under a lease; 7: in flight without one; 8: failed; 9: failed and resolved; a: done
UPDATE outbox SET state = 'in_flight', due_at = NULL, lease_id = 6 WHERE id::text LIKE '%6';
UPDATE outbox SET state = 'in_flight', due_at = NULL, lease_id = 77 WHERE id::text LIKE '%7';
UPDATE outbox SET state = 'failed', due_at = NULL, failed_at = now(), reason = 'rejected', error_class = 'http_4xx', last_error = '422', attempts = 1 WHERE id::text LIKE '%8';
UPDATE outbox SET state = 'failed', due_at = NULL, failed_at = now() - interval '1 hour', reason = 'cancelled', resolved_at = now() WHERE id::text LIKE '%9';
UPDATE outbox SET state = 'done', due_at = NULL, done_at = now(), result = '3@17', attempts = 1 WHERE id::text LIKE '%a';
INSERT INTO outbox_lease VALUES (6, 'r1', now() - interval '5 minutes', now() - interval '4 minutes', '30 s', ARRAY['00000000-0000-7000-8000-000000000006'::uuid, '00000000-0000-7000-8000-00000000000a']);
INSERT INTO outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome, error_class, error) VALUES
  ('00000000-0000-7000-8000-000000000004', 0, 1, 'r1', now(), '1.5 s', 'retry', 'http_5xx', '503'),
  ('00000000-0000-7000-8000-000000000008', 0, 1, 'r1', now(), '1 s', 'fail', 'http_4xx', '422'),
  ('00000000-0000-7000-8000-000000000004', 1, 1, 'r2', now(), '2 s', 'lapse', NULL, NULL);
INSERT INTO outbox_relay VALUES ('r1', 'h1', '0.1.0', 'abc', '{kafka,audit}', now() - interval '1 hour', now() - interval '3 s'), ('r2', 'h2', '0.1.0', 'abd', '{}', now(), now());
INSERT INTO outbox_control VALUES ('breaker', 'kafka', 'r1', '{"state":"ok","width":0,"failures":0,"last_error":""}'),
  ('breaker', 'kafka/orders', 'r1', '{"state":"open","width":0,"failures":5,"last_error":"broker: refused"}'), ('breaker', 'hand', 'r2', '{}');
`

func known(t *testing.T) (testDatabase, *DB) {
	t.Helper()
	d := newDatabase(t)
	d.exec(t, knownState)
	return d, d.connect(t, dialect.Options{})
}

func TestList(t *testing.T) {
	t.Parallel()
	_, db := known(t)
	const known1, known4, known8 = "00000000-0000-7000-8000-000000000001", "00000000-0000-7000-8000-000000000004", "00000000-0000-7000-8000-000000000008"
	halfAnHourAgo := time.Now().Add(-30 * time.Minute)
	cases := []struct {
		filter relay.Filter
		want   string // last digits of the ids
	}{
		{relay.Filter{}, "a987654321"},
		{relay.Filter{State: "pending"}, "13452"}, // routing key, lapses, due_at
		{relay.Filter{State: "in_flight"}, "6"},
		{relay.Filter{State: "failed"}, "89"},
		{relay.Filter{State: "done"}, "a"},
		{relay.Filter{Type: "mail"}, "a"},
		{relay.Filter{RoutingKey: "orders", Type: "paid"}, "987654321"},
		{relay.Filter{State: "pending", RoutingKey: "orders", Type: "paid"}, "13452"},
		{relay.Filter{State: "pending", RoutingKey: "mail"}, ""},
		{relay.Filter{State: "failed", Type: "other"}, ""},
		{relay.Filter{IDs: []string{known4, known8, known1}}, "148"},
		{relay.Filter{IDs: []string{known4, known8}, State: "failed"}, "8"},
		{relay.Filter{Key: "3"}, "3"},
		{relay.Filter{Reason: "cancelled"}, "9"},
		{relay.Filter{ErrorClass: "http_5xx"}, "4"},
		{relay.Filter{SchemaVersion: 2}, ""},
		{relay.Filter{State: "failed", Until: &halfAnHourAgo}, "9"},
		{relay.Filter{State: "failed", Since: &halfAnHourAgo}, "8"},
	}
	for _, c := range cases {
		for _, limit := range []int{1, 2, 3, 10} {
			got, cursor := "", ""
			for pages := 0; pages == 0 || cursor != ""; pages++ {
				page, err := db.List(t.Context(), c.filter, limit, cursor)
				if err != nil {
					t.Fatal(err)
				}
				if len(page.Messages) > limit || pages > 10 {
					t.Fatalf("%+v: a page of %d, the %d. page", c.filter, len(page.Messages), pages)
				}
				for _, m := range page.Messages {
					got += m.ID[35:]
				}
				cursor = page.Next
			}
			// Times that one UPDATE wrote differ by microseconds, in the order of the statements.
			if got != c.want {
				t.Errorf("%+v: %s, want %s", c.filter, got, c.want)
			}
		}
	}
}

// A filter that no index serves reads a bounded number of rows, says where it stopped, and goes on from there.
func TestListIsBounded(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.exec(t, "INSERT INTO outbox (type) VALUES ('rare')")
	d.exec(t, "INSERT INTO outbox (type) SELECT 'common' FROM generate_series(1, $1)", dialect.CountBound+5)
	db := d.connect(t, dialect.Options{})
	filter := relay.Filter{Type: "rare"}
	page, err := db.List(t.Context(), filter, 100, "")
	if err != nil || len(page.Messages) != 0 || page.Next == "" {
		t.Fatalf("the first page has %d messages and the cursor %q, %v", len(page.Messages), page.Next, err)
	}
	page, err = db.List(t.Context(), filter, 100, page.Next)
	if err != nil || len(page.Messages) != 1 || page.Next != "" {
		t.Fatalf("the second page has %d messages and the cursor %q, %v", len(page.Messages), page.Next, err)
	}
}

func TestListRefuses(t *testing.T) {
	t.Parallel()
	_, db := known(t)
	failed, err := db.List(t.Context(), relay.Filter{State: "failed"}, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		filter relay.Filter
		limit  int
		cursor string
	}{
		{relay.Filter{State: "dead"}, 1, ""},
		{relay.Filter{}, 0, ""},
		{relay.Filter{}, 1001, ""},
		{relay.Filter{}, 1, "x"},
		{relay.Filter{}, 1, "!"},
		{relay.Filter{State: "pending"}, 1, failed.Next},
		{relay.Filter{IDs: []string{"x"}}, 1, ""},
	}
	for _, c := range cases {
		if _, err := db.List(t.Context(), c.filter, c.limit, c.cursor); !errors.Is(err, dialect.ErrFilter) {
			t.Errorf("%+v: %v, want ErrFilter", c, err)
		}
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	_, db := known(t)
	const id = "00000000-0000-7000-8000-00000000000"
	m, attempts, err := db.Get(t.Context(), id+"4")
	if err != nil {
		t.Fatal(err)
	}
	if m.ID != id+"4" || m.State != "pending" || *m.ErrorClass != "http_5xx" || m.Relay != nil || m.DueAt == nil || m.DoneAt != nil {
		t.Errorf("message: %+v", m)
	}
	if len(attempts) != 2 || attempts[0].Outcome != "retry" || attempts[0].Duration != dialect.Age(1500*time.Millisecond) || attempts[1].Life != 1 || attempts[1].Error != nil {
		t.Errorf("attempts: %+v", attempts)
	}
	if m, attempts, err = db.Get(t.Context(), id+"6"); err != nil || m.Relay == nil || *m.Relay != "r1" || len(attempts) != 0 {
		t.Errorf("in flight: %+v, %v, %v", m, attempts, err)
	}
	for _, unknown := range []string{id + "f", "x", "", "1; DROP TABLE outbox"} {
		if _, _, err := db.Get(t.Context(), unknown); !errors.Is(err, dialect.ErrNotFound) {
			t.Errorf("Get(%q): %v, want ErrNotFound", unknown, err)
		}
		if _, err := db.Payload(t.Context(), unknown); !errors.Is(err, dialect.ErrNotFound) {
			t.Errorf("Payload(%q): %v, want ErrNotFound", unknown, err)
		}
	}
	for last, want := range map[string]string{"4": "secret", "a": "\x00\xff"} {
		if payload, err := db.Payload(t.Context(), id+last); err != nil || string(payload) != want {
			t.Errorf("payload of %s: %q, %v, want %q", last, payload, err, want)
		}
	}
}

// Names in JSON are the columns' names, and times are UTC.
func TestJSON(t *testing.T) {
	t.Parallel()
	_, db := known(t)
	m, _, err := db.Get(t.Context(), "00000000-0000-7000-8000-000000000004")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for c := range strings.SplitSeq(columns()["outbox"], ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(c), " ")
		if _, ok := fields[name]; ok == (name == "payload" || name == "payload_bytes") {
			t.Errorf("column %s is in the JSON: %v", name, ok)
		}
	}
	if at := fmt.Sprint(fields["created_at"]); !strings.HasSuffix(at, "Z") {
		t.Errorf("created_at is %s, want UTC", at)
	}
	for age, want := range map[dialect.Age]string{0: "0", dialect.Age(1500 * time.Millisecond): "1.5", dialect.Age(time.Hour): "3600"} {
		if got, err := json.Marshal(age); err != nil || string(got) != want {
			t.Errorf("%s is %s in JSON, want %s", age, got, want)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	_, db := known(t)
	s, err := db.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waits := map[string]int{}
	for _, w := range s.Waiting {
		waits[w.RoutingKey+" "+string(w.Why)] = w.Messages
		if w.More {
			t.Errorf("%+v: more than were counted", w)
		}
		if oldest := time.Duration(w.Oldest); w.Why == dialect.Due && (oldest < 10*time.Minute || oldest > 11*time.Minute) {
			t.Errorf("the oldest due is %v old, want 10 minutes", oldest)
		}
	}
	if want := fmt.Sprint(map[string]int{"orders due": 2, "orders delayed": 1, "orders retrying": 1, "orders no_policy": 1, "orders in_flight": 1}); fmt.Sprint(waits) != want {
		t.Errorf("waiting: %v, want %s", waits, want)
	}
	if len(s.Failed) != 1 || s.Failed[0].Messages != 1 || s.Failed[0].Reason != "rejected" || *s.Failed[0].ErrorClass != "http_4xx" {
		t.Errorf("failed: %+v", s.Failed)
	}
	if len(s.Relays) != 2 || s.Relays[0].Name != "r1" || !slices.Equal(s.Relays[0].Destinations, []string{"kafka", "audit"}) || time.Duration(s.Relays[0].SeenFor) < 3*time.Second {
		t.Errorf("relays: %+v", s.Relays)
	}
	if len(s.Breakers) != 3 || s.Breakers[2].Name != "kafka/orders" || s.Breakers[2].State != "open" || s.Breakers[2].Failures != 5 || s.Breakers[2].Relay != "r1" {
		t.Errorf("breakers: %+v", s.Breakers)
	}
}

// An empty outbox is a status, too, and its JSON has lists where others have some.
func TestStatusEmpty(t *testing.T) {
	t.Parallel()
	s, err := newDatabase(t).connect(t, dialect.Options{}).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(s); err != nil || string(text) != `{"relays":[],"waiting":[],"failed":[],"breakers":[],"pauses":[]}` {
		t.Errorf("the status of an empty outbox is %s, %v", text, err)
	}
}

// What is counted is bounded, and the answer says that there are more.
func TestStatusIsBounded(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.exec(t, "INSERT INTO outbox (type) SELECT 'a' FROM generate_series(1, $1)", dialect.CountBound+1)
	d.exec(t, "INSERT INTO outbox (type) SELECT 'b' FROM generate_series(1, $1)", dialect.CountBound)
	waits, err := d.connect(t, dialect.Options{}).Waiting(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(waits) != 2 || waits[0].Messages != dialect.CountBound || !waits[0].More || waits[1].Messages != dialect.CountBound || waits[1].More {
		t.Errorf("waiting: %+v", waits)
	}
}
