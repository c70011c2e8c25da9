package outbox_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/outbox"
)

func TestNames(t *testing.T) {
	t.Parallel()
	const anywhere = outbox.Dialect("")
	for _, tt := range []struct {
		dialect   outbox.Dialect
		name      string
		into, err string
	}{
		{name: "", into: `"outbox"`},
		{name: "outbox", into: `"outbox"`},
		{name: "billing.outbox", into: `"billing"."outbox"`},
		{name: "My-Schema.outbox", into: `"My-Schema"."outbox"`},
		{name: "a.b.outbox", into: `"a.b"."outbox"`},
		{name: strings.Repeat("a", 40), into: `"` + strings.Repeat("a", 40) + `"`},
		{name: strings.Repeat("a", 41), err: "table name"},
		{name: "Outbox", err: "table name"},
		{name: "1outbox", err: "table name"},
		{name: "outbox; DROP TABLE orders", err: "table name"},
		{name: "billing.", err: "table name"},
		{name: ".outbox", err: "schema name"},
		{name: "bill\x00ing.outbox", err: "schema name"},
		{name: strings.Repeat("s", 65) + ".outbox", err: "schema name"},
		{dialect: outbox.Postgres, name: `"billing".outbox`, err: "schema name"},
		{dialect: outbox.Postgres, name: strings.Repeat("s", 64) + ".outbox", err: "schema name"},
		{dialect: outbox.MySQL, name: "`billing`.outbox", err: "schema name"},
		{dialect: outbox.SQLite, name: `"main".outbox`, err: "schema name"},
	} {
		for _, dialect := range []outbox.Dialect{outbox.Postgres, outbox.MySQL, outbox.SQLite} {
			if tt.dialect != anywhere && tt.dialect != dialect {
				continue
			}
			into := tt.into
			if dialect == outbox.MySQL {
				into = strings.ReplaceAll(into, `"`, "`")
			}
			statements, _, err := outbox.Table{Dialect: dialect, Name: tt.name}.SQL(outbox.Message{Type: "t"})
			switch {
			case tt.err != "":
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%s %q: got error %v, want one about the %s", dialect, tt.name, err, tt.err)
				}
			case err != nil:
				t.Errorf("%s %q: %v", dialect, tt.name, err)
			case !strings.HasPrefix(statements[0].SQL, "INSERT INTO "+into+" (id"):
				t.Errorf("%s %q: %s", dialect, tt.name, statements[0].SQL)
			}
		}
	}
}

