package mysql

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
INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) SELECT CONCAT('00000000-0000-7000-8000-00000000000', n), 'orders', n, 'paid', 'secret'
  FROM JSON_TABLE('[1,2,3,4,5,6,7,8,9]', '$[*]' COLUMNS (n int PATH '$')) j;
INSERT INTO outbox (id, type, payload, headers) VALUES ('00000000-0000-7000-8000-00000000000a', 'mail', x'00ff', '{"a":"b"}');
-- 1, 2: due for 10 and 5 minutes; 3: delayed by the application; 4: retrying; 5: no policy
UPDATE outbox SET due_at = UTC_TIMESTAMP(6) - INTERVAL 10 MINUTE WHERE id LIKE '%1';
UPDATE outbox SET due_at = UTC_TIMESTAMP(6) - INTERVAL 5 MINUTE, lapses = 1, lease_id = -1 WHERE id LIKE '%2';
UPDATE outbox SET due_at = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR WHERE id LIKE '%3';
UPDATE outbox SET due_at = UTC_TIMESTAMP(6) + INTERVAL 61 MINUTE, attempts = 1, lease_id = 7, error_class = 'http_5xx', last_error = '503' WHERE id LIKE '%4';
UPDATE outbox SET due_at = UTC_TIMESTAMP(6) + INTERVAL 62 MINUTE, lease_id = 7, error_class = 'no_policy' WHERE id LIKE '%5';
-- 6: in flight under a lease; 7: in flight without one; 8: failed; 9: failed and resolved; a: done
UPDATE outbox SET state = 'in_flight', due_at = '9999-12-31', lease_id = 6 WHERE id LIKE '%6';
UPDATE outbox SET state = 'in_flight', due_at = '9999-12-31', lease_id = 77 WHERE id LIKE '%7';
UPDATE outbox SET state = 'failed', due_at = '9999-12-31', failed_at = UTC_TIMESTAMP(6), reason = 'rejected', error_class = 'http_4xx', last_error = '422', attempts = 1 WHERE id LIKE '%8';
UPDATE outbox SET state = 'failed', due_at = '9999-12-31', failed_at = UTC_TIMESTAMP(6) - INTERVAL 1 HOUR, reason = 'cancelled', resolved_at = UTC_TIMESTAMP(6) WHERE id LIKE '%9';
UPDATE outbox SET state = 'done', due_at = '9999-12-31', done_at = UTC_TIMESTAMP(6), result = RPAD('3@17', 64, ' '), attempts = 1 WHERE id LIKE '%a';
INSERT INTO outbox_lease VALUES (6, 'r1', UTC_TIMESTAMP(6) - INTERVAL 5 MINUTE, UTC_TIMESTAMP(6) - INTERVAL 4 MINUTE, 30000000,
  (SELECT CONCAT('[', MIN(seq), ',', MAX(seq), ']') FROM outbox WHERE id LIKE '%6' OR id LIKE '%a'));
INSERT INTO outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome, error_class, error) VALUES
  ('00000000-0000-7000-8000-000000000004', 0, 1, 'r1', UTC_TIMESTAMP(6), 1500000, 'retry', 'http_5xx', '503'),
  ('00000000-0000-7000-8000-000000000008', 0, 1, 'r1', UTC_TIMESTAMP(6), 1000000, 'fail', 'http_4xx', '422'),
  ('00000000-0000-7000-8000-000000000004', 1, 1, 'r2', UTC_TIMESTAMP(6), 2000000, 'lapse', NULL, NULL);
INSERT INTO outbox_relay VALUES ('r1', 'h1', '0.1.0', 'abc', '["kafka","audit"]', UTC_TIMESTAMP(6) - INTERVAL 1 HOUR, UTC_TIMESTAMP(6) - INTERVAL 3 SECOND),
  ('r2', 'h2', '0.1.0', 'abd', '[]', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6));
INSERT INTO outbox_control (kind, name, owner, value) VALUES ('breaker', 'kafka', 'r1', '{"state":"ok","width":0,"failures":0,"last_error":""}'),
  ('breaker', 'kafka/orders', 'r1', '{"state":"open","width":0,"failures":5,"last_error":"broker: refused"}'), ('breaker', 'hand', 'r2', '{}');
