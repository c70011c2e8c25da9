package relaytest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/outboxd/outboxd/relay"
)

// Settle implements relay.Store.
func (s *Memory) Settle(ctx context.Context, settlements []relay.Settlement) (unsettled []relay.Unsettled, err error) {
	err = s.locked(ctx, func(t *Table, now time.Time) {
		for _, settlement := range settlements {
			row := settlement.Row()
			switch m := t.messages[row.ID]; {
			case m == nil || m.LeaseID != row.Lease:
				unsettled = append(unsettled, relay.Unsettled{Settlement: settlement, Why: relay.Lost})
			case m.State != relay.InFlight: // written before
			case m.locked > 0:
				unsettled = append(unsettled, relay.Unsettled{Settlement: settlement, Why: relay.Locked})
			case refuses(row.Emit):
				err := errors.New("type or aggregatetype of the message that tells has blanks around it")
				unsettled = append(unsettled, relay.Unsettled{Settlement: settlement, Why: relay.Refused, Err: err})
			default:
				m.settle(row, now)
				t.record(m, row, s.relay, now)
				t.tell(m, row.Emit, now)
			}
		}
	})
	return unsettled, err
}

// settle writes a settlement to the message, as relay/DESIGN.md, Decide has it.
func (m *message) settle(r relay.Row, now time.Time) {
	m.State = r.State
	if r.Charge {
		m.Attempts++
	}
	switch r.Lapses {
	case relay.LapsesZero:
		m.Lapses = 0
	case relay.LapsesAdd:
		m.Lapses++
	case relay.LapsesKeep:
	}
	if r.MarkUnknown && m.UnknownSince.IsZero() {
		m.UnknownSince = now.Add(-r.Since)
	}
	m.ErrorClass = cmp.Or(r.ErrorClass, m.ErrorClass)
	m.LastError = cmp.Or(r.LastError, m.LastError)
	switch r.State {
	case relay.Pending:
		m.DueAt = now.Add(r.Delay)
	case relay.Finished:
		m.DoneAt, m.Result = now, r.Result
	case relay.Failed:
		m.FailedAt, m.Reason = now, r.Reason
		if r.Reason == relay.Expired {
			m.ResolvedAt = now
		}
	case relay.InFlight: // no settlement leads there
	}
}

// record adds the row of outbox_attempt that goes with a settlement, if one does.
func (t *Table) record(m *message, r relay.Row, relayName string, now time.Time) {
	if !r.Recorded() {
		return
	}
	t.attempts[m.ID] = append(t.attempts[m.ID], Attempt{
		Life: m.Replays, Attempt: m.Attempts, Relay: relayName, StartedAt: now.Add(-r.Since), Duration: r.Took,
		Outcome: r.What, Status: r.Status, ErrorClass: r.ErrorClass, Error: r.LastError, Answer: r.Answer,
	})
}

// told is the payload of a message that tells of another one.
type told struct {
	ID       string        `json:"id"`
	Type     string        `json:"type"`
	State    relay.State   `json:"state"`
	Reason   *relay.Reason `json:"reason"`
	Result   *string       `json:"result"`
	Attempts int           `json:"attempts"`
	Replays  int           `json:"replays"`
	At       string        `json:"at"`
}

// refuses tells what the tables' constraints refuse of a message that tells.
func refuses(e relay.Emit) bool {
	return strings.TrimSpace(e.Type) != e.Type || strings.TrimSpace(e.AggregateType) != e.AggregateType
}

// tell inserts the message that tells of one that is final now, if one does.
func (t *Table) tell(m *message, e relay.Emit, now time.Time) {
	if e.Type == "" {
		return
	}
	payload, _ := json.Marshal(told{ // numbers and texts: nothing of that can fail
		ID: m.ID, Type: m.seed.Type, State: m.State, Reason: pointer(m.Reason), Result: pointer(m.Result),
		Attempts: m.Attempts, Replays: m.Replays, At: m.finalAt().UTC().Format("2006-01-02T15:04:05.000000Z"),
	})
	t.insert(Seed{
		Type: e.Type, AggregateType: pointer(e.AggregateType), AggregateID: m.seed.AggregateID,
		Traceparent: m.seed.Traceparent, Payload: payload,
	}, now)
}

// pointer is nil for what is empty.
func pointer[T ~string](text T) *T {
	if text == "" {
		return nil
	}
	return &text
}
