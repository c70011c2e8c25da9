package dialect

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// Gauger reads figures for one relay. It is what every engine's Store embeds as its relay.Gauger.
type Gauger struct {
	on *Inspector
}

var _ relay.Gauger = (*Gauger)(nil)

// NewGauger makes the Gauger of an outbox.
func NewGauger(on *Inspector) *Gauger { return &Gauger{on} }

// FigureTexts are an engine's queries of figures. Placeholders are question marks, in the order that is named.
type FigureTexts struct {
	// Depths selects of one routing key, by lapses and type: lapses, type, and of the first limit pending messages of each
	// number of lapses how many there are (pending), how many of them are due, and for how long the first has been (oldest).
	// It has DepthParts parts, one for each number of lapses that is walked apart: in each, routing key and limit.
	Depths     string
	DepthParts int
	// InFlight counts by type messages that leases hold; '' is the type of those that they hold no more. Limit.
	InFlight string
	// Failed counts unresolved failed messages by type and reason, the last ones first. Limit.
	Failed string
	// Lapsed is for how long the oldest lease should have been renewed, below 0 where all are in time. Limit.
	Lapsed string
	// Snapshot is the age of the oldest transaction that holds back vacuum or purge, NULL where the role may not see it.
	Snapshot string

	// Duty selects value and epoch, LockDuty locks them, too. kind, name. AddDuty inserts a row: value, epoch, kind, name.
	// WriteDuty changes it: the same.
	Duty, LockDuty, AddDuty, WriteDuty string
}

// DepthArgs are the arguments of Depths.
func (t FigureTexts) DepthArgs(routingKey string, limit int) []any {
	return slices.Repeat([]any{routingKey, limit}, t.DepthParts)
}

// Depths implements relay.Gauger.
func (g *Gauger) Depths(ctx context.Context, routingKeys []string, limit int) (depths []relay.Depth, err error) {
	err = g.on.Read(ctx, func(q sqlx.ExtContext) error {
		for _, key := range routingKeys {
			found, err := g.depths(ctx, q, key, limit)
			if err != nil {
				return err
			}
			depths = append(depths, found...)
		}
		return nil
	})
	return depths, g.on.Wrap("depths", err)
}

func (g *Gauger) depths(ctx context.Context, q sqlx.ExtContext, routingKey string, limit int) ([]relay.Depth, error) {
	var rows []struct {
		Lapses, Pending, Due int
		Type                 string
		Oldest               Age
	}
	if err := g.on.selectOn(ctx, q, &rows, g.on.Figures.Depths, g.on.Figures.DepthArgs(routingKey, limit)...); err != nil {
		return nil, err
	}
	seen, at, more := map[int]int{}, map[string]int{}, false
	var depths []relay.Depth
	for _, r := range rows {
		seen[r.Lapses] += r.Pending
		more = more || seen[r.Lapses] >= limit
		i, known := at[r.Type]
		if !known {
			i = len(depths)
			at[r.Type] = i
			depths = append(depths, relay.Depth{RoutingKey: routingKey, Type: r.Type})
		}
		d := &depths[i]
		d.Pending, d.Due, d.Oldest = d.Pending+r.Pending, d.Due+r.Due, max(d.Oldest, time.Duration(r.Oldest))
	}
	for i := range depths {
		depths[i].More = more
	}
	return depths, nil
}

// Totals implements relay.Gauger.
func (g *Gauger) Totals(ctx context.Context, limit int) (t relay.Totals, err error) {
	if err := g.inFlight(ctx, limit, &t); err != nil {
		return t, err
	}
	if err := g.failed(ctx, limit, &t); err != nil {
		return t, err
	}
	var lapsed []Age
	if err := g.on.selectAll(ctx, "lapsed leases", &lapsed, g.on.Figures.Lapsed, limit); err != nil {
		return t, err
	}
	for _, l := range lapsed {
		t.Lapsed = max(t.Lapsed, time.Duration(l))
	}
	t.Snapshot, err = g.snapshot(ctx)
	return t, err
}

