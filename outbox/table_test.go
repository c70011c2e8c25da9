package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/outbox"
)

var table = outbox.Table{Dialect: outbox.Postgres}

const id = "0190163d-8694-739b-aea5-966c26f8ad91"

// What compiles as a transaction.
var (
	_ outbox.Tx = (*sql.Tx)(nil)
	_ outbox.Tx = (*sqlx.Tx)(nil)

	_ outbox.Queryer = (*sql.DB)(nil)
	_ outbox.Queryer = (*sql.Conn)(nil)
	_ outbox.Queryer = (*sql.Tx)(nil)
	_ outbox.Queryer = (*sqlx.DB)(nil)
)

// TestDatabaseIsNoTx asks by reflection what the compiler asks: whether the type has the interface's methods.
func TestDatabaseIsNoTx(t *testing.T) {
	t.Parallel()
	tx := reflect.TypeFor[outbox.Tx]()
	for _, typ := range []reflect.Type{
		reflect.TypeFor[*sql.DB](), reflect.TypeFor[*sql.Conn](), reflect.TypeFor[*sqlx.DB](), reflect.TypeFor[*sqlx.Conn](),
	} {
		if typ.Implements(tx) {
			t.Errorf("%v compiles as a Tx: a message could be written outside of a transaction", typ)
		}
	}
}

func TestCheckNamesMessageAndField(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 256)
	for _, tt := range []struct {
		name string
		m    outbox.Message
		want string
	}{
		{"no type", outbox.Message{}, "type: empty"},
		{"blank before type", outbox.Message{Type: " t"}, "type: blanks around it"},
		{"line feed after type", outbox.Message{Type: "t\n"}, "type: blanks around it"},
		{"control in type", outbox.Message{Type: "a\x01b"}, "type: control character in it"},
		{"type not UTF-8", outbox.Message{Type: "a\xff"}, "type: not valid UTF-8"},
		{"long type", outbox.Message{Type: long}, "type: longer than 255 characters"},
		{"blank after aggregatetype", outbox.Message{Type: "t", AggregateType: "orders "}, "aggregatetype: blanks around it"},
		{"NUL in aggregateid", outbox.Message{Type: "t", AggregateID: "a\x00"}, "aggregateid: NUL in it"},
		{"aggregateid not UTF-8", outbox.Message{Type: "t", AggregateID: "\xc3"}, "aggregateid: not valid UTF-8"},
		{"long aggregateid", outbox.Message{Type: "t", AggregateID: long}, "aggregateid: longer than 255 characters"},
		{"id no UUID", outbox.Message{Type: "t", ID: "42"}, "id: not a UUID in the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"},
		{"id zero", outbox.Message{Type: "t", ID: "00000000-0000-0000-0000-000000000000"}, "id: all zeros: it was never set"},
		{"id twice", outbox.Message{Type: "t", ID: strings.ToUpper(id)}, "id: the same as that of message 0"},
		{"content_type", outbox.Message{Type: "t", ContentType: "a\r\nb"}, "content_type: control character in it"},
		{"traceparent", outbox.Message{Type: "t", Traceparent: "a\x00"}, "traceparent: control character in it"},
		{"schema_version negative", outbox.Message{Type: "t", SchemaVersion: -1}, "schema_version: -1 is not within 1 to 2147483647"},
		{"schema_version too high", outbox.Message{Type: "t", SchemaVersion: 1 << 31}, "schema_version: 2147483648 is not within 1 to 2147483647"},
		{"delay", outbox.Message{Type: "t", Delay: -1}, "delay: negative"},
		{"expires_in negative", outbox.Message{Type: "t", ExpiresIn: -1}, "expires_in: negative"},
		{"expires before due", outbox.Message{Type: "t", Delay: time.Hour, ExpiresIn: time.Hour}, "expires_in: not longer than the delay: it would expire before it is due"},
		{"header without name", outbox.Message{Type: "t", Headers: map[string]string{"": "v"}}, "headers: a name is empty"},
		{"header name", outbox.Message{Type: "t", Headers: map[string]string{"a\nb": "v"}}, `headers: name "a\nb": not valid UTF-8 or a control character in it`},
		{"header value", outbox.Message{Type: "t", Headers: map[string]string{"a": "secret\r\nb"}}, `headers: value of "a": not valid UTF-8 or a control character in it`},
		{"header value not UTF-8", outbox.Message{Type: "t", Headers: map[string]string{"a": "\xff"}}, `headers: value of "a": not valid UTF-8 or a control character in it`},
		{"long headers", outbox.Message{Type: "t", Headers: map[string]string{"a": strings.Repeat("x", 65537)}}, "headers: longer than 65536 bytes"},
		{"payload too large", outbox.Message{Type: "t", Payload: make([]byte, 256<<20+1)}, "payload: 268435457 bytes, more than 268435456: store it elsewhere and send a reference"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var tx recorder
			good := outbox.Message{Type: "good", ID: id}
			ids, err := table.Write(t.Context(), &tx, good, tt.m)
			if want := "outbox: message 1: " + tt.want; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			var invalid *outbox.InvalidError
			if !errors.As(err, &invalid) || invalid.Index != 1 || !strings.HasPrefix(tt.want, invalid.Field+": ") {
				t.Errorf("%v is no InvalidError of message 1 that names its field", err)
			}
			if ids != nil || len(tx.statements) != 0 {
				t.Errorf("ids %v and %d statements, though one message is invalid", ids, len(tx.statements))
			}
		})
	}
}

func TestWriteStopsAtTheFirstError(t *testing.T) {
	t.Parallel()
	tx := recorder{err: errors.New("duplicate key")}
	ids, err := table.Write(t.Context(), &tx, messages(2001, 0)...)
	if ids != nil || !errors.Is(err, tx.err) || len(tx.statements) != 1 {
		t.Errorf("ids %v, error %v, %d statements", ids, err, len(tx.statements))
	}
}

// messages are n messages with payloads of that many bytes.
func messages(n, bytes int) []outbox.Message {
	msgs := make([]outbox.Message, n)
	for i := range msgs {
		msgs[i] = outbox.Message{Type: "t", Payload: make([]byte, bytes)}
	}
	return msgs
}

// recorder is a Tx that keeps its statements and answers with err.
type recorder struct {
	statements []string
	err        error
}

func (r *recorder) ExecContext(_ context.Context, query string, _ ...any) (sql.Result, error) {
	r.statements = append(r.statements, query)
	return nil, r.err
}

func (r *recorder) Commit() error   { return nil }
func (r *recorder) Rollback() error { return nil }
