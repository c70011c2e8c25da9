package dialect

import (
	"context"
	"encoding/json"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// Drill is what came of sending done messages again by hand. It stands in the filter column of its operation, which orders
// nothing.
type Drill struct {
	Destination string `json:"destination"`
	Sent        int    `json:"sent"`       // messages that went out once more
	Agreed      int    `json:"agreed"`     // they were answered as the first time
	Silent      int    `json:"silent"`     // of those: no answer said anything, so that nothing could differ
	Differed    int    `json:"differed"`   // they were answered in another way
	Unanswered  int    `json:"unanswered"` // no answer came, or one that says: not now
}

// Record writes a drill into the log of operations, and returns its id. An operator may not say that an operation is applied, as
// Did does in the relay's role: the next relay that sees it does, and changes nothing.
func (i *Inspector) Record(ctx context.Context, op relay.Operation, told Drill) (id string, err error) {
	filter, err := json.Marshal(told)
	if err != nil {
		return "", err
	}
	id = NewUUID()
	err = i.Write(ctx, func(q sqlx.ExtContext) error {
		return i.execOn(ctx, q, i.Operations.Ask, id, string(op.Op), string(filter), op.Actor, op.Note, op.DryRun)
	})
	return id, i.Wrap("record", err)
}

// Drill reads what a drill told; ok is false where the operation is none.
func (o Operation) Drill() (d Drill, ok bool) {
	return d, o.Op == string(relay.OpDrill) && json.Unmarshal([]byte(o.Filter), &d) == nil
}
