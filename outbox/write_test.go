package outbox_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/outbox"
)

func TestWriteIsPartOfTheTransaction(t *testing.T) {
	everywhere(t, func(t *testing.T, s server) {
		tx := begin(t, s.app)
		ids, err := s.table.Write(t.Context(), tx, outbox.Message{Type: "t"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.table.Result(t.Context(), s.app, ids[0]); !errors.Is(err, outbox.ErrNotFound) {
			t.Errorf("before the commit: got %v, want ErrNotFound", err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.table.Result(t.Context(), s.app, ids[0]); !errors.Is(err, outbox.ErrNotFound) {
			t.Errorf("after the rollback: got %v, want ErrNotFound", err)
		}
		kept := s.write(t, outbox.Message{Type: "t"})
		if r, err := s.table.Result(t.Context(), s.app, kept[0]); err != nil || r != (outbox.Result{State: outbox.Pending, CreatedAt: r.CreatedAt}) || r.CreatedAt.IsZero() {
			t.Errorf("after the commit: got %+v, %v", r, err)
		}
	})
}

func TestWriteThroughSqlx(t *testing.T) {
	everywhere(t, func(t *testing.T, s server) {
		tx, err := sqlx.NewDb(s.app, s.driver).BeginTxx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		ids, err := s.table.Write(t.Context(), tx, outbox.Message{Type: "t"})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := s.table.Result(t.Context(), tx, ids[0]); err != nil || r.State != outbox.Pending {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}

func TestWriteKeepsOrderAndDefaults(t *testing.T) {
	everywhere(t, func(t *testing.T, s server) {
		msgs := make([]outbox.Message, 20_000)
		for i := range msgs {
			msgs[i] = outbox.Message{Type: "order_paid"}
		}
		ids := s.write(t, msgs...)
		plain := s.texts(t, `SELECT count(*) FROM outbox WHERE content_type = 'application/json' AND schema_version = 1 AND headers = '{}'
			AND routing_key = type AND aggregatetype IS NULL AND aggregateid IS NULL AND traceparent IS NULL AND `+s.bytes+` IS NULL
			AND expires_at IS NULL AND `+s.micro("due_at")+` BETWEEN `+s.micro("created_at")+` - 60000000 AND `+s.micro(s.now))
		if plain[0] != "20000" {
			t.Errorf("%s of 20000 have their defaults", plain[0])
		}
		if !slices.Equal(s.texts(t, "SELECT id FROM outbox ORDER BY seq"), ids) {
			t.Error("seq does not follow the order of the call")
		}
		if !slices.IsSorted(ids) {
			t.Error("ids do not rise")
		}
	})
}

// oddTexts holds what escapes, conversions and session settings could change: quotes and backslashes, what latin1 and three
// bytes of UTF-8 cannot say, something like a placeholder, and blanks at the end.
const oddTexts = "🦊é ключ \\x41 \\' '' \" `%s` ? $1 :x "

func allBytes() []byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}

func TestEveryByteArrives(t *testing.T) {
	everywhere(t, func(t *testing.T, s server) {
		payloads := [][]byte{
			allBytes(), nil,
			{},
			{0},
			[]byte("\xff"), []byte("🦊 \u2028 \\x41 ''"), []byte(`{"n":12345678901234567890123,"d":1.10,"a":1,"a":2}`),
			bytes.Repeat([]byte("long "), 1<<20),
		}
		var msgs []outbox.Message
		for _, p := range payloads {
			msgs = append(msgs, outbox.Message{Type: "t", Payload: p})
		}
		for i, id := range s.write(t, msgs...) {
			var got []byte
			var null bool // SQLite's driver returns nil for an empty blob too
			err := s.owner.QueryRowContext(t.Context(), "SELECT "+s.bytes+", "+s.bytes+" IS NULL FROM outbox WHERE id = '"+id+"'").Scan(&got, &null)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, payloads[i]) || null != (payloads[i] == nil) {
				t.Errorf("payload %d did not arrive as it was written", i)
			}
		}
	})
}

// TestSessionsChangeNothing writes and reads in every session that the engines can have.
func TestSessionsChangeNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, s server) {
		want := outbox.Message{
			AggregateType: "заказы 🦊", AggregateID: oddTexts, Type: "оплачен 'é'", Payload: allBytes(), ContentType: `text/plain; charset="é"`,
			SchemaVersion: 2147483647, Headers: map[string]string{"имя \\": oddTexts, "x": "<&>"}, Traceparent: "00-é",
			Delay: 200 * 365 * 24 * time.Hour, ExpiresIn: 290 * 365 * 24 * time.Hour,
		}
		for _, settings := range s.sessions {
			app := connect(t, s.driver, s.url(settings))
			id := s.writeBy(t, app, want)[0]
			var got outbox.Message
			var headers string
			var created int64
			err := s.owner.QueryRowContext(t.Context(), `SELECT aggregatetype, aggregateid, type, `+s.bytes+`, content_type, schema_version, headers,
				traceparent, 1000 * (`+s.micro("due_at")+` - `+s.micro("created_at")+`), 1000 * (`+s.micro("expires_at")+` - `+s.micro("created_at")+`),
				`+s.micro("created_at")+` FROM outbox WHERE id = '`+id+`'`).
				Scan(&got.AggregateType, &got.AggregateID, &got.Type, &got.Payload, &got.ContentType, &got.SchemaVersion, &headers,
					&got.Traceparent, &got.Delay, &got.ExpiresIn, &created)
			if err == nil {
				err = json.Unmarshal([]byte(headers), &got.Headers)
			}
			if err != nil {
				t.Fatalf("in the session %q: %v", settings, err)
			}
			// PostgreSQL's clock goes on within a statement.
			got.Delay, got.ExpiresIn = got.Delay.Round(time.Minute), got.ExpiresIn.Round(time.Minute)
			if !same(got, want) {
				t.Errorf("in the session %q\ngot  %+v\nwant %+v", settings, got, want)
			}
			r, err := s.table.Result(t.Context(), app, id)
			if err != nil || r != (outbox.Result{State: outbox.Pending, CreatedAt: time.UnixMicro(created).UTC()}) {
				t.Errorf("in the session %q: got the result %+v, %v", settings, r, err)
			}
			app.Close()
		}
	})
}

// same compares without the id.
func same(a, b outbox.Message) bool {
	return a.AggregateType == b.AggregateType && a.AggregateID == b.AggregateID && a.Type == b.Type && bytes.Equal(a.Payload, b.Payload) &&
		a.ContentType == b.ContentType && a.SchemaVersion == b.SchemaVersion && maps.Equal(a.Headers, b.Headers) &&
		a.Traceparent == b.Traceparent && a.Delay == b.Delay && a.ExpiresIn == b.ExpiresIn
}

func TestTimesAreTheDatabases(t *testing.T) {
	everywhere(t, func(t *testing.T, s server) {
		start := s.texts(t, "SELECT "+s.micro(s.now))[0]
		id := s.write(t, outbox.Message{Type: "t", Delay: 10 * time.Minute, ExpiresIn: 36*time.Hour + time.Nanosecond})[0]
		right := s.texts(t, `SELECT count(*) FROM outbox WHERE id = '`+id+`'
			AND `+s.micro("due_at")+` - 600000000 BETWEEN `+start+` AND `+s.micro(s.now)+`
			AND `+s.micro("expires_at")+` - 129600000001 BETWEEN `+start+` AND `+s.micro(s.now))
		if right[0] != "1" {
			t.Error("due_at or expires_at is not as far from the database's clock as the message says")
		}
	})
}

func TestAnIDIsWrittenOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, s server) {
		s.write(t, outbox.Message{Type: "t", ID: id})
		_, err := s.table.Write(t.Context(), begin(t, s.app), outbox.Message{Type: "t", ID: strings.ToUpper(id)})
		if err == nil || !s.duplicate(err) || !strings.HasPrefix(err.Error(), "outbox: write to outbox: ") {
			t.Errorf("got %v, want the database's error about a key that exists", err)
		}
	})
}

