package dialecttest

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

// TestInspector holds an engine to what people see: lists, messages, payloads and the status. open makes an outbox with
// all tables.
func TestInspector(t *testing.T, open func(t *testing.T) Backend) {
	t.Run("known state", func(t *testing.T) {
		t.Parallel()
		b := open(t)
		Fill(t, b)
		db := b.Open()
		for name, run := range map[string]func(t *testing.T, b Backend, db DB){
			"list": testList, "list of odd ids": testListOfOddIDs, "list refuses": testListRefuses,
			"get": testGet, "get of nothing": testGetNothing, "lease": testLease, "corrected": testCorrected, "JSON": testJSON, "status": testStatus, "errors": testErrors, "errors of a filter": testErrorsOfFilter, "flow": testFlow,
			"kinds": testKinds, "outcomes": testOutcomes,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t, b, db)
			})
		}
	})
	for name, run := range map[string]func(t *testing.T, b Backend){
		"list is bounded": testListIsBounded, "status of nothing": testStatusOfNothing, "errors are grouped": testErrorsAreGrouped, "errors are bounded": testErrorsAreBounded, "status is bounded": testStatusIsBounded,
		"unresolved behind resolved": testUnresolvedBehindResolved,
		"kinds are bounded":          testKindsAreBounded,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, open(t))
		})
	}
}

func testGet(t *testing.T, _ Backend, db DB) {
	m, attempts, err := db.Get(t.Context(), ID("4"))
	if err != nil {
		t.Fatal(err)
	}
	if m.ID != ID("4") || m.State != "pending" || *m.ErrorClass != "http_5xx" || m.Relay != nil || m.DueAt == nil || m.DoneAt != nil ||
		m.FailedAt != nil || m.UnknownSince != nil || m.ResolvedAt != nil || m.Result != nil {
		t.Errorf("message: %+v", m)
	}
	if age := time.Since(m.CreatedAt.Time); age < 0 || age > time.Hour || m.CreatedAt.Location() != time.UTC {
		t.Errorf("created_at is %v", m.CreatedAt)
	}
	if len(attempts) != 2 || attempts[0].Outcome != "retry" || attempts[0].Duration != dialect.Age(1500*time.Millisecond) ||
		attempts[0].Status == nil || *attempts[0].Status != 503 || attempts[1].Status != nil || attempts[1].Life != 1 || attempts[1].Error != nil {
		t.Errorf("attempts: %+v", attempts)
	}
	if m, attempts, err = db.Get(t.Context(), ID("6")); err != nil || m.Relay == nil || *m.Relay != "r1" || m.DueAt != nil || len(attempts) != 0 {
		t.Errorf("in flight: %+v, %v, %v", m, attempts, err)
	}
	if m, _, err = db.Get(t.Context(), ID("a")); err != nil || m.Result == nil || *m.Result != "3@17" || m.DoneAt == nil {
		t.Errorf("done: %+v, %v", m, err)
	}
	for last, want := range map[string]string{"4": "secret", "a": "\x00\xff"} {
		if payload, err := db.Payload(t.Context(), ID(last)); err != nil || string(payload) != want {
			t.Errorf("payload of %s: %q, %v, want %q", last, payload, err, want)
		}
	}
}

func testCorrected(t *testing.T, b Backend, db DB) {
	execute(t, b, b.Forms().put(t, `INSERT INTO outbox_correction (operation_id, id) VALUES
		('{{id "1"}}', '{{id "4"}}'), ('{{id "1"}}', '{{id "5"}}'), ('{{id "2"}}', '{{id "5"}}'), ('{{id "3"}}', '{{id "4"}}')`))
	for message, c := range map[string]struct{ asked, want []string }{
		"4": {[]string{ID("1"), ID("2"), ID("f")}, []string{ID("1")}},
		"5": {[]string{ID("1"), ID("2"), ID("3")}, []string{ID("1"), ID("2")}},
		"6": {[]string{ID("1")}, nil},
		"7": {nil, nil},
	} {
		got, err := db.Corrected(t.Context(), ID(message), c.asked)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("corrections of %s: %v, %v, want %v", message, got, err, c.want)
		}
	}
}

func testGetNothing(t *testing.T, _ Backend, db DB) {
	for _, unknown := range []string{ID("f"), "x", "", "é", "1; DROP TABLE outbox", strings.Repeat("x", 100)} {
		if _, _, err := db.Get(t.Context(), unknown); !errors.Is(err, dialect.ErrNotFound) {
			t.Errorf("Get(%q): %v, want ErrNotFound", unknown, err)
		}
		if _, err := db.Payload(t.Context(), unknown); !errors.Is(err, dialect.ErrNotFound) {
			t.Errorf("Payload(%q): %v, want ErrNotFound", unknown, err)
		}
	}
}

// A lease is told by the database's clock, and so is that there is none.
func testLease(t *testing.T, _ Backend, db DB) {
	m, _, err := db.Get(t.Context(), ID("6"))
	if err != nil {
		t.Fatal(err)
	}
	now, lease, err := db.Lease(t.Context(), m.LeaseID)
	if err != nil || lease == nil {
		t.Fatalf("the lease of a message in flight: %+v, %v", lease, err)
	}
	if lease.Relay != "r1" || lease.Length != dialect.Age(30*time.Second) || lease.RenewedAt.Sub(lease.ClaimedAt.Time) < 59*time.Second {
		t.Errorf("lease: %+v", lease)
	}
	if age := now.Sub(lease.RenewedAt.Time); age < 4*time.Minute || age > time.Hour {
		t.Errorf("renewed at %s, and now is %s", lease.RenewedAt, now)
	}
	if now, lease, err := db.Lease(t.Context(), 77); err != nil || lease != nil || now.Sub(m.CreatedAt.Time) < 0 {
		t.Errorf("a lease that does not exist, at %s: %+v, %v", now, lease, err)
	}
}

