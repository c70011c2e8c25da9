package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// corrector reads payloads, and takes new ones.
type corrector interface {
	Correctable(ctx context.Context, op relay.Operation, state relay.State, place []string) (found []dialect.Correctable, next []string, err error)
	Payloads(ctx context.Context, of []dialect.Payload) ([]dialect.Payload, error)
	Correct(ctx context.Context, operation string, corrections []dialect.Correction) error
}

// correcting is what a correct command is about. It reads every payload twice: to count and show what would change, and,
// once somebody said yes, to write corrections of what was counted; between the two it keeps no payload.
type correcting struct {
	ids        []string
	change     change
	skipErrors bool

	of   []dialect.Payload            // the messages that it corrects, without their payloads
	seen map[string][sha256.Size]byte // by their ids, what their payloads were
	said strings.Builder              // what people see when all are read
}

// Why a message is left as it is, beside what a relay says.
const (
	skipUnchanged relay.Skip = "unchanged" // the new payload says the same as the old one
	skipErroneous relay.Skip = "erroneous" // there is no new payload
)

// correctShown is how many differences are shown, correctListed how many messages without a new payload.
const (
	correctShown  = 3
	correctListed = 20
)

// correctChunk is how many payloads are in memory together.
const correctChunk = 100

// lookAtPayloads reads the payloads of a correction and counts what it would do. It shows the first differences where a
// person is asked, or wants a dry run.
func (p *program) lookAtPayloads(ctx context.Context, db corrector, r request) (found dialect.Preview, err error) {
	c, op := r.correcting, r.Operation
	c.seen = map[string][sha256.Size]byte{}
	op.Order.IDs = c.ids
	shown := p.newProgress("read so far", 0)
	defer shown.end()
	for _, state := range c.states(op.Order.State) {
		var place []string
		for more := true; more && !op.Order.Reached(found.Affected); more = place != nil {
			var page []dialect.Correctable
			if page, place, err = db.Correctable(ctx, op, state, place); err != nil {
				return found, err
			}
			payloads, err := db.Payloads(ctx, c.unseen(page, &found))
			if err != nil {
				return found, err
			}
			for _, m := range payloads {
				if !op.Order.Reached(found.Affected) {
					r.tryChange(ctx, m, &found)
				}
			}
			shown.at(len(c.seen))
		}
	}
	shown.end()
	fmt.Fprint(p.stderr, c.said.String())
	found.AddUnmatched(len(c.ids), found.Affected)
	if n := found.Skipped[skipErroneous]; n > 0 && !c.skipErrors {
		return found, failf(exitNotAllowed, "no new payload for %s: mend the expression or narrow the filter, or add --skip-errors "+
			"to leave them out: nothing was asked for", messages(n, false))
	}
	return found, ctx.Err()
}

// states are those in which it looks for messages, so that it misses none that is claimed and turned back, or fails, while it
// reads. Those with ids are looked up, whatever their state is.
func (c *correcting) states(wanted relay.State) []relay.State {
	if wanted != "" || len(c.ids) > 0 {
		return []relay.State{wanted}
	}
	return []relay.State{relay.Pending, relay.InFlight, relay.Pending, relay.Failed}
}

// unseen are those of a page whose payloads matter; it counts the others. A message that moved while others were read may come
// again.
func (c *correcting) unseen(page []dialect.Correctable, found *dialect.Preview) (of []dialect.Payload) {
	for _, m := range page {
		if _, twice := c.seen[m.ID]; twice {
			continue
		}
		c.seen[m.ID] = [sha256.Size]byte{}
		if m.Why != "" {
			found.Add(m.Why, 1)
			continue
		}
		of = append(of, m.Payload)
	}
	return of
}

// tryChange makes the new payload of one message, counts it, and shows what a person should see of it.
func (r request) tryChange(ctx context.Context, m dialect.Payload, found *dialect.Preview) {
	c := r.correcting
	old, asked := m.Content(), !r.yes || r.DryRun
	c.seen[m.ID] = sha256.Sum256(old)
	payload, err := c.change(ctx, old)
	switch {
	case errors.Is(err, errUnchanged):
		found.Add(skipUnchanged, 1)
	case err != nil:
		found.Add(skipErroneous, 1)
		c.tellErroneous(m.ID, err, asked, found.Skipped[skipErroneous])
	default:
		c.of = append(c.of, dialect.Payload{ID: m.ID, Seq: m.Seq})
		if found.Affected++; asked && found.Affected <= correctShown {
			fmt.Fprintf(&c.said, "%s\n%s", m.ID, difference(old, payload))
		}
	}
}

// tellErroneous lists a message of which there is no new payload. What jq says quotes the old one: only a person who is asked
// sees it.
func (c *correcting) tellErroneous(id string, err error, asked bool, n int) {
	words := err.Error()
	if q, ok := errors.AsType[*quoting](err); ok && asked {
		words += ": " + harmless(clip(q.err.Error()))
	}
	switch {
	case n <= correctListed:
		fmt.Fprintf(&c.said, "%s: %s\n", id, words)
	case n == correctListed+1:
		fmt.Fprintln(&c.said, "… and more")
	}
}

// writeCorrections inserts, before the operation that it gives an id, the corrections of what was counted. What has another
// payload by now is left out.
func (p *program) writeCorrections(ctx context.Context, db corrector, r *request) error {
	c := r.correcting
	r.ID = dialect.NewUUID()
	shown := p.newProgress("written so far", len(c.of))
	defer shown.end()
	written, left := 0, 0
	for of := range slices.Chunk(c.of, correctChunk) {
		payloads, err := db.Payloads(ctx, of)
		if err != nil {
			return err
		}
		var corrections []dialect.Correction
		for _, m := range payloads {
			if sha256.Sum256(m.Content()) != c.seen[m.ID] {
				continue
			}
			payload, err := c.change(ctx, m.Content())
			if err != nil {
				return fmt.Errorf("message %s: %w: nothing was asked for", m.ID, err)
			}
			corrections = append(corrections, dialect.Correction{Old: m, New: payload})
		}
		if err := db.Correct(ctx, r.ID, corrections); err != nil {
			return err
		}
		written, left = written+len(corrections), left+len(of)-len(corrections)
		shown.at(written)
	}
	shown.end()
	if written == 0 {
		return failf(exitPartly, "all of the messages changed since they were read: nothing was asked for")
	}
	if left > 0 {
		fmt.Fprintf(p.stderr, "left out: %s changed since they were read\n", messages(left, false))
	}
	return nil
}