// TestIDsOfOtherForms: case and length are kept where an id is a text, and no other id is taken for it.
func TestIDsOfOtherForms(t *testing.T) {
	everywhere(t, func(t *testing.T, s server) {
		if s.dialect == outbox.Postgres {
			if _, err := s.table.Write(t.Context(), begin(t, s.app), outbox.Message{Type: "t", ID: "42"}); err == nil {
				t.Error("an id that is no UUID was taken")
			}
			return
		}
		ids := []string{"42", "order-42_PAID", "Order-42_paid", "-", strings.Repeat("Z", 36)}
		for _, id := range ids {
			if got := s.write(t, outbox.Message{Type: "t", ID: id})[0]; got != id {
				t.Errorf("%s is written as %s", id, got)
			}
		}
		if got := s.texts(t, "SELECT id FROM outbox ORDER BY seq"); !slices.Equal(got, ids) {
			t.Errorf("got %q, want %q", got, ids)
		}
		if _, err := s.table.Result(t.Context(), s.app, ids[1]); err != nil {
			t.Error(err)
		}
		if _, err := s.table.Result(t.Context(), s.app, "order-42_paid"); !errors.Is(err, outbox.ErrNotFound) {
			t.Errorf("an id in another case: got %v, want ErrNotFound", err)
		}
	})
}

