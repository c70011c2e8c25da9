package dialect

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// Kind counts messages of one routing key, type and schema version that are in one state.
type Kind struct {
	RoutingKey    string `json:"routing_key"`
	Type          string `json:"type"`
	SchemaVersion int    `json:"schema_version"`
	State         string `json:"state"`
	Resolved      bool   `json:"resolved"` // failed, and it needs nothing more
	Messages      int    `json:"messages"`
	More          bool   `json:"more"`       // only so many were looked at, there may be more
	ID            string `json:"id"`         // of the oldest of them
	CreatedAt     Time   `json:"created_at"` // of the oldest of them
}

// Horizon says how far a look reached that did not reach the end.
type Horizon struct {
	State      string `json:"state"`
	RoutingKey string `json:"routing_key"` // of pending messages, of which each routing key is looked at by itself; "" of others
	Messages   int    `json:"messages"`    // that were looked at
	Back       Time   `json:"back"`        // the earliest time at which one of them came to its state
}

// Kinds are the kinds of message that the outbox holds.
type Kinds struct {
	Kinds    []Kind    `json:"kinds"`
	Horizons []Horizon `json:"horizons"` // where there is more than was looked at: a kind may be missing there
}

// kindsBound is how many of the newest messages are looked at for done ones. Of pending ones it is CountBound at either end
// of each routing key, of failed ones the last CountBound.
const kindsBound = 100000

// Kinds tells which kinds of message wait, are in flight, failed, or are done and can be replayed.
func (i *Inspector) Kinds(ctx context.Context) (Kinds, error) {
	k := Kinds{Kinds: []Kind{}, Horizons: []Horizon{}}
	err := i.Read(ctx, func(q sqlx.ExtContext) error {
		if err := i.pendingKinds(ctx, q, &k); err != nil {
			return err
		}
		for _, look := range []struct {
			state relay.State
			bound int
		}{{relay.InFlight, math.MaxInt32}, {relay.Failed, CountBound}, {relay.Finished, kindsBound}} {
			walk := i.Texts.Walk(relay.Filter{State: look.state}, false)
			args := walk.Args
			for _, part := range walk.Start {
				args = append(args, part)
			}
			found, err := i.kindsOf(ctx, q, walk.Query, append(args, look.bound)...)
			if err != nil {
				return err
			}
			k.add(found, look.state, "", look.bound)
		}
		return nil
	})
	k.merge()
	return k, i.Wrap("kinds of message", err)
}

// pendingKinds looks at both ends of each group of routing key and lapses in the claim's index: what waits longest, and
// what came last.
func (i *Inspector) pendingKinds(ctx context.Context, q sqlx.ExtContext, k *Kinds) error {
	routingKey, lapses := "", -1
	for {
		var next []struct {
			RoutingKey string `json:"routing_key"`
			Lapses     int
			Pending    bool
		}
		query, args := i.Texts.NextGroup(routingKey, lapses)
		if err := i.selectOn(ctx, q, &next, query, args...); err != nil || len(next) == 0 {
			return err
		}
		routingKey, lapses = next[0].RoutingKey, next[0].Lapses
		if !next[0].Pending {
			continue
		}
		found, err := i.kindsOf(ctx, q, i.Texts.GroupEnds, routingKey, lapses, CountBound, routingKey, lapses, CountBound)
		if err != nil {
			return err
		}
		k.add(found, relay.Pending, routingKey, 2*CountBound)
	}
}

// foundKind is a Kind with the earliest time at which one of its messages came to its state.
type foundKind struct {
	Kind
	Back Time
}

// kindsOf groups the messages that a query selects: ListedFields or some of them, and at. (A count over the windows takes
// MariaDB minutes; PostgreSQL knows no greatest uuid.)
func (i *Inspector) kindsOf(ctx context.Context, q sqlx.ExtContext, query string, args ...any) (found []foundKind, err error) {
	return found, i.selectOn(ctx, q, &found, `
SELECT routing_key, type, schema_version, state, resolved, count(*) AS messages, min(created_at) AS created_at, min(at) AS back,
  max(CASE WHEN nth = 1 THEN CAST(id AS char(36)) END) AS id
FROM (
  SELECT s.*, resolved_at IS NOT NULL AS resolved,
    row_number() OVER (PARTITION BY routing_key, type, schema_version, state, resolved_at IS NOT NULL ORDER BY created_at, seq) AS nth
  FROM (`+query+`) s) numbered
GROUP BY routing_key, type, schema_version, state, resolved`, args...)
}

// add takes the kinds of a state out of what a look found, which read no more than bound messages.
func (k *Kinds) add(found []foundKind, state relay.State, routingKey string, bound int) {
	seen, back := 0, Time{}
	for _, f := range found {
		if seen += f.Messages; back.IsZero() || f.Back.Before(back.Time) {
			back = f.Back
		}
	}
	for _, f := range found {
		if f.State == string(state) {
			f.More = seen >= bound
			k.Kinds = append(k.Kinds, f.Kind)
		}
	}
	if seen >= bound {
		k.Horizons = append(k.Horizons, Horizon{string(state), routingKey, seen, back})
	}
}

// merge puts together what was found in several groups of a routing key, and sorts.
func (k *Kinds) merge() {
	slices.SortFunc(k.Kinds, compareKinds)
	merged := k.Kinds[:0]
	for _, kind := range k.Kinds {
		last := len(merged) - 1
		if last < 0 || compareKinds(merged[last], kind) != 0 {
			merged = append(merged, kind)
			continue
		}
		if kind.CreatedAt.Before(merged[last].CreatedAt.Time) {
			merged[last].ID, merged[last].CreatedAt = kind.ID, kind.CreatedAt
		}
		merged[last].Messages += kind.Messages
		merged[last].More = merged[last].More || kind.More
	}
	k.Kinds = merged
}

func compareKinds(a, b Kind) int {
	resolved := map[bool]int{true: 1}
	return cmp.Or(
		cmp.Compare(a.RoutingKey, b.RoutingKey), cmp.Compare(a.Type, b.Type), cmp.Compare(a.SchemaVersion, b.SchemaVersion),
		cmp.Compare(a.State, b.State), resolved[a.Resolved]-resolved[b.Resolved],
	)
}
