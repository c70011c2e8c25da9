package dialect

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/relay"
)

// Listed is a message as lists show it, without its payload. Fields are columns of outbox; times are UTC.
type Listed struct {
	ID            string  `json:"id"`
	Seq           int64   `json:"seq"`
	State         string  `json:"state"`
	RoutingKey    string  `json:"routing_key"`
	AggregateID   *string `json:"aggregateid"`
	Type          string  `json:"type"`
	SchemaVersion int     `json:"schema_version"`
	Attempts      int     `json:"attempts"`
	Lapses        int     `json:"lapses"`
	CreatedAt     Time    `json:"created_at"`
	DueAt         *Time   `json:"due_at"`
	FailedAt      *Time   `json:"failed_at"`
	ResolvedAt    *Time   `json:"resolved_at"`
	Reason        *string `json:"reason"`
	ErrorClass    *string `json:"error_class"`
	Result        *string `json:"result"`
}

// Page is a part of a list.
type Page struct {
	Messages []Listed
	Next     string // the cursor of the next page; empty: this was the last
}

// Walk is a bounded part of the messages in the order of an index.
type Walk struct {
	// Query selects ListedFields, "at", when the message came to its state or else was created, and "place", a JSON array
	// of texts that says where it stands, of what lies behind a place. Its placeholders are for each of Args, then for each
	// part of the place, then for how many rows to read.
	Query string
	Args  []any
	Start []string // the place before the first
	Order string   // the query's order by the names of what it selects, where the engine would number the rows in another one
}

// ListedFields are the columns of Listed.
const ListedFields = `id, seq, state, routing_key, aggregateid, type, schema_version, attempts, lapses, created_at, due_at, failed_at, resolved_at, reason, error_class, result`

// walkBound is how many rows one page reads at most. A filter that no index serves finds little in them, and pages on.
const walkBound = 10000

// List returns messages: pending ones in the order of their claims, failed ones by when they failed, all others by their
// key, newest first. A page can be shorter than its limit, 1 to 1000, even empty, and yet have a next one. An error of
// kind ErrFilter says what of the filter cannot be.
func (i *Inspector) List(ctx context.Context, f relay.Filter, limit int, cursor string) (Page, error) {
	if err := check(f); err != nil {
		return Page{}, err
	}
	if limit < 1 || limit > 1000 {
		return Page{}, Refuse(ErrFilter, "a limit of %d: 1 to 1000", limit)
	}
	walk := i.Texts.Walk(f, false)
	place := walk.Start
	if cursor != "" {
		var err error
		if place, err = decodeCursor(cursor, len(place)); err != nil {
			return Page{}, err
		}
	}
	var page Page
	err := i.Wrap("list", i.Read(ctx, func(q sqlx.ExtContext) (err error) {
		page.Messages, place, err = i.page(ctx, q, search{f, walk, limit, walkBound}, place)
		return err
	}))
	if err != nil || place == nil {
		return page, wrongID(f, err)
	}
	text, err := json.Marshal(place)
	page.Next = base64.RawURLEncoding.EncodeToString(text)
	return page, err
}

// search is a filter on a walk. A page of it has at most limit messages, and reads no more than bound rows.
type search struct {
	relay.Filter
	Walk
	limit, bound int
}

// page reads on from a place. next is the place behind the last row that it looked at, nil at the end of the walk.
func (i *Inspector) page(ctx context.Context, q sqlx.ExtContext, s search, place []string) (matches []Listed, next []string, err error) {
	var found []struct {
		Listed
		Matches bool
		Place   string
		N       int
	}
	query, args := i.matching(s, place)
	if err := i.selectOn(ctx, q, &found, query, args...); err != nil {
		return nil, nil, err
	}
	for n, row := range found {
		if row.Matches {
			matches = append(matches, row.Listed)
		}
		full := len(matches) == s.limit && n < len(found)-1
		if full || row.N == s.bound {
			err = json.Unmarshal([]byte(row.Place), &next)
			return matches, next, err
		}
	}
	return matches, nil, nil
}

func check(f relay.Filter) error {
	switch f.State {
	case "", relay.Pending, relay.InFlight, relay.Finished, relay.Failed:
		return nil
	}
	return Refuse(ErrFilter, "no state %q: pending, in_flight, done or failed", f.State)
}

// wrongID says what an engine means that cannot read what a filter compares with: its ids are UUIDs.
func wrongID(f relay.Filter, err error) error {
	if ClassOf(err) == Unreadable && len(f.IDs) > 0 {
		return Refuse(ErrFilter, "one of the ids is no UUID")
	}
	return err
}

// matching selects from a walk what a filter matches. The last row that was read comes back in any case: the next page
// begins behind it.
func (i *Inspector) matching(s search, place []string) (query string, args []any) {
	condition, values := i.condition(s.Filter)
	args = append(args, values...)
	args = append(args, s.Args...)
	for _, p := range place {
		args = append(args, p)
	}
	order := ""
	if s.Order != "" {
		order = "ORDER BY " + s.Order
	}
	return `
SELECT ` + ListedFields + `, matches, place, n FROM (
  SELECT s.*, ` + condition + ` AS matches, row_number() OVER (` + order + `) AS n
  FROM (` + s.Query + `) s) numbered
WHERE matches OR n = ?
ORDER BY n LIMIT ?`, append(args, s.bound, s.bound, s.limit+1)
}

// condition holds for what a filter matches.
func (i *Inspector) condition(f relay.Filter) (condition string, args []any) {
	conditions := []string{"true"}
	add := func(set bool, condition string, value any) {
		if set {
			conditions, args = append(conditions, condition), append(args, value)
		}
	}
	add(f.State != "", "state = ?", string(f.State))
	add(f.RoutingKey != "", "routing_key = ?", f.RoutingKey)
	add(f.Type != "", "type = ?", f.Type)
	add(f.SchemaVersion != 0, "schema_version = ?", f.SchemaVersion)
	add(f.Reason != "", "coalesce(reason, '') = ?", string(f.Reason))
	add(f.ErrorClass != "", "coalesce(error_class, '') = ?", f.ErrorClass)
	add(f.Key != "", "coalesce(aggregateid, '') = ?", f.Key)
	if len(f.Routes) > 0 {
		rules, values := routed(f.Routes)
		conditions, args = append(conditions, rules), append(args, values...)
	}
	if f.Unresolved {
		conditions = append(conditions, "resolved_at IS NULL")
	}
	if f.Since != nil {
		add(true, "at >= ?", i.Moment(*f.Since))
	}
	if f.Until != nil {
		add(true, "at < ?", i.Moment(*f.Until))
	}
	return "(" + strings.Join(conditions, " AND ") + ")", args
}

// routed holds for the routing keys that one of the rules takes.
func routed(rules []relay.RouteRule) (condition string, args []any) {
	condition = "CASE"
	for _, r := range rules {
		prefix, open := strings.CutSuffix(r.Match, "*")
		if open {
			condition += " WHEN substr(routing_key, 1, ?) = ?"
			args = append(args, utf8.RuneCountInString(prefix), prefix)
		} else {
			condition += " WHEN routing_key = ?"
			args = append(args, r.Match)
		}
		condition += fmt.Sprintf(" THEN %t", r.Takes)
	}
	return condition + " ELSE false END", args
}

func decodeCursor(cursor string, parts int) (place []string, err error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || json.Unmarshal(text, &place) != nil || len(place) != parts {
		return nil, Refuse(ErrFilter, "the cursor is not one that this list gave: begin without it, or keep the filter")
	}
	return place, nil
}