func (g *Gauger) inFlight(ctx context.Context, limit int, t *relay.Totals) error {
	var rows []struct {
		Type     string
		Messages int
	}
	if err := g.on.selectAll(ctx, "messages in flight", &rows, g.on.Figures.InFlight, limit); err != nil {
		return err
	}
	t.InFlight = map[string]int{}
	looked := 0
	for _, r := range rows {
		if looked += r.Messages; r.Type != "" {
			t.InFlight[r.Type] = r.Messages
		}
	}
	t.InFlightMore = looked >= limit
	return nil
}

func (g *Gauger) failed(ctx context.Context, limit int, t *relay.Totals) error {
	var rows []struct {
		Type     string
		Reason   relay.Reason
		Messages int
	}
	if err := g.on.selectAll(ctx, "unresolved messages", &rows, g.on.Figures.Failed, limit); err != nil {
		return err
	}
	t.Failed = map[relay.FailedKind]int{}
	looked := 0
	for _, r := range rows {
		looked += r.Messages
		t.Failed[relay.FailedKind{Type: r.Type, Reason: r.Reason}] = r.Messages
	}
	t.FailedMore = looked >= limit
	return nil
}

// snapshot is nil where the role may not see the transactions of others.
func (g *Gauger) snapshot(ctx context.Context) (*time.Duration, error) {
	var rows []sql.NullInt64
	err := g.on.selectAll(ctx, "oldest snapshot", &rows, g.on.Figures.Snapshot)
	switch {
	case ClassOf(err) == Rights, err == nil && (len(rows) == 0 || !rows[0].Valid):
		return nil, nil //nolint:nilnil // relay.Totals: nobody may know
	case err != nil:
		return nil, err
	}
	age := max(FromMicros(rows[0].Int64), 0)
	return &age, nil
}

// dutyValue is the value of a duty in outbox_control.
type dutyValue struct {
	Relay  string `json:"relay"`
	Beats  int64  `json:"beats"`
	Length int64  `json:"length"` // microseconds
}

// dutyRow is a duty as its row tells.
type dutyRow struct {
	Value string
	Epoch int64
}

// SwapDuty implements relay.Gauger.
func (g *Gauger) SwapDuty(ctx context.Context, seen, want relay.Duty) (now relay.Duty, err error) {
	if seen == want {
		return g.duty(ctx, seen)
	}
	err = g.on.Write(ctx, func(q sqlx.ExtContext) error {
		var rows []dutyRow
		if err := g.on.selectOn(ctx, q, &rows, g.on.Figures.LockDuty, seen.Kind, seen.Name); err != nil {
			return err
		}
		if now = dutyOf(seen, rows); now != seen {
			return nil
		}
		value, err := json.Marshal(dutyValue{want.Relay, want.Beats, want.Length.Microseconds()})
		if err != nil {
			return err
		}
		write := g.on.Figures.WriteDuty
		if len(rows) == 0 {
			write = g.on.Figures.AddDuty
		}
		now = want
		return g.on.execOn(ctx, q, write, string(value), want.Epoch, seen.Kind, seen.Name)
	})
	if err = g.on.Wrap("duty", err); ClassOf(err) == Duplicate {
		return g.duty(ctx, seen) // Another relay was the first.
	}
	return now, err
}

func (g *Gauger) duty(ctx context.Context, of relay.Duty) (relay.Duty, error) {
	var rows []dutyRow
	err := g.on.selectAll(ctx, "duty", &rows, g.on.Figures.Duty, of.Kind, of.Name)
	return dutyOf(of, rows), err
}

// dutyOf reads a row. One that nobody can read is of no relay.
func dutyOf(of relay.Duty, rows []dutyRow) relay.Duty {
	d := relay.Duty{Kind: of.Kind, Name: of.Name}
	if len(rows) == 0 {
		return d
	}
	d.Epoch = rows[0].Epoch
	var v dutyValue
	if json.Unmarshal([]byte(rows[0].Value), &v) == nil {
		d.Relay, d.Beats, d.Length = v.Relay, v.Beats, FromMicros(v.Length)
	}
	return d
}
