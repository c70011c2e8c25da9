package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// openOperation inserts an operation, and gives it as relays see it.
func (b postgresBackend) openOperation(op relay.Op, filter string) relay.Operation {
	b.t.Helper()
	id := b.Order(relaytest.Ordered{Op: op, Filter: filter})
	open, err := b.postgres("looks").Operations(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, o := range open {
		if o.ID == id {
			return o
		}
	}
	b.t.Fatalf("operation %s is not open", id)
	return relay.Operation{}
}

// TestOperationHasOneApplier: while a relay makes a step, another passes over the operation, and none waits.
func TestOperationHasOneApplier(t *testing.T) {
	t.Parallel()
	b := newServer(t, false).backend(t)
	b.Insert(relaytest.Seed{Type: "x"}, relaytest.Seed{Type: "x"})
	one, two := b.postgres("one"), b.postgres("two")
	o := b.openOperation(relay.OpCancel, `{"type":"x"}`)
	judged := 0
	step, err := one.Operate(t.Context(), o, func(c relay.Candidate) relay.Verdict {
		judged++
		other, err := two.Operate(t.Context(), o, func(relay.Candidate) relay.Verdict {
			t.Error("another relay looks at the same messages")
			return relay.Verdict{}
		}, 500)
		if err != nil || !other.Elsewhere || other.Affected != 0 {
			t.Errorf("the other relay's step is %+v, %v", other, err)
		}
		return relay.Judge(o, c, relay.Dedupe{})
	}, 500)
	if err != nil || judged != 2 || step.Affected != 2 || !step.Finished {
		t.Errorf("the step is %+v, %v, of %d messages", step, err, judged)
	}
}

// TestOperationLeavesOutWhatTheDatabaseRefuses: a row that somebody's trigger watches stops only itself.
func TestOperationLeavesOutWhatTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	b := newServer(t, false).backend(t)
	ids := b.Insert(slices.Repeat([]relaytest.Seed{{Type: "x"}}, 7)...)
	b.exec(t, `CREATE FUNCTION watched() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$`)
	b.exec(t, `CREATE TRIGGER watches BEFORE UPDATE ON outbox FOR EACH ROW WHEN (OLD.id = '`+ids[3]+`') EXECUTE FUNCTION watched()`)
	p := b.postgres("a")
	o := b.openOperation(relay.OpCancel, `{"type":"x"}`)
	for steps := 0; ; steps++ {
		step, err := p.Operate(t.Context(), o, func(c relay.Candidate) relay.Verdict { return relay.Judge(o, c, relay.Dedupe{}) }, 500)
		if err != nil || steps > 20 {
			t.Fatalf("step %d: %+v, %v", steps, step, err)
		}
		if step.Finished {
			break
		}
	}
	row := b.Operation(o.ID)
	if row.Affected != 6 || row.Detail.Skipped[relay.SkipRefused] != 1 || len(row.Detail.Skipped) != 1 {
		t.Errorf("the operation is %+v", row)
	}
	for i, id := range ids {
		if got := b.Row(id).State; (got == relay.Failed) != (i != 3) {
			t.Errorf("message %d is %s", i, got)
		}
	}
}

// TestOperationOfNoUUID is refused in words, and not tried for ever.
func TestOperationOfNoUUID(t *testing.T) {
	t.Parallel()
	b := newServer(t, false).backend(t)
	o := b.openOperation(relay.OpCancel, `{"ids":["7"]}`)
	step, err := b.postgres("a").Operate(t.Context(), o, nil, 500)
	if row := b.Operation(o.ID); err != nil || !step.Finished || !strings.Contains(row.Detail.Refused, "UUID") {
		t.Errorf("%+v, %v: %+v", step, err, row)
	}
}

func nobodyKnows(string) (relay.Dedupe, bool) { return relay.Dedupe{}, false }