// Names in JSON are the columns' names, and times are UTC.
func testJSON(t *testing.T, b Backend, db DB) {
	m, _, err := db.Get(t.Context(), ID("4"))
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
	table, err := dialect.Ask(t.Context(), b.SQL(), "SELECT * FROM outbox WHERE 1 = 0")
	if err != nil || len(table.Columns) < 20 {
		t.Fatalf("outbox has the columns %q, %v", table.Columns, err)
	}
	for _, name := range table.Columns {
		if _, ok := fields[name]; ok == (name == "payload" || name == "payload_bytes") {
			t.Errorf("column %s is in the JSON: %v", name, ok)
		}
	}
	if at := fmt.Sprint(fields["created_at"]); !strings.HasSuffix(at, "Z") {
		t.Errorf("created_at is %s, want UTC", at)
	}
}

func testStatus(t *testing.T, _ Backend, db DB) {
	s, err := db.Status(t.Context())
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	waits := map[string]int{}
	for _, w := range s.Waiting {
		waits[w.RoutingKey+" "+string(w.Why)] = w.Messages
		if w.More {
			t.Errorf("%+v: more than were counted", w)
		}
		if oldest := time.Duration(w.Oldest); w.Why == dialect.Due && (oldest < 10*time.Minute || oldest > time.Hour) {
			t.Errorf("the oldest due is %v old, want 10 minutes, or what a busy machine makes of them", oldest)
		}
	}
	if want := fmt.Sprint(map[string]int{"orders due": 2, "orders delayed": 1, "orders retrying": 1, "orders no_policy": 1, "orders in_flight": 1}); fmt.Sprint(waits) != want {
		t.Errorf("waiting: %v, want %s", waits, want)
	}
	if len(s.Failed) != 1 || s.Failed[0].Messages != 1 || s.Failed[0].Reason != "rejected" || *s.Failed[0].ErrorClass != "http_4xx" {
		t.Errorf("failed: %+v", s.Failed)
	}
	if r := s.Relays; len(r) != 2 || r[0].Name != "r1" || !slices.Equal(r[0].Destinations, []string{"kafka", "audit"}) || time.Duration(r[0].SeenFor) < 3*time.Second {
		t.Errorf("relays: %+v", r)
	}
	if b := s.Breakers; len(b) != 3 || b[2].Name != "kafka/orders" || b[2].State != "open" || b[2].Failures != 5 || b[2].Relay != "r1" {
		t.Errorf("breakers: %+v", b)
	}
}

// An empty outbox is a status, too, and its JSON has lists where others have some.
func testStatusOfNothing(t *testing.T, b Backend) {
	s, err := b.Open().Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(s); err != nil || string(text) != `{"relays":[],"waiting":[],"failed":[],"breakers":[],"pauses":[],"instance":""}` {
		t.Errorf("the status of an empty outbox is %s, %v", text, err)
	}
}

// What is counted is bounded, and the answer says that there are more.
func testStatusIsBounded(t *testing.T, b Backend) {
	many(t, b, dialect.CountBound+1, "type", "'a'")
	many(t, b, dialect.CountBound, "type", "'b'")
	many(t, b, 1, "type", "'c'")
	many(t, b, 1, "type, lapses", "'c', 2")
	db := b.Open()
	waits, err := db.Waiting(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range waits {
		got = append(got, fmt.Sprint(w.RoutingKey, " ", w.Messages, " ", w.More))
	}
	if want := []string{"a 10000 true", "b 10000 false", "c 2 false"}; !slices.Equal(got, want) {
		t.Errorf("waiting: %q, want %q", got, want)
	}
	execute(t, b, "UPDATE outbox SET state = 'failed', failed_at = due_at, due_at = "+b.Forms().Never+", reason = 'rejected' WHERE routing_key = 'a'")
	s, err := db.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Failed) != 1 || s.Failed[0].Messages != dialect.CountBound || !s.Failed[0].More {
		t.Errorf("failed: %+v", s.Failed)
	}
}

// What a person has to do is found behind any number of messages that failed later and are resolved.
func testUnresolvedBehindResolved(t *testing.T, b Backend) {
	f := b.Forms()
	const columns = "type, state, due_at, failed_at, reason, error_class"
	many(t, b, 3, columns, "'a', 'failed', "+f.Never+", "+f.Plus(f.Now, -time.Hour)+", 'rejected', 'http_4xx'")
	many(t, b, 2*dialect.CountBound+1, columns+", resolved_at", "'b', 'failed', "+f.Never+", "+f.Now+", 'cancelled', 'http_4xx', "+f.Now)
	db := b.Open()
	s, err := db.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Failed) != 1 || s.Failed[0].Messages != 3 || s.Failed[0].More {
		t.Errorf("status tells %+v", s.Failed)
	}
	groups, err := db.Errors(t.Context(), relay.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(groups.Groups) != 1 || groups.Groups[0].Messages != 3 || groups.FailedMore {
		t.Errorf("errors tells %+v", groups)
	}
}