func TestResultOfFinalMessages(t *testing.T) {
	everywhere(t, func(t *testing.T, s server) {
		ids := s.write(t, outbox.Message{Type: "t"}, outbox.Message{Type: "t"})
		run(t, s.owner, `UPDATE outbox SET state = 'done', due_at = `+s.never+`, done_at = `+s.now+`, result = '3@17' WHERE id = '`+ids[0]+`'`)
		if s.dialect == outbox.MySQL {
			run(t, s.owner, `UPDATE outbox SET result = rpad(result, 64, ' ')`)
		}
		run(t, s.owner, `UPDATE outbox SET state = 'failed', due_at = `+s.never+`, failed_at = `+s.now+`, resolved_at = `+s.now+`, reason = 'expired' WHERE id = '`+ids[1]+`'`)
		at := func(column, id string) time.Time {
			var micros int64
			if err := s.owner.QueryRowContext(t.Context(), "SELECT "+s.micro(column)+" FROM outbox WHERE id = '"+id+"'").Scan(&micros); err != nil {
				t.Fatal(err)
			}
			return time.UnixMicro(micros).UTC()
		}
		for i, want := range []outbox.Result{
			{State: outbox.Done, Result: "3@17", CreatedAt: at("created_at", ids[0]), DoneAt: at("done_at", ids[0])},
			{
				State: outbox.Failed, Reason: "expired", CreatedAt: at("created_at", ids[1]),
				FailedAt: at("failed_at", ids[1]), ResolvedAt: at("resolved_at", ids[1]),
			},
		} {
			got, err := s.table.Result(t.Context(), s.app, strings.ToUpper(ids[i]))
			if err != nil || got != want || !got.State.Final() {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
			}
		}
		if _, err := s.table.Result(t.Context(), s.app, "4.2"); err == nil {
			t.Error("an id that no table can hold was taken")
		}
	})
}

// TestSchemaIsNamed writes into a schema whose name must be quoted, in a session that stands elsewhere.
func TestSchemaIsNamed(t *testing.T) {
	everywhere(t, func(t *testing.T, s server) {
		odd, app := "Odd-"+s.schema, s.app
		switch s.dialect {
		case outbox.Postgres:
			run(t, s.owner, `ALTER SCHEMA `+s.schema+` RENAME TO "`+odd+`"`)
			t.Cleanup(func() { run(t, s.owner, `ALTER SCHEMA "`+odd+`" RENAME TO `+s.schema) })
		case outbox.MySQL:
			run(t, s.owner, "CREATE DATABASE `"+odd+"`")
			t.Cleanup(func() { run(t, s.owner, "DROP DATABASE `"+odd+"`") })
			run(t, s.owner, "CREATE TABLE `"+odd+"`.outbox LIKE outbox")
			run(t, s.owner, "DROP TABLE outbox")
			run(t, s.owner, "GRANT INSERT, SELECT ON `"+odd+"`.* TO "+s.schema)
		case outbox.SQLite:
			odd = "main"
		}
		in := outbox.Table{Dialect: s.dialect, Name: odd + ".outbox"}
		tx := begin(t, app)
		ids, err := in.Write(t.Context(), tx, outbox.Message{ID: id, Type: "t"})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := in.Result(t.Context(), tx, ids[0]); err != nil || r.State != outbox.Pending {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}