func TestDialectIsRequired(t *testing.T) {
	t.Parallel()
	for _, dialect := range []outbox.Dialect{"", "oracle"} {
		if _, _, err := (outbox.Table{Dialect: dialect}).SQL(outbox.Message{Type: "t"}); err == nil {
			t.Errorf("dialect %q was taken", dialect)
		}
		if _, err := (outbox.Table{Dialect: dialect}).Result(t.Context(), nil, id); err == nil {
			t.Errorf("dialect %q was taken by Result", dialect)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	all := outbox.Message{
		ID: id, AggregateType: "orders", AggregateID: "42", Type: "order_paid", Payload: []byte(`{"a":"é"}`), ContentType: "text/plain",
		SchemaVersion: 3, Headers: map[string]string{"b": "<&>", "a": "1"}, Traceparent: "00-1", Delay: time.Second, ExpiresIn: time.Minute,
	}
	for _, tt := range []struct {
		name    string
		dialect outbox.Dialect
		m       outbox.Message
		want    []any
	}{
		{
			"defaults", outbox.Postgres,
			outbox.Message{ID: strings.ToUpper(id), Type: "t"},
			[]any{id, nil, nil, "t", nil, nil, "application/json", 1, "{}", nil, int64(0), nil},
		},
		{
			"all", outbox.Postgres, all,
			[]any{id, "orders", "42", "order_paid", `{"a":"é"}`, nil, "text/plain", 3, `{"a":"1","b":"<&>"}`, "00-1", int64(1e6), int64(60e6)},
		},
		{
			"empty payload", outbox.Postgres,
			outbox.Message{ID: id, Type: "t", Payload: []byte{}},
			[]any{id, nil, nil, "t", "", nil, "application/json", 1, "{}", nil, int64(0), nil},
		},
		{
			"NUL in payload", outbox.Postgres,
			outbox.Message{ID: id, Type: "t", Payload: []byte("a\x00")},
			[]any{id, nil, nil, "t", nil, []byte("a\x00"), "application/json", 1, "{}", nil, int64(0), nil},
		},
		{
			"payload not UTF-8", outbox.Postgres,
			outbox.Message{ID: id, Type: "t", Payload: []byte{0xff}},
			[]any{id, nil, nil, "t", nil, []byte{0xff}, "application/json", 1, "{}", nil, int64(0), nil},
		},
		{
			"shortest times", outbox.Postgres,
			outbox.Message{ID: id, Type: "t", Delay: 999, ExpiresIn: 1001},
			[]any{id, nil, nil, "t", nil, nil, "application/json", 1, "{}", nil, int64(0), int64(2)},
		},
		{
			"defaults", outbox.MySQL,
			outbox.Message{ID: strings.ToUpper(id), Type: "t"},
			[]any{id, nil, nil, "74", nil, "6170706c69636174696f6e2f6a736f6e", 1, "7b7d", nil, int64(0), nil},
		},
		{
			"all", outbox.MySQL, all,
			[]any{
				id, "6f7264657273", "3432", "6f726465725f70616964", []byte(`{"a":"é"}`), "746578742f706c61696e", 3,
				"7b2261223a2231222c2262223a223c263e227d", "30302d31", int64(1e6), int64(60e6),
			},
		},
		{
			"empty payload", outbox.MySQL,
			outbox.Message{ID: "Order-42", Type: "t", Payload: []byte{}},
			[]any{"Order-42", nil, nil, "74", []byte{}, "6170706c69636174696f6e2f6a736f6e", 1, "7b7d", nil, int64(0), nil},
		},
		{
			"defaults", outbox.SQLite,
			outbox.Message{ID: strings.ToUpper(id), Type: "t"},
			[]any{id, nil, nil, "t", nil, "application/json", 1, "{}", nil, int64(0), nil},
		},
		{
			"all", outbox.SQLite, all,
			[]any{id, "orders", "42", "order_paid", []byte(`{"a":"é"}`), "text/plain", 3, `{"a":"1","b":"<&>"}`, "00-1", int64(1e6), int64(60e6)},
		},
	} {
		t.Run(string(tt.dialect)+" "+tt.name, func(t *testing.T) {
			t.Parallel()
			statements, _, err := outbox.Table{Dialect: tt.dialect}.SQL(tt.m)
			if err != nil || len(statements) != 1 {
				t.Fatalf("%d statements, error %v", len(statements), err)
			}
			if !reflect.DeepEqual(statements[0].Args, tt.want) {
				t.Errorf("got  %#v\nwant %#v", statements[0].Args, tt.want)
			}
		})
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	const zero = "00000000-0000-0000-0000-000000000000"
	for _, tt := range []struct {
		id         string
		uuid, text string // as it is stored where ids are UUIDs, and where they are texts; "" where it is refused
	}{
		{id, id, id},
		{strings.ToUpper(id), id, id},
		{zero, "", ""},
		{"42", "", "42"},
		{"Order_42-PAID", "", "Order_42-PAID"},
		{strings.ReplaceAll(id, "-", ""), "", strings.ReplaceAll(id, "-", "")},
		{strings.Repeat("z", 36), "", strings.Repeat("z", 36)},
		{strings.Repeat("z", 37), "", ""},
		{"4.2", "", ""},
		{"4 2", "", ""},
		{"42\n", "", ""},
		{"é", "", ""},
	} {
		for dialect, want := range map[outbox.Dialect]string{outbox.Postgres: tt.uuid, outbox.MySQL: tt.text, outbox.SQLite: tt.text} {
			_, ids, err := outbox.Table{Dialect: dialect}.SQL(outbox.Message{ID: tt.id, Type: "t"})
			var invalid *outbox.InvalidError
			switch {
			case want == "":
				if !errors.As(err, &invalid) || invalid.Field != "id" {
					t.Errorf("%s %q: got %q, %v, want it refused", dialect, tt.id, ids, err)
				}
			case err != nil || ids[0] != want:
				t.Errorf("%s %q: got %q, %v, want %q", dialect, tt.id, ids, err, want)
			}
		}
	}
}

func TestChunks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		dialect outbox.Dialect
		name    string
		msgs    []outbox.Message
		want    []int // rows of each statement
	}{
		{outbox.Postgres, "none", nil, nil},
		{outbox.Postgres, "one", messages(1, 10), []int{1}},
		{outbox.Postgres, "full", messages(1000, 10), []int{1000}},
		{outbox.Postgres, "one more", messages(1001, 10), []int{1000, 1}},
		{outbox.Postgres, "by size", messages(5, 2<<20-19), []int{2, 2, 1}}, // each counts its texts too, 19 bytes
		{outbox.Postgres, "a large one goes alone", append(messages(1, 10), append(messages(1, 5<<20), messages(2, 10)...)...), []int{1, 1, 2}},
		{outbox.MySQL, "one more", messages(1001, 10), []int{1000, 1}},
		{outbox.MySQL, "by size", messages(5, 1<<19-19), []int{2, 2, 1}},
		{outbox.SQLite, "one more", messages(91, 10), []int{90, 1}},
		{outbox.SQLite, "by size", messages(5, 2<<20-19), []int{2, 2, 1}},
	} {
		t.Run(string(tt.dialect)+" "+tt.name, func(t *testing.T) {
			t.Parallel()
			arguments := map[outbox.Dialect]int{outbox.Postgres: 12, outbox.MySQL: 11, outbox.SQLite: 11}[tt.dialect]
			most := map[outbox.Dialect]int{outbox.Postgres: 65_535, outbox.MySQL: 65_535, outbox.SQLite: 999}[tt.dialect]
			statements, ids, err := outbox.Table{Dialect: tt.dialect}.SQL(tt.msgs...)
			if err != nil || len(ids) != len(tt.msgs) {
				t.Fatalf("%d ids of %d, error %v", len(ids), len(tt.msgs), err)
			}
			var got []int
			for _, s := range statements {
				if len(s.Args) > most {
					t.Errorf("%d arguments, more than %s takes", len(s.Args), tt.dialect)
				}
				got = append(got, len(s.Args)/arguments)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v rows, want %v", got, tt.want)
			}
		})
	}
}
