package mysql

import (
	"slices"
	"testing"

	"github.com/outboxd/outboxd/relay"
	"github.com/outboxd/outboxd/relay/relaytest"
)

// openOperation inserts an operation, and gives it as relays see it.
func (b backend) openOperation(op relay.Op, filter string) relay.Operation {
	b.t.Helper()
	id := b.Order(relaytest.Ordered{Op: op, Filter: filter})
	open, err := b.store("looks").Operations(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	i := slices.IndexFunc(open, func(o relay.Operation) bool { return o.ID == id })
	if i < 0 {
		b.t.Fatalf("operation %s is not open", id)
	}
	return open[i]
}

// TestOperationHasOneApplier: while a relay makes a step, another passes over the operation, and neither an INSERT nor a
// claim of another message waits.
func TestOperationHasOneApplier(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		b.Insert(slices.Repeat([]relaytest.Seed{{Type: "x"}}, 3)...)
		one, two := b.store("one"), b.store("two")
		o := b.openOperation(relay.OpCancel, `{"type":"x"}`)
		judged := 0
		step, err := one.Operate(t.Context(), o, func(c relay.Candidate) relay.Verdict {
			if judged++; judged > 1 {
				return relay.Judge(o, c, relay.Dedupe{})
			}
			other, err := two.Operate(t.Context(), o, nil, 500)
			if err != nil || !other.Elsewhere || other.Affected != 0 {
				t.Errorf("the other relay's step is %+v, %v", other, err)
			}
			b.exec(t, "SET SESSION innodb_lock_wait_timeout = 1")
			ids := b.Insert(relaytest.Seed{Type: "x"}, relaytest.Seed{Type: "w"}, relaytest.Seed{Type: "y"})
			quotas := []relay.Quota{{RoutingKey: "w", Limit: 9}, {RoutingKey: "x", Limit: 9}, {RoutingKey: "y", Limit: 9}}
			claims, err := two.Claim(t.Context(), 1, b.options.Lease, quotas)
			if err != nil || len(claims) != len(ids) {
				t.Errorf("a claim beside the step brought %d messages, want %d: %v", len(claims), len(ids), err)
			}
			return relay.Judge(o, c, relay.Dedupe{})
		}, 500)
		if err != nil || judged != 3 || step.Affected != 3 || !step.Finished {
			t.Errorf("the step is %+v, %v, of %d messages", step, err, judged)
		}
	})
}

// TestOperationLeavesOutWhatTheDatabaseRefuses: a row that somebody's trigger watches stops only itself.
func TestOperationLeavesOutWhatTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b backend) {
		ids := b.Insert(slices.Repeat([]relaytest.Seed{{Type: "x"}}, 7)...)
		b.exec(t, `CREATE TRIGGER watches BEFORE UPDATE ON outbox FOR EACH ROW
			IF OLD.id = '`+ids[3]+`' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not this one'; END IF`)
		s := b.store("a")
		o := b.openOperation(relay.OpCancel, `{"type":"x"}`)
		for steps := 0; ; steps++ {
			step, err := s.Operate(t.Context(), o, func(c relay.Candidate) relay.Verdict { return relay.Judge(o, c, relay.Dedupe{}) }, 500)
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
	})
}
