package dialect

import (
	"context"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// Payload is the body of a message, as the columns have it: one of Text and Bytes, or none where it is empty.
type Payload struct {
	ID          string
	Seq         int64
	Text, Bytes []byte
}

// Content is the body, not nil where it is empty.
func (p Payload) Content() []byte {
	switch {
	case p.Text != nil:
		return p.Text
	case p.Bytes != nil:
		return p.Bytes
	}
	return []byte{}
}

// Correction is a new payload for a message, and the one that it was made from: only while the message has that one, it is
// corrected.
type Correction struct {
	Old Payload
	New []byte
}

// correctable is how many messages a page of Correctable has at most. Their payloads are in memory together.
const correctable = 100

// correctBytes is how large the payloads of a statement may be before it has no more: servers refuse packets of 16 MiB.
const correctBytes = 1 << 20

// Correctable is a message that a correct operation could be about.
type Correctable struct {
	Payload            // without the body
	Why     relay.Skip // why it would be left as it is; empty: it would be corrected
}

// Correctable reads on from a place, nil at first, which messages in a state (empty: any) the filter of a correct operation
// fits, its ids among it. What is in flight it could correct, since it comes back to that. next is nil at the end; a page can
// be empty and yet have a next one. An error of kind ErrFilter says what of the order cannot be.
func (i *Inspector) Correctable(ctx context.Context, op relay.Operation, state relay.State, place []string) (found []Correctable, next []string, err error) {
	f := op.Order.Filter
	f.State = state
	s := search{f, i.Texts.Walk(f, true), correctable, walkBound}
	if place == nil {
		place = s.Start
	}
	err = i.Read(ctx, func(q sqlx.ExtContext) (err error) {
		var listed []Listed
		if listed, next, err = i.page(ctx, q, s, place); err != nil {
			return err
		}
		candidates, err := i.candidates(ctx, q, i.Operations.Candidates, nil, listed)
		for _, c := range candidates {
			one := Correctable{Payload: Payload{ID: c.ID, Seq: c.Seq}}
			if v := relay.Judge(op, c, relay.Dedupe{}); v.Effect == relay.Skipped && c.State != relay.InFlight {
				one.Why = v.Why
			}
			found = append(found, one)
		}
		return err
	})
	return found, next, wrongID(f, i.Wrap("correctable", err))
}

// Payloads reads the bodies of messages, by their ID and Seq, in the order of the key; those that are gone are left out. It
// needs a role that may read payloads.
func (i *Inspector) Payloads(ctx context.Context, of []Payload) (found []Payload, err error) {
	if len(of) == 0 {
		return nil, nil
	}
	keys := make([]relay.Candidate, len(of))
	for n, p := range of {
		keys[n] = relay.Candidate{ID: p.ID, Seq: p.Seq}
	}
	return found, i.selectAll(ctx, "payloads", &found, i.Operations.Payloads, i.Operations.Keys(keys))
}

// Correct inserts corrections of an operation that is asked for afterwards, under that id; until then they do nothing. Each
// statement has as many as make up a megabyte, or one.
func (i *Inspector) Correct(ctx context.Context, operation string, corrections []Correction) error {
	for len(corrections) > 0 {
		var args []any
		n := 0
		for size := 0; n < len(corrections) && n < correctable && (n == 0 || size < correctBytes); n++ {
			c := corrections[n]
			size += len(c.New) + len(c.Old.Content())
			args = append(args, operation, c.Old.ID)
			args = append(args, i.Operations.Body(c.New)...)
			args = append(args, i.Operations.OldBody(c.Old)...)
		}
		statement := i.Operations.AddCorrections + strings.Repeat(", "+i.Operations.AddCorrection, n)[2:]
		err := i.Write(ctx, func(q sqlx.ExtContext) error { return i.execOn(ctx, q, statement, args...) })
		if err != nil {
			return i.Wrap("correct", err)
		}
		corrections = corrections[n:]
	}
	return nil
}