`

func (s testServer) known(t *testing.T) *DB {
	t.Helper()
	d := s.newDatabase(t)
	d.exec(t, knownState)
	return d.connect(t, dialect.Options{})
}

// many inserts so many messages of a type.
func (d testDatabase) many(t *testing.T, n int, columns, values string) {
	t.Helper()
	numbers := make([]string, 1000)
	for i := range numbers {
		numbers[i] = fmt.Sprint(i)
	}
	array := "'[" + strings.Join(numbers, ",") + "]'"
	d.exec(t, fmt.Sprintf(`INSERT INTO outbox (%s) SELECT %s FROM JSON_TABLE(%s, '$[*]' COLUMNS (n int PATH '$')) a
		JOIN JSON_TABLE(%s, '$[*]' COLUMNS (n int PATH '$')) b ON a.n * 1000 + b.n < ?`, columns, values, array, array), n)
}

func TestList(t *testing.T) {
	t.Parallel()
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
		{relay.Filter{State: "pending", RoutingKey: "ORDERS"}, ""},
		{relay.Filter{State: "pending", RoutingKey: "mail"}, ""},
		{relay.Filter{State: "failed", Type: "other"}, ""},
		{relay.Filter{IDs: []string{known4, known8, known1, "none", "né"}}, "148"},
		{relay.Filter{IDs: []string{known4, known8}, State: "failed"}, "8"},
		{relay.Filter{Key: "3"}, "3"},
		{relay.Filter{Reason: "cancelled"}, "9"},
		{relay.Filter{ErrorClass: "http_5xx"}, "4"},
		{relay.Filter{SchemaVersion: 2}, ""},
		{relay.Filter{State: "failed", Until: &halfAnHourAgo}, "9"},
		{relay.Filter{State: "failed", Since: &halfAnHourAgo}, "8"},
	}
	onBoth(t, func(t *testing.T, s testServer) {
		db := s.known(t)
		for _, c := range cases {
			for _, limit := range []int{1, 2, 3, 10} {
				got, cursor := "", ""
				for pages := 0; pages == 0 || cursor != ""; pages++ {
					page, err := db.List(t.Context(), c.filter, limit, cursor)
					if err != nil {
						t.Fatalf("%+v: %v", c.filter, errors.Unwrap(err))
					}
					if len(page.Messages) > limit || pages > 10 {
						t.Fatalf("%+v: a page of %d, the %d. page", c.filter, len(page.Messages), pages)
					}
					for _, m := range page.Messages {
						got += m.ID[35:]
					}
					cursor = page.Next
				}
				if got != c.want {
					t.Errorf("%+v: %s, want %s", c.filter, got, c.want)
				}
			}
		}
	})
}

// A filter that no index serves reads a bounded number of rows, says where it stopped, and goes on from there.
func TestListIsBounded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newDatabase(t)
		d.exec(t, "INSERT INTO outbox (type) VALUES ('rare')")
		d.many(t, dialect.CountBound+5, "type", "'common'")
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
	})
}

// What is done stands in the claim's index, too: a list of pending ones walks over a bounded part of it, and passes over
// the rest of a group at once.
func TestListPendingBehindDone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newDatabase(t)
		d.many(t, 3*dialect.CountBound, "type, state, due_at, done_at", "'a', 'done', '9999-12-31', UTC_TIMESTAMP(6)")
		d.exec(t, "INSERT INTO outbox (type) VALUES ('a'), ('b')")
		d.exec(t, "UPDATE outbox SET lapses = 1, lease_id = -1 WHERE type = 'a' AND state = 'pending'")
		db := d.connect(t, dialect.Options{})
		var types []string
		pages, cursor := 0, ""
		for pages = 0; pages == 0 || cursor != ""; pages++ {
			page, err := db.List(t.Context(), relay.Filter{State: "pending"}, 100, cursor)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page.Messages {
				types = append(types, m.Type)
			}
			cursor = page.Next
		}
		if !slices.Equal(types, []string{"a", "b"}) || pages != 2 {
			t.Errorf("%d pages have messages of the types %q, want 2 pages with a and b", pages, types)
		}
		page, err := db.List(t.Context(), relay.Filter{State: "pending", RoutingKey: "b"}, 100, "")
		if err != nil || len(page.Messages) != 1 || page.Next != "" {
			t.Errorf("of b %d messages and the cursor %q, %v", len(page.Messages), page.Next, err)
		}
	})
}

func TestListRefuses(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		db := s.known(t)
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
		}
		for _, c := range cases {
			if _, err := db.List(t.Context(), c.filter, c.limit, c.cursor); !errors.Is(err, dialect.ErrFilter) {
				t.Errorf("%+v: %v, want ErrFilter", c, err)
			}
		}
	})
}

// Each walk reads a range of its index from a place on, and no more.
func TestWalksReadTheirIndex(t *testing.T) {
	t.Parallel()
	cases := []struct {
		filter relay.Filter
		oldest bool
		index  string
	}{
		{relay.Filter{}, false, "PRIMARY"},
		{relay.Filter{}, true, "PRIMARY"},
		{relay.Filter{State: relay.Pending}, false, "outbox_due"},
		{relay.Filter{State: relay.Pending, RoutingKey: "b"}, true, "outbox_due"},
		{relay.Filter{State: relay.Failed}, false, "outbox_failed"},
		{relay.Filter{State: relay.Failed}, true, "outbox_failed"},
		{relay.Filter{State: relay.InFlight}, false, "PRIMARY"},
		{relay.Filter{IDs: []string{"a"}}, false, "outbox_id_key"},
	}
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newDatabase(t)
		d.many(t, 2000, "type, state, due_at, done_at", "'a', 'done', '9999-12-31', UTC_TIMESTAMP(6)")
		d.many(t, 1000, "type", "'b'")
		d.exec(t, "ANALYZE TABLE outbox")
		db := d.connect(t, dialect.Options{})
		for _, c := range cases {
			w := walk(c.filter, c.oldest)
			args := w.Args
			for i, p := range w.Start {
				if c.filter.State == relay.Pending && i == 0 {
					p = "b" // in the middle
				}
				args = append(args, p)
			}
			text, err := render("EXPLAIN FORMAT = TRADITIONAL "+w.Query, d.schema)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := explain(t.Context(), db.keep, text, append(args, 10)...)
			if err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(plan, func(p planStep) bool { return p.index == c.index })
			whole := slices.ContainsFunc(plan, func(p planStep) bool {
				return p.access == "ALL" && (p.table == "o" || p.table == "i") || p.access == "index"
			})
			if !found || whole {
				t.Errorf("%+v: the plan is %+v, want %s", c.filter, plan, c.index)
			}
		}
	})
}

func TestGet(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		db := s.known(t)
		const id = "00000000-0000-7000-8000-00000000000"
		m, attempts, err := db.Get(t.Context(), id+"4")
		if err != nil {
			t.Fatal(err)
		}
		if m.ID != id+"4" || m.State != "pending" || *m.ErrorClass != "http_5xx" || m.Relay != nil || m.DueAt == nil || m.DoneAt != nil || m.FailedAt != nil || m.UnknownSince != nil || m.ResolvedAt != nil || m.Result != nil {
			t.Errorf("message: %+v", m)
		}
		if len(attempts) != 2 || attempts[0].Outcome != "retry" || attempts[0].Duration != dialect.Age(1500*time.Millisecond) || attempts[1].Life != 1 || attempts[1].Error != nil {
			t.Errorf("attempts: %+v", attempts)
		}
		if m, attempts, err = db.Get(t.Context(), id+"6"); err != nil || m.Relay == nil || *m.Relay != "r1" || m.DueAt != nil || len(attempts) != 0 {
			t.Errorf("in flight: %+v, %v, %v", m, attempts, err)
		}
		if m, _, err = db.Get(t.Context(), id+"a"); err != nil || m.Result == nil || *m.Result != "3@17" || m.DoneAt == nil {
			t.Errorf("done: %+v, %v", m, err)
		}
		for _, unknown := range []string{id + "f", "x", "", "é", "1; DROP TABLE outbox", strings.Repeat("x", 100)} {
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
	})
}

// Names in JSON are the columns' names, and times are UTC.
func TestJSON(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		m, _, err := s.known(t).Get(t.Context(), "00000000-0000-7000-8000-000000000004")
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
			if _, ok := fields[name]; ok == (name == "payload") {
				t.Errorf("column %s is in the JSON: %v", name, ok)
			}
		}
		if at := fmt.Sprint(fields["created_at"]); !strings.HasSuffix(at, "Z") {
			t.Errorf("created_at is %s, want UTC", at)
		}
	})
}

func TestStatus(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		status, err := s.known(t).Status(t.Context())
		if err != nil {
			t.Fatal(errors.Unwrap(err))
		}
		waits := map[string]int{}
		for _, w := range status.Waiting {
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
		if len(status.Failed) != 1 || status.Failed[0].Messages != 1 || status.Failed[0].Reason != "rejected" || *status.Failed[0].ErrorClass != "http_4xx" {
			t.Errorf("failed: %+v", status.Failed)
		}
		if r := status.Relays; len(r) != 2 || r[0].Name != "r1" || !slices.Equal(r[0].Destinations, []string{"kafka", "audit"}) || time.Duration(r[0].SeenFor) < 3*time.Second {
			t.Errorf("relays: %+v", r)
		}
		if b := status.Breakers; len(b) != 3 || b[2].Name != "kafka/orders" || b[2].State != "open" || b[2].Failures != 5 || b[2].Relay != "r1" {
			t.Errorf("breakers: %+v", b)
		}
	})
}

// An empty outbox is a status, too, and its JSON has lists where others have some.
func TestStatusEmpty(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		status, err := s.newDatabase(t).connect(t, dialect.Options{}).Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if text, err := json.Marshal(status); err != nil || string(text) != `{"relays":[],"waiting":[],"failed":[],"breakers":[],"pauses":[]}` {
			t.Errorf("the status of an empty outbox is %s, %v", text, err)
		}
	})
}

// What is counted is bounded, and the answer says that there are more.
func TestStatusIsBounded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newDatabase(t)
		d.many(t, dialect.CountBound+1, "type", "'a'")
		d.many(t, dialect.CountBound, "type", "'b'")
		waits, err := d.connect(t, dialect.Options{}).Waiting(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(waits) != 2 || waits[0].Messages != dialect.CountBound || !waits[0].More || waits[1].Messages != dialect.CountBound || waits[1].More {
			t.Errorf("waiting: %+v", waits)
		}
	})
}
