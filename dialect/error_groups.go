package dialect

import (
	"cmp"
	"context"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// ErrorGroup are messages for which sends went wrong in one way: failed ones that nobody has resolved, or pending ones that
// wait for their next try.
type ErrorGroup struct {
	State          string  `json:"state"`
	RoutingKey     string  `json:"routing_key"`
	Type           string  `json:"type"`
	SchemaVersions []int   `json:"schema_versions"` // ascending
	Reason         *string `json:"reason"`
	ErrorClass     *string `json:"error_class"`
	Error          string  `json:"error"` // the Fingerprint of last_error; "": there is none
	Messages       int     `json:"messages"`
	More           bool    `json:"more"`     // only so many messages were looked at, there are more
	FirstAt        Time    `json:"first_at"` // when the first failed; of pending ones, when it was created
	LastAt         Time    `json:"last_at"`
	SampleID       string  `json:"sample_id"` // of the last one
	SampleError    *string `json:"sample_error"`
}

// Errors is what went wrong, and how far was looked.
type Errors struct {
	Groups      []ErrorGroup `json:"groups"`       // the one with most messages first
	FailedMore  bool         `json:"failed_more"`  // only the last CountBound failed messages were looked at
	PendingMore bool         `json:"pending_more"` // of a routing key, only some of its pending messages were looked at
	KeysMore    bool         `json:"keys_more"`    // only so many routing keys were looked at
}

const (
	// pendingBound is how many pending messages are looked at, divided among groups of routing key and lapses.
	pendingBound = 2 * CountBound
	// leastOfGroup is how many are looked at in any case, of each part of such a group.
	leastOfGroup = 10
	// GroupBound is how many such groups are looked at.
	GroupBound = 1000
)

// Group are the pending messages of a routing key that lapsed so often: a part of the index outbox_due.
type Group struct {
	RoutingKey string `json:"routing_key"`
	Lapses     int    `json:"lapses"`
}

// erring is a message as Errors looks at it.
type erring struct {
	Seq           int64   `json:"seq"`
	ID            string  `json:"id"`
	State         string  `json:"state"`
	RoutingKey    string  `json:"routing_key"`
	Type          string  `json:"type"`
	SchemaVersion int     `json:"schema_version"`
	Reason        *string `json:"reason"`
	ErrorClass    *string `json:"error_class"`
	LastError     *string `json:"last_error"`
	At            Time    `json:"at"`
	Matches       bool    `json:"matches"`
}

// ErringFields are columns of a walk that looks for errors; last_error, cut to what counts of it, "at" and due_at come to them.
const ErringFields = `seq, id, state, routing_key, type, schema_version, aggregateid, reason, error_class, resolved_at, due_at`

// Errors groups the messages of a filter for which a send went wrong: by state, routing key, type, reason, error class and
// the Fingerprint of the error. It looks at no more messages than CountBound that failed, the last ones, and pendingBound
// that are pending: of each routing key those that have been due for the longest time, those that came due last, and those
// whose next try comes first. An error of kind ErrFilter says what of the filter cannot be.
func (i *Inspector) Errors(ctx context.Context, f relay.Filter) (Errors, error) {
	var found Errors
	if err := check(f); err != nil {
		return found, err
	}
	var rows []erring
	beyond := map[string]bool{} // routing keys of which not all that is pending was looked at
	err := i.Wrap("errors", i.Read(ctx, func(q sqlx.ExtContext) (err error) {
		if f.State != relay.Pending {
			if rows, found.FailedMore, err = i.erring(ctx, q, f, Walk{Query: i.Texts.ErringFailed}, CountBound); err != nil {
				return err
			}
		}
		if f.State == relay.Failed {
			return nil
		}
		var pending []erring
		pending, found.KeysMore, err = i.erringPending(ctx, q, f, beyond)
		rows = append(rows, pending...)
		return err
	}))
	found.PendingMore = len(beyond) > 0
	found.Groups = group(rows, func(r erring) bool {
		return r.State == string(relay.Failed) && found.FailedMore || r.State == string(relay.Pending) && beyond[r.RoutingKey]
	})
	return found, err
}

// erringPending looks at the pending messages, group by group, and notes of which routing keys there are more.
func (i *Inspector) erringPending(ctx context.Context, q sqlx.ExtContext, f relay.Filter, beyond map[string]bool) (rows []erring, keysMore bool, err error) {
	groups, err := i.Groups(ctx, q, f.RoutingKey)
	if err != nil || len(groups) == 0 {
		return nil, false, err
	}
	if keysMore = len(groups) > GroupBound; keysMore {
		groups = groups[:GroupBound]
	}
	bound := max(pendingBound/len(groups)/3, leastOfGroup)
	for _, g := range groups {
		for _, walk := range i.parts(g) {
			part, more, err := i.erring(ctx, q, f, walk, bound)
			if err != nil {
				return nil, false, err
			}
			if rows = append(rows, part...); more {
				beyond[g.RoutingKey] = true
			}
		}
	}
	// The parts of a small group are the same messages.
	slices.SortFunc(rows, func(a, b erring) int { return cmp.Compare(a.Seq, b.Seq) })
	return slices.CompactFunc(rows, func(a, b erring) bool { return a.Seq == b.Seq }), keysMore, nil
}

// parts are the walks of a group.
func (i *Inspector) parts(g Group) []Walk {
	args := []any{g.RoutingKey, g.Lapses}
	return []Walk{
		{Query: i.Texts.ErringOldest, Args: args},
		{Query: i.Texts.ErringNewest, Args: args},
		{Query: i.Texts.ErringNext, Args: args},
	}
}

// erring reads at most bound messages of a walk, and returns those of a filter for which a send went wrong. more tells that
// the walk may go on.
func (i *Inspector) erring(ctx context.Context, q sqlx.ExtContext, f relay.Filter, w Walk, bound int) (rows []erring, more bool, err error) {
	condition, args := i.condition(f)
	args = append(append(args, w.Args...), bound)
	// Without a number for each row, and so without a second temporary table: MariaDB has a slow one for such wide rows.
	query := `
SELECT seq, id, state, routing_key, type, schema_version, reason, error_class, last_error, at,
  ` + condition + ` AND (state = 'failed' AND resolved_at IS NULL
    OR state = 'pending' AND coalesce(error_class, 'no_policy') NOT IN ('no_policy', 'paused')) AS matches
FROM (` + w.Query + `) s`
	var read []erring
	if err := i.selectOn(ctx, q, &read, query, args...); err != nil {
		return nil, false, err
	}
	return slices.DeleteFunc(read, func(r erring) bool { return !r.Matches }), len(read) == bound, nil
}

// errorKind is what the messages of a group have in common.
type errorKind struct{ state, routingKey, kind, reason, class, fingerprint string }

// group counts messages by what went wrong. more tells that there are more of such a message's routing key and state.
func group(rows []erring, more func(erring) bool) []ErrorGroup {
	at := map[errorKind]int{}
	groups := []ErrorGroup{}
	for _, r := range rows {
		fingerprint := Fingerprint(deref(r.LastError))
		kind := errorKind{r.State, r.RoutingKey, r.Type, deref(r.Reason), deref(r.ErrorClass), fingerprint}
		n, there := at[kind]
		if !there {
			n = len(groups)
			at[kind] = n
			groups = append(groups, ErrorGroup{
				State: r.State, RoutingKey: r.RoutingKey, Type: r.Type, Reason: r.Reason, ErrorClass: r.ErrorClass,
				Error: fingerprint, More: more(r), FirstAt: r.At,
			})
		}
		groups[n].add(r)
	}
	slices.SortStableFunc(groups, func(a, b ErrorGroup) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), b.LastAt.Compare(a.LastAt.Time))
	})
	return groups
}

func (g *ErrorGroup) add(r erring) {
	g.Messages++
	if at, there := slices.BinarySearch(g.SchemaVersions, r.SchemaVersion); !there {
		g.SchemaVersions = slices.Insert(g.SchemaVersions, at, r.SchemaVersion)
	}
	if r.At.Before(g.FirstAt.Time) {
		g.FirstAt = r.At
	}
	if !r.At.Before(g.LastAt.Time) {
		g.LastAt, g.SampleID, g.SampleError = r.At, r.ID, r.LastError
	}
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
