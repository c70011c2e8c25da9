package relay

import (
	"strings"
	"testing"
	"time"
)

// TestParseOrder: what an operation may say, and the line that answers what it may not.
func TestParseOrder(t *testing.T) {
	t.Parallel()
	const anything = `"state":"failed"`
	for _, c := range []struct {
		op     Op
		filter string
		want   string // a part of the error; "": it is accepted
	}{
		{OpReplay, `{"state":"failed"}`, ""},
		{OpReplay, `{"state":"done","type":"x","routing_key":"y","schema_version":2,"error_class":"timeout","key":"42"}`, ""},
		{OpReplay, `{"ids":["b","a","b"]}`, ""},
		{OpReplay, `{"reason":"rejected","limit":10,"rate":0.5,"wire_key":"new","force":true}`, ""},
		{OpReplay, `{"since":"2026-01-31T15:04:05Z","until":"2026-01-31T16:04:05+02:00"}`, ""},
		{OpCorrect, `{}`, ""},
		{OpCorrect, `{"state":"pending","type":"x"}`, ""},
		{OpRetryNow, `{"error_class":"no_policy"}`, ""},
		{OpCancel, `{"state":"pending"}`, ""},
		{OpPause, `{"destination":"crm","for":"30m"}`, ""},
		{OpPause, `{"routing_key":"orders","indefinitely":true}`, ""},
		{OpPause, `{"type":"x","schema_version":2,"for":"90s"}`, ""},
		{OpPause, `{"everything":true,"for":"1h30m"}`, ""},
		{OpResume, `{"type":"x","ended":true}`, ""},

		{OpReplay, `{}`, "empty filter"},
		{OpReplay, `{"limit":1,"force":true}`, "empty filter"},
		{OpReplay, `{"ids":[]}`, "empty filter"},
		{OpReplay, `{"colour":"red"}`, `unknown field "colour"`},
		{OpReplay, `{"state":"pending"}`, `not for messages in state "pending"`},
		{OpReplay, `{"state":"Failed"}`, `in state "Failed"`},
		{OpReplay, `{"reason":"bored"}`, `reason "bored"`},
		{OpReplay, `{"type":7}`, "type in the filter has a value of the wrong kind"},
		{OpReplay, `{"limit":1.5}`, "limit in the filter has a value of the wrong kind"},
		{OpReplay, `{` + anything + `,"limit":-1}`, "above 0"},
		{OpReplay, `{` + anything + `,"rate":-1}`, "rate is how many"},
		{OpReplay, `{` + anything + `,"rate":1e-11}`, "rate is how many"},
		{OpReplay, `{` + anything + `,"since":"9999-12-31T23:59:59-02:00"}`, "of the years"},
		{OpReplay, `{` + anything + `,"until":"0001-01-01T00:00:00Z"}`, "of the years"},
		{OpPause, `{"destination":"` + strings.Repeat("d", 395) + `","for":"30m"}`, "is longer than"},
		{OpReplay, `{` + anything + `,"wire_key":"other"}`, "new or same"},
		{OpReplay, `{"since":"yesterday"}`, "want a time"},
		{OpReplay, `{` + anything, "not one JSON object"},
		{OpReplay, `{` + anything + `} {}`, "not one JSON object"},
		{OpReplay, `[]`, "wrong kind"},
		{OpReplay, `null`, "not one JSON object"},
		{OpReplay, `{` + anything + `,"for":"1m"}`, "for pause and resume"},
		{OpReplay, `{` + anything + `,"destination":"crm"}`, "for pause and resume"},
		{OpCancel, `{"state":"failed"}`, `not for messages in state "failed"`},
		{OpCancel, `{"type":"x","force":true}`, "for replay and correct"},
		{OpRetryNow, `{"type":"x","wire_key":"new"}`, "for replay and correct"},
		{OpCorrect, `{"ids":["a"]}`, "outbox_correction"},
		{OpCorrect, `{"state":"done"}`, `not for messages in state "done"`},
		{OpResolve, `{"state":"failed"}`, "resolve wants a note"},
		{OpCorrect, `{}`, "correct wants a note"},
		{OpReplay, `{` + anything + `,"force":true}`, "force wants a note"},
		{OpPause, `{"destination":"crm"}`, "wants for"},
		{OpPause, `{"destination":"crm","for":"30m","indefinitely":true}`, "wants for"},
		{OpPause, `{"destination":"crm","for":"-1m"}`, "wants for"},
		{OpPause, `{"destination":"crm","for":"soon"}`, "duration such as 30m"},
		{OpPause, `{"for":"30m"}`, "one of destination"},
		{OpPause, `{"destination":"crm","everything":true,"for":"30m"}`, "one of destination"},
		{OpPause, `{"schema_version":2,"for":"30m"}`, "one of destination"},
		{OpPause, `{"routing_key":"x","schema_version":2,"for":"30m"}`, "one of destination"},
		{OpPause, `{"state":"failed","for":"30m"}`, "not about single messages"},
		{OpResume, `{"everything":true,"for":"30m"}`, "for pause"},
		{"explode", `{"type":"x"}`, `no operation "explode"`},
	} {
		note := "mended"
		if strings.Contains(c.want, "wants a note") {
			note = " "
		}
		_, err := ParseOrder(c.op, c.filter, note)
		switch {
		case err == nil && c.want != "":
			t.Errorf("%s %s is accepted, want: %s", c.op, c.filter, c.want)
		case err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s %s: %v, want: %s", c.op, c.filter, err, c.want)
		}
	}
	if _, err := ParseOrder(OpReplay, `{"ids":["`+strings.Repeat(`a","`, maxOrderIDs)+`b"]}`, ""); err != nil {
		t.Errorf("the same id many times: %v", err)
	}
}

