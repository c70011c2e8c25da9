package integration

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/outboxd/outboxd/outbox"
)

// oddMessage is a message that something on its way could change. Empty texts are NULL or the column's default.
type oddMessage struct {
	name          string
	aggregateType string
	key           *string
	kind          string
	payload       []byte // nil: NULL
	contentType   string
	version       int
	headers       string
	traceparent   string
	delay         time.Duration
}

func oddMessages() []oddMessage {
	key := func(s string) *string { return &s }
	bytes256 := make([]byte, 256)
	for i := range bytes256 {
		bytes256[i] = byte(i)
	}
	return []oddMessage{
		{name: "nothing but a type", kind: "order_paid"},
		{name: "an empty payload", kind: "order_paid", payload: []byte{}},
		{name: "an empty key", kind: "order_paid", key: key(""), payload: []byte("{}")},
		{name: "blanks in the key", kind: "order_paid", key: key(" 42  "), payload: []byte("{}")},
		{name: "a key in another case", kind: "Order_Paid", key: key("aBc"), payload: []byte("{}")},
		{name: "every byte", kind: "order_paid", key: key("1"), payload: bytes256},
		{name: "no text", kind: "order_paid", key: key("1"), payload: []byte("\xff\xfe\xc3(")},
		{name: "line ends and controls", kind: "order_paid", key: key("a\tb\nc\r\x7f"), payload: []byte("a\r\nb\rc\n\t\x1a\b\\0")},
		{name: "quotes", kind: `it's "so" \`, key: key(`'"\ %_?$1 ` + "`"), payload: []byte(`'"\''\\?$1:x%s` + "`"), headers: `{"a\"b":"c\\d"}`},
		{name: "latin1", kind: "bezahlt_für", key: key("Zoë"), payload: []byte(`{"naïve":"café"}`), headers: `{"größe":"ß"}`, contentType: `text/plain; x="é"`},
		{
			name: "emoji", aggregateType: "заказы 🦊", kind: "оплачен 🦊", key: key("🦊\u2028e\u0301"), payload: []byte("🦊 \u2028 e\u0301 é \ufeff"),
			headers: `{"имя":"🦊"}`, traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		},
		{name: "headers in odd order", kind: "order_paid", key: key("1"), headers: ` { "z":"1", "a" : "2","m":"", "Z":"\u00e9\ud83e\udd8a\/" }`},
		{name: "a header twice", kind: "order_paid", key: key("1"), headers: `{"a":"1","b":"2","a":"3"}`},
		{
			name: "big numbers", kind: "order_paid", key: key("12345678901234567890123"), version: 2147483647,
			payload: []byte(`{"n":12345678901234567890123,"d":1.10,"e":1e400,"a":1,"a":2}`),
		},
		{name: "long texts", aggregateType: strings.Repeat("🦊", 255), kind: strings.Repeat("é", 255), key: key(strings.Repeat("🦊", 255)), contentType: strings.Repeat("x", 255)},
		{name: "a long payload", kind: "order_paid", key: key("1"), payload: bytes.Repeat([]byte("long\x00🦊\n"), 20_000)},
		{name: "a delay", kind: "order_paid", key: key("1"), payload: []byte(`{"later":true}`), delay: time.Second},
	}
}

// byHelper is the message as the Go helper writes it, where it can: it has no empty key, and headers in one order only.
func (m oddMessage) byHelper() (outbox.Message, bool) {
	out := outbox.Message{
		AggregateType: m.aggregateType, Type: m.kind, Payload: m.payload, ContentType: m.contentType, SchemaVersion: m.version,
		Traceparent: m.traceparent, Delay: m.delay,
	}
	if m.key != nil {
		out.AggregateID = *m.key
	}
	canonical := ""
	if m.headers != "" && json.Unmarshal([]byte(m.headers), &out.Headers) == nil {
		text, _ := json.Marshal(out.Headers)
		canonical = string(text)
	}
	return out, canonical == m.headers && (m.key == nil || *m.key != "")
}

// insert is the message as plain SQL: the columns that it has, their values, and the arguments of these. text makes the
// argument of a text as the session's character set wants it.
func (m oddMessage) insert(e engine, id string, text func(string) (any, bool)) (query string, args []any, possible bool) {
	columns, values := []string{}, []string{}
	possible = true
	add := func(column string, arg any) {
		columns, args = append(columns, column), append(args, arg)
		values = append(values, fmt.Sprintf("$%d", len(args)))
	}
	addText := func(column, value string) {
		arg, ok := text(value)
		possible = possible && ok
		add(column, arg)
	}
	add("id", id)
	for _, c := range []struct{ column, value string }{
		{"type", m.kind}, {"aggregatetype", m.aggregateType}, {"content_type", m.contentType}, {"headers", m.headers}, {"traceparent", m.traceparent},
	} {
		if c.value != "" {
			addText(c.column, c.value)
		}
	}
	if m.key != nil {
		addText("aggregateid", *m.key)
	}
	switch readable := utf8.Valid(m.payload) && !bytes.Contains(m.payload, []byte{0}); {
	case m.payload == nil:
	case e.helper == outbox.Postgres && readable:
		add("payload", string(m.payload))
	case e.helper == outbox.Postgres:
		add("payload_bytes", m.payload)
	default:
		add("payload", m.payload)
	}
	if m.version != 0 {
		add("schema_version", m.version)
	}
	if m.delay != 0 {
		columns, values = append(columns, "due_at"), append(values, "{now} + {second}")
	}
	query = e.sql("INSERT INTO outbox (" + strings.Join(columns, ", ") + ") VALUES (" + strings.Join(values, ", ") + ")")
	return query, args, possible
}

func utf8Text(s string) (any, bool) { return s, true }

// latin1Text is a text as an application sends it whose session is in latin1, if it can say it.
func latin1Text(s string) (any, bool) {
	var out []byte
	for _, r := range s {
		if r > 0xff {
			return nil, false
		}
		out = append(out, byte(r))
	}
	return string(out), true
}

// sameSession is a kind of session that an application may have.
type sameSession struct {
	name, settings string
	text           func(string) (any, bool)
}

func (e engine) sameSessions() []sameSession {
	switch e.driver {
	case "mysql":
		return []sameSession{
			{"plain", "", utf8Text},
			{"+02:00", "time_zone='%2B02:00'", utf8Text},
			{"no sql_mode", "sql_mode=''", utf8Text},
			{"latin1", "charset=latin1", latin1Text},
			{"all three", "time_zone='%2B02:00'&sql_mode=''&charset=latin1", latin1Text},
		}
	case "postgres":
		return []sameSession{{"plain", "", utf8Text}, {"+02:00", "timezone=Etc/GMT-2", utf8Text}}
	}
	return []sameSession{{"plain", "", utf8Text}}
}

// TestSameRecords: the same message, written to each database by SQL and by the Go helper, in sessions of every kind, becomes
// the same record of Kafka, byte by byte, but for its id and time.
func TestSameRecords(t *testing.T) {
	t.Parallel()
	all := make([]map[string]map[string]string, len(engines())) // of each engine: message → way → record
	t.Run("on", func(t *testing.T) {
		for i, e := range engines() {
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				all[i] = sameRecords(t, e)
			})
		}
	})
	for _, m := range oddMessages() {
		first, firstWay, ways := "", "", 0
		for i, e := range engines() {
			for way, record := range all[i][m.name] {
				way = e.name + ", " + way
				if ways++; ways == 1 {
					first, firstWay = record, way
				}
				if record != first {
					t.Errorf("%s, %s\n%.2000q\n%s\n%.2000q", m.name, firstWay, first, way, record)
				}
			}
		}
		t.Logf("%s: written in %d ways", m.name, ways)
	}
}

// sameRecords writes all messages in all ways and returns the records, by message and way.
func sameRecords(t *testing.T, e engine) map[string]map[string]string {
	t.Helper()
	s := newSpine(t, e, 10*time.Second)
	type origin struct {
		oddMessage
		way string
	}
	written := map[string]origin{} // by id
	for _, session := range e.sameSessions() {
		app := s.DB
		if session.settings != "" {
			app = e.connect(t, s.url, s.name, session.settings)
		}
		for _, m := range oddMessages() {
			id := outboxID(t)
			if query, args, possible := m.insert(e, id, session.text); possible {
				if _, err := app.ExecContext(t.Context(), query, args...); err != nil {
					t.Fatalf("%s, %s: %v", m.name, session.name, err)
				}
				written[id] = origin{m, "SQL, " + session.name}
			}
			if message, possible := m.byHelper(); possible {
				written[writeBy(t, e, app, message)] = origin{m, "helper, " + session.name}
			}
		}
	}
	startRelay(t, fmt.Sprintf(`
http: {listen: "off"}
destinations: {broker: {kafka: {brokers: [%q], topic: %q, tombstone_on_empty: true}}}
routes: [{match: "*", to: broker}]
`, brokers(t)[0], s.topic), s.env())
	s.waitDone(t, len(written))

	records := map[string]map[string]string{}
	for _, r := range readTopic(t, s.topic) {
		id, _ := header(r, "id")
		from, known := written[id]
		if !known {
			t.Fatalf("a record of id %s, which nobody wrote", id)
		}
		delete(written, id)
		from.checkRecord(t, r)
		if records[from.name] == nil {
			records[from.name] = map[string]string{}
		}
		records[from.name][from.way] = whole(r)
	}
	if len(written) > 0 {
		t.Errorf("%d messages are not in the topic", len(written))
	}
	return records
}

// checkRecord holds a record against what was written.
func (m oddMessage) checkRecord(t *testing.T, r *kgo.Record) {
	t.Helper()
	if (r.Key == nil) != (m.key == nil) || m.key != nil && string(r.Key) != *m.key {
		t.Errorf("%s: the key is %q", m.name, r.Key)
	}
	if !bytes.Equal(r.Value, m.payload) {
		t.Errorf("%s: the value is %.2000q", m.name, r.Value)
	}
	if kind, _ := header(r, "type"); kind != m.kind {
		t.Errorf("%s: the type is %q", m.name, kind)
	}
}

// whole is all that a receiver can see of a record but its id and time. Without a key the partition is any.
func whole(r *kgo.Record) string {
	var b strings.Builder
	if r.Key != nil {
		fmt.Fprintf(&b, "partition %d, key %q, ", r.Partition, r.Key)
	}
	if r.Value == nil {
		b.WriteString("no value")
	}
	fmt.Fprintf(&b, "value %q", r.Value)
	for _, h := range r.Headers {
		if h.Key != "id" {
			fmt.Fprintf(&b, ", %q=%q", h.Key, h.Value)
		}
	}
	return b.String()
}

// writeBy writes a message through a pool of an application's own.
func writeBy(t *testing.T, e engine, app *sql.DB, m outbox.Message) (id string) {
	t.Helper()
	return (&database{DB: app, engine: e}).write(t, m)[0]
}

// outboxID makes an id as an application does that chooses its own.
func outboxID(t *testing.T) string {
	t.Helper()
	_, ids, err := outbox.Table{Dialect: outbox.Postgres}.SQL(outbox.Message{Type: "any"})
	if err != nil {
		t.Fatal(err)
	}
	return ids[0]
}
