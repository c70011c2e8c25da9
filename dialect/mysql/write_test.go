package mysql

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/outbox"
	"github.com/outboxd/outboxd/relay"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		d := s.newDatabase(t)
		db := d.connect(t, dialect.Options{})
		payload := []byte("\x00\xff'\\\n{}é")
		ids, err := db.Write(t.Context(),
			outbox.Message{ID: "Mine_1", AggregateType: "Größe", AggregateID: "7", Type: "paid", Payload: payload, Headers: map[string]string{"a": "é'\\"}, Delay: time.Hour, ExpiresIn: 2 * time.Hour},
			outbox.Message{Type: "paid"})
		if err != nil || len(ids) != 2 || ids[0] != "Mine_1" {
			t.Fatalf("%q, %v", ids, err)
		}
		m, _, err := db.Get(t.Context(), ids[0])
		if err != nil || m.RoutingKey != "Größe" || *m.AggregateID != "7" || m.Headers != `{"a":"é'\\"}` || m.ExpiresAt.Sub(m.DueAt.Time) != time.Hour || m.DueAt.Sub(m.CreatedAt.Time) < time.Hour {
			t.Errorf("%+v, %v", m, err)
		}
		if got, err := db.Payload(t.Context(), ids[0]); err != nil || string(got) != string(payload) {
			t.Errorf("payload %q, %v", got, err)
		}
		if got, err := db.Payload(t.Context(), ids[1]); err != nil || got != nil {
			t.Errorf("no payload is %q, %v", got, err)
		}
		if _, err := db.Write(t.Context(), outbox.Message{Type: "other"}, outbox.Message{ID: "Mine_1", Type: "paid"}); dialect.ClassOf(err) != dialect.Duplicate {
			t.Errorf("a second one of an id: %v", err)
		}
		if page, err := db.List(t.Context(), relay.Filter{Type: "other"}, 10, ""); err != nil || len(page.Messages) != 0 {
			t.Errorf("of a transaction that failed there are %d messages, %v", len(page.Messages), err)
		}
		var invalid *outbox.InvalidError
		if _, err := db.Write(t.Context(), outbox.Message{Type: " paid"}); !errors.As(err, &invalid) {
			t.Errorf("an invalid message: %v", err)
		}
	})
}

// A payload of some megabytes goes in one piece.
func TestWriteLarge(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s testServer) {
		db := s.newDatabase(t).connect(t, dialect.Options{Lease: 30 * time.Second})
		payload := []byte(strings.Repeat("\x00'é\\", 1<<20))
		ids, err := db.Write(t.Context(), outbox.Message{Type: "large", Payload: payload})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := db.Payload(t.Context(), ids[0]); err != nil || string(got) != string(payload) {
			t.Errorf("%d bytes, %v, want %d", len(got), err, len(payload))
		}
	})
}