// TestOrderText: what an order says survives the column.
func TestOrderText(t *testing.T) {
	t.Parallel()
	for op, filter := range map[Op]string{
		OpReplay: `{"ids":["a","b"],"routing_key":"<&>","state":"failed","limit":7,"rate":0.5,"wire_key":"same","force":true}`,
		OpPause:  `{"type":"x","schema_version":3,"for":"30m0s"}`,
		OpResume: `{"destination":"crm","ended":true}`,
	} {
		o, err := ParseOrder(op, filter, "mended")
		if err != nil {
			t.Fatal(err)
		}
		if text, err := o.Text(); err != nil || text != filter {
			t.Errorf("%s became %s, %v", filter, text, err)
		}
	}
}

func TestAllow(t *testing.T) {
	t.Parallel()
	const first = -1
	for _, c := range []struct {
		order    Order
		affected int
		since    time.Duration
		n        int
		wait     time.Duration
	}{
		{Order{}, 0, first, 500, 0},
		{Order{}, 9000, 0, 500, 0},
		{Order{Limit: 700}, 0, first, 500, 0},
		{Order{Limit: 700}, 500, 0, 200, 0},
		{Order{Limit: 700}, 700, 0, 0, 0},
		{Order{Rate: 100}, 0, first, 100, 0},
		{Order{Rate: 100}, 100, 100 * time.Millisecond, 10, 0},
		{Order{Rate: 100}, 100, time.Hour, 100, 0}, // no burst after a rest
		{Order{Rate: 100}, 100, 4 * time.Millisecond, 0, 6 * time.Millisecond},
		{Order{Rate: 10000}, 0, first, 500, 0},
		{Order{Rate: 100, Limit: 3}, 0, first, 3, 0},
		{Order{Rate: 0.1}, 0, first, 1, 0},
		{Order{Rate: 0.1}, 1, 4 * time.Second, 0, 6 * time.Second},
		{Order{Rate: 0.1}, 1, 10 * time.Second, 1, 0},
		{Order{Rate: 3}, 1, time.Second / 3, 1, 0},
	} {
		if n, wait := c.order.Allow(500, c.affected, c.since); n != c.n || wait != c.wait {
			t.Errorf("%+v after %d, %s: %d, %s, want %d, %s", c.order, c.affected, c.since, n, wait, c.n, c.wait)
		}
	}
}

func TestTargetNames(t *testing.T) {
	t.Parallel()
	for _, target := range []Target{
		{Everything: true},
		{Destination: "crm"},
		{RoutingKey: "a:b@2"},
		{Type: "2@x"},
		{Type: "order@paid:1", SchemaVersion: 12},
	} {
		if got, err := ParseTarget(target.String()); err != nil || got != target {
			t.Errorf("%s is read as %+v, %v", target, got, err)
		}
	}
	for _, name := range []string{"", "all", "destination:", "type_version:x@y", "type_version:1@", "type_version:0@y", "colour:red"} {
		if got, err := ParseTarget(name); err == nil {
			t.Errorf("%q is read as %+v", name, got)
		}
	}
}
