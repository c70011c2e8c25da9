package relaytest

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// operation is a row of outbox_operation.
type operation struct {
	relay.Operation
	relay.Progress
	relay.Detail
	filter    string
	requested time.Time
	applied   time.Time
	affected  int
	applier   string
}

// correction is a row of outbox_correction.
type correction struct{ payload, old []byte }

type correctionKey struct{ operation, message string }

// Order inserts an operation.
func (t *Table) Order(o Ordered) (id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.lastSeq++
	id = cmp.Or(o.ID, timeOrderedUUID(now, t.lastSeq))
	asked := relay.Operation{ID: id, Op: o.Op, Note: o.Note, DryRun: o.DryRun, Actor: "test"}
	asked.Order, asked.Err = relay.ParseOrder(o.Op, o.Filter, o.Note)
	if o.Progress != "" {
		asked.Err = errors.New("its progress is not what a relay wrote")
	}
	t.order(asked, now)
	return id
}

// Correct inserts a row of outbox_correction.
func (t *Table) Correct(operation, message string, payload, old []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.corrections[correctionKey{operation, message}] = &correction{payload: slices.Clone(payload), old: slices.Clone(old)}
}

// Operation reads a row of outbox_operation.
func (t *Table) Operation(id string) OperationRow {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.operation(id)
	if o == nil {
		return OperationRow{}
	}
	row := OperationRow{
		Op: o.Op, Filter: o.filter, Applied: !o.applied.IsZero(), Affected: o.affected,
		Detail: o.Detail, Applier: o.applier,
	}
	if len(o.Place) > 0 {
		row.Progress = o.Place[0]
	}
	return row
}

// Payload reads the body of a message.
func (t *Table) Payload(message string) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.messages[message].seed.Payload
}

// OldPayload reads the body that a correction replaced.
func (t *Table) OldPayload(operation, message string) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.corrections[correctionKey{operation, message}]; c != nil {
		return c.old
	}
	return nil
}

// Operations counts the operations that were asked for.
func (t *Table) Operations(op relay.Op) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range t.operations {
		if o.Op == op {
			n++
		}
	}
	return n
}