// TestPreviewOfUnknown: what may have taken effect is counted apart where nobody knows whether its destination remembers it.
func TestPreviewOfUnknown(t *testing.T) {
	t.Parallel()
	d, db := known(t)
	d.exec(t, "UPDATE outbox SET unknown_since = now() - interval '1 hour', reason = 'unknown' WHERE state = 'failed'")
	for name, c := range map[string]struct {
		order  relay.Order
		memory dialect.Memory
		want   string
	}{
		"nobody knows": {relay.Order{}, nobodyKnows, "1 1 map[resolved:1]"},
		"forced":       {relay.Order{Force: true}, nobodyKnows, "1 0 map[resolved:1]"},
		"remembered":   {relay.Order{}, func(string) (relay.Dedupe, bool) { return relay.Dedupe{Window: 2 * time.Hour}, true }, "1 0 map[resolved:1]"},
		"forgotten":    {relay.Order{}, func(string) (relay.Dedupe, bool) { return relay.Dedupe{Window: time.Minute}, true }, "0 0 map[resolved:1 unknown:1]"},
		"never":        {relay.Order{}, func(string) (relay.Dedupe, bool) { return relay.Dedupe{Never: true}, true }, "0 0 map[resolved:1 unknown:1]"},
	} {
		c.order.State = relay.Failed
		p, err := db.Preview(t.Context(), relay.Operation{Op: relay.OpReplay, Order: c.order}, c.memory)
		if got := fmt.Sprint(p.Affected, p.Doubtful, p.Skipped); err != nil || got != c.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, c.want)
		}
	}
}

// TestAsk: what people ask for is counted before, and found again.
func TestAsk(t *testing.T) {
	t.Parallel()
	d, db := known(t)
	preview := func(op relay.Op, filter string) string {
		order, err := relay.ParseOrder(op, filter, "a test")
		if err != nil {
			t.Fatal(err)
		}
		p, err := db.Preview(t.Context(), relay.Operation{Op: op, Order: order}, nobodyKnows)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(p.Affected, p.Skipped, p.More)
	}
	for _, c := range []struct {
		op           relay.Op
		filter, want string
	}{
		{relay.OpReplay, `{"state":"failed"}`, "1 map[resolved:1] false"},
		{relay.OpReplay, `{"state":"done"}`, "1 map[] false"},
		{relay.OpRetryNow, `{"routing_key":"orders"}`, "2 map[delayed:1 due:2] false"},
		{relay.OpCancel, `{"type":"none"}`, "0 map[] false"},
		{relay.OpCancel, `{"ids":["00000000-0000-7000-8000-000000000001","00000000-0000-7000-8000-000000000006","00000000-0000-7000-8000-0000000000ff"]}`, "1 map[in_flight:1 unmatched:1] false"},
	} {
		if got := preview(c.op, c.filter); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.op, c.filter, got, c.want)
		}
	}
	if _, err := db.Preview(t.Context(), relay.Operation{Op: relay.OpCancel, Order: relay.Order{Filter: relay.Filter{IDs: []string{"7"}}}}, nobodyKnows); err == nil || !strings.Contains(err.Error(), "UUID") {
		t.Errorf("a preview of an id that is none: %v", err)
	}
	d.exec(t, "INSERT INTO outbox (type, aggregatetype) SELECT 'many', 'm' FROM generate_series(1, 10600)")
	if got := preview(relay.OpCancel, `{"type":"many"}`); got != "10000 map[] true" {
		t.Errorf("of 10,600 messages the preview counts %s", got)
	}

	order := relay.Order{Filter: relay.Filter{Type: "none"}}
	id, err := db.Ask(t.Context(), relay.Operation{Op: relay.OpCancel, Order: order, Actor: "me", Note: "why"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := db.Operation(t.Context(), id)
	if err != nil || got.Op != "cancel" || got.Filter != `{"type":"none"}` || got.Actor != "me" || *got.Note != "why" || got.AppliedAt != nil || got.Affected != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := db.Ask(t.Context(), relay.Operation{ID: id, Op: relay.OpCancel, Order: order, Actor: "me"}); dialect.ClassOf(err) != dialect.Duplicate {
		t.Errorf("asked twice under one id: %v", err)
	}
	for _, open := range []bool{true, false} {
		if list, err := db.Asked(t.Context(), open, 10); err != nil || len(list) != 1 || list[0].ID != id {
			t.Errorf("the list is %+v, %v", list, err)
		}
	}
	if _, err := db.Operation(t.Context(), "00000000-0000-7000-8000-000000000001"); err == nil || !strings.Contains(err.Error(), "no operation has the id") {
		t.Errorf("an operation that is not there: %v", err)
	}
}
