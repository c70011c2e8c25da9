package dialect

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// Operation is a row of outbox_operation.
type Operation struct {
	ID          string  `json:"id"`
	Op          string  `json:"op"`
	Filter      string  `json:"filter"`
	Actor       string  `json:"actor"`
	Note        *string `json:"note"`
	DryRun      bool    `json:"dry_run"`
	RequestedAt Time    `json:"requested_at"`
	AppliedAt   *Time   `json:"applied_at"`
	Affected    *int64  `json:"affected"`
	Detail      *string `json:"detail"`
	Progress    *string `json:"progress"`
	Applier     *string `json:"applier"`
}

// Ask inserts an operation, for a relay to apply, and returns its id, which it makes where there is none. An error of class
// Duplicate says that there is an operation of that id.
func (i *Inspector) Ask(ctx context.Context, op relay.Operation) (id string, err error) {
	if op.ID == "" {
		op.ID = NewUUID()
	}
	err = i.Write(ctx, func(q sqlx.ExtContext) error { return i.ask(ctx, q, i.Operations.Ask, op) })
	return op.ID, wrongID(op.Order.Filter, i.Wrap("ask", err))
}

func (i *Inspector) ask(ctx context.Context, q sqlx.ExtContext, statement string, op relay.Operation) error {
	filter, err := op.Order.Text()
	if err != nil {
		return err
	}
	return i.execOn(ctx, q, statement, op.ID, string(op.Op), filter, op.Actor, op.Note, op.DryRun)
}

// NewUUID is a random UUID (RFC 9562, version 4).
func NewUUID() string {
	var id [16]byte
	rand.Read(id[:]) // crypto/rand.Read never returns an error
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	h := hex.EncodeToString(id[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Operation returns one operation. errors.Is ErrNotFound where there is none of the id.
func (i *Inspector) Operation(ctx context.Context, id string) (Operation, error) {
	var found []Operation
	if err := i.selectAll(ctx, "operation", &found, i.Operations.Get, id); err != nil {
		return Operation{}, notUUID(id, err)
	}
	if len(found) == 0 {
		return Operation{}, Refuse(ErrNotFound, "no operation has the id %.80q", id)
	}
	return found[0], nil
}

// Asked returns operations, the last one first, at most limit; or only those that are not applied.
func (i *Inspector) Asked(ctx context.Context, open bool, limit int) ([]Operation, error) {
	operations := []Operation{}
	return operations, i.selectAll(ctx, "operations", &operations, i.Operations.List, open, limit)
}

// correctedBy finds corrections by their key: the id of a message, and those of operations.
const correctedBy = `SELECT operation_id FROM /*schema.*/outbox_correction WHERE id = ? AND operation_id IN (?)`

// Corrected returns which of these operations, by their ids, have a correction of the message; it reads no payload.
func (i *Inspector) Corrected(ctx context.Context, message string, operations []string) (found []string, err error) {
	if len(operations) == 0 {
		return nil, nil
	}
	err = i.selectAll(ctx, "corrections", &found, correctedBy, message, operations)
	return found, err
}

// previewPages is how many pages a preview reads, and previewPage how many messages one of them is about at most.
const (
	previewPages = 200
	previewPage  = 500
)

// Preview is what an operation on messages would do if it were applied now, by what the database alone knows.
type Preview struct {
	relay.Detail
	Affected int
	Doubtful int  // of Affected: they may have taken effect already, and nobody here knows whether a relay takes them
	More     bool // only so many were looked at, there are more
}

// Memory tells how long the destination of a routing key remembers a wire key; known is false where nobody knows here.
type Memory func(routingKey string) (dedupe relay.Dedupe, known bool)

// Preview counts what an operation would do, up to CountBound messages, and locks nothing. An error of kind ErrFilter says
// what of the order cannot be.
func (i *Inspector) Preview(ctx context.Context, op relay.Operation, memory Memory) (Preview, error) {
	var p Preview
	err := i.Read(ctx, func(q sqlx.ExtContext) error {
		search := i.searchOf(op, previewPage)
		place := search.Start
		for range previewPages {
			if p.More = p.Affected >= CountBound; p.More {
				return nil
			}
			found, next, err := i.page(ctx, q, search, place)
			if err != nil {
				return err
			}
			candidates, err := i.candidates(ctx, q, i.Operations.Candidates, nil, found)
			if err != nil {
				return err
			}
			for _, c := range candidates {
				p.count(op, c, memory)
			}
			if place = next; next == nil {
				p.AddUnmatched(len(op.Order.IDs), p.Affected)
				return nil
			}
		}
		p.More = true
		return nil
	})
	return p, wrongID(op.Order.Filter, i.Wrap("preview", err))
}

// count adds what would become of one message. A replay of what may have taken effect depends on the memory of its
// destination, unless it is forced.
func (p *Preview) count(op relay.Operation, c relay.Candidate, memory Memory) {
	dedupe, known := memory(c.RoutingKey)
	v := relay.Judge(op, c, dedupe)
	if v.Effect == relay.Skipped {
		p.Add(v.Why, 1)
		return
	}
	p.Affected++
	if !known && c.Unknown && v.Effect == relay.Revived && !op.Order.Force {
		p.Doubtful++
	}
}
