package dialect

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// Listed is a message as lists show it, without its payload. Fields are columns of outbox; times are UTC.
type Listed struct {
	ID         string     `json:"id"`
	Seq        int64      `json:"seq"`
	State      string     `json:"state"`
	RoutingKey string     `json:"routing_key"`
	Type       string     `json:"type"`
	Attempts   int        `json:"attempts"`
	Lapses     int        `json:"lapses"`
	CreatedAt  time.Time  `json:"created_at"`
	DueAt      *time.Time `json:"due_at"`
	FailedAt   *time.Time `json:"failed_at"`
	Reason     *string    `json:"reason"`
	ErrorClass *string    `json:"error_class"`
	Result     *string    `json:"result"`
}

// Filter says which messages List returns; empty fields match all.
type Filter struct {
	State, Type, RoutingKey string
	Limit                   int    // messages of a page, 1 to 1000; 0: 100
	Cursor                  string // Next of the page before; empty: the first
}

// Page is a part of a list.
type Page struct {
	Messages []Listed
	Next     string // the cursor of the next page; empty: this was the last
}

// listBound is how many rows one page reads at most. A filter that no index serves finds little in them, and pages on.
const listBound = 10000

// Each list walks one index and reads a bounded part of it. $1, $2, $3: state, type and routing key, empty: all. $4:
// listBound. The rest is the place that the last page ended at. The last row that was read comes back in any case: the
// next page begins behind it.
const (
	listFields = `id, seq, state, routing_key, type, attempts, lapses, created_at, due_at, failed_at, reason, error_class, result`
	listMatch  = `
SELECT ` + listFields + `, matches, place, n FROM (
  SELECT s.*, ($1 = '' OR state = $1) AND ($2 = '' OR type = $2) AND ($3 = '' OR routing_key = $3) AS matches,
    row_number() OVER () AS n
  FROM scanned s) numbered
WHERE matches OR n = $4::int
ORDER BY n`

	// Newest first, by the key.
	listAll = `
WITH scanned AS MATERIALIZED (
  SELECT ` + listFields + `, json_build_array(id::text)::text AS place FROM /*schema.*/outbox
  WHERE id < $5::uuid ORDER BY id DESC LIMIT $4::int)` + listMatch

	// In the order in which they are claimed, by outbox_due. The first WHERE keeps other routing keys out of the bound.
	listPending = `
WITH scanned AS MATERIALIZED (
  SELECT ` + listFields + `, json_build_array(routing_key, lapses::text, due_at::text, seq::text)::text AS place FROM /*schema.*/outbox
  WHERE due_at IS NOT NULL AND ($3 = '' OR routing_key = $3)
    AND (routing_key, lapses, due_at, seq) > ($5::text, $6::int, $7::timestamptz, $8::bigint)
  ORDER BY routing_key, lapses, due_at, seq LIMIT $4::int)` + listMatch

	// Last failed first, by outbox_failed.
	listFailed = `
WITH scanned AS MATERIALIZED (
  SELECT ` + listFields + `, json_build_array(failed_at::text, id::text)::text AS place FROM /*schema.*/outbox
  WHERE failed_at IS NOT NULL AND (failed_at, id) < ($5::timestamptz, $6::uuid)
  ORDER BY failed_at DESC, id DESC LIMIT $4::int)` + listMatch

	// By the leases that hold them; one whose lease row is gone is not found here until a relay takes it back.
	listInFlight = `
WITH scanned AS MATERIALIZED (
  SELECT ` + listFields + `, json_build_array(id::text)::text AS place FROM /*schema.*/outbox
  WHERE id = ANY (ARRAY(SELECT unnest(ids) FROM /*schema.*/outbox_lease)) AND id < $5::uuid
  ORDER BY id DESC LIMIT $4::int)` + listMatch
)

const lastUUID = "ffffffff-ffff-ffff-ffff-ffffffffffff"

// listOf gives the query of a state and the place that its first page begins at.
func listOf(state string) (query string, start []string) {
	switch state {
	case "pending":
		return listPending, []string{"", "-1", "-infinity", "0"}
	case "failed":
		return listFailed, []string{"infinity", lastUUID}
	case "in_flight":
		return listInFlight, []string{lastUUID}
	default:
		return listAll, []string{lastUUID}
	}
}

// ErrFilter is the kind of error of a filter that cannot be.
var ErrFilter = errors.New("wrong filter")

// List returns messages: pending ones in the order of their claims, failed ones by when they failed, all others by their
// key, newest first. A page can be shorter than its limit, even empty, and yet have a next one.
func (d *DB) List(ctx context.Context, f Filter) (Page, error) {
	if f.Limit == 0 {
		f.Limit = 100
	}
	query, place := listOf(f.State)
	switch {
	case f.State != "" && f.State != "pending" && f.State != "in_flight" && f.State != "done" && f.State != "failed":
		return Page{}, refuse(ErrFilter, "no state %q: pending, in_flight, done or failed", f.State)
	case f.Limit < 1 || f.Limit > 1000:
		return Page{}, refuse(ErrFilter, "a limit of %d: 1 to 1000", f.Limit)
	}
	if f.Cursor != "" {
		var err error
		if place, err = decodeCursor(f.Cursor, len(place)); err != nil {
			return Page{}, err
		}
	}
	args := []any{f.State, f.Type, f.RoutingKey, listBound}
	for _, p := range place {
		args = append(args, p)
	}
	var found []struct {
		Listed
		Matches bool
		Place   string
		N       int
	}
	if err := d.selectAll(ctx, "list", &found, query, args...); err != nil {
		return Page{}, err
	}
	page := Page{}
	for i, row := range found {
		if row.Matches {
			page.Messages = append(page.Messages, row.Listed)
		}
		full := len(page.Messages) == f.Limit && i < len(found)-1
		if full || row.N == listBound {
			page.Next = base64.RawURLEncoding.EncodeToString([]byte(row.Place))
			break
		}
	}
	return page, nil
}

func decodeCursor(cursor string, parts int) (place []string, err error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || json.Unmarshal(text, &place) != nil || len(place) != parts {
		return nil, refuse(ErrFilter, "the cursor is not one that this list gave: begin without it, or keep the filter")
	}
	return place, nil
}

// selectAll renders and runs one query that only looks.
func (d *DB) selectAll(ctx context.Context, name string, rows any, query string, args ...any) error {
	text, err := render(query, d.schema)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return wrap(name, d.read(ctx, func(q sqlx.ExtContext) error { return sqlx.SelectContext(ctx, q, rows, text, args...) }))
}
