package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// inspector answers what people ask.
func (d *DB) inspector() *dialect.Inspector {
	return &dialect.Inspector{
		Read: d.read,
		Write: func(ctx context.Context, f func(sqlx.ExtContext) error) error {
			return d.write(ctx, func(tx *sqlx.Tx) error { return f(tx) })
		},
		Render: asItIs,
		Wrap:   d.wrap,
		Moment: func(t time.Time) any { return t.UnixMicro() },
		Groups: d.groups,
		Texts: dialect.Texts{
			Walk: walk, ErringFailed: erringFailed, ErringOldest: erringOldest, ErringNewest: erringNewest, ErringNext: erringNext, Passed: textPassed, Sent: textSent, Get: textGet, GetAttempts: textGetAttempts, GetPayload: textGetPayload, Lease: textLease,
			Waiting: textWaiting, Failed: textFailed, Relays: textRelays, Breakers: textBreakers, Peers: textPeers,
			NextGroup: nextGroup, GroupEnds: textGroupEnds,
		},
		Operations: operationTexts(),
		Figures:    figureTexts(),
	}
}

const (
	lowestSeq  = "0"
	highestSeq = "9223372036854775807"
)

// Parts of a place are texts: a column of integers is compared with what CAST makes of them.
const (
	walked = `SELECT ` + dialect.ListedFields + `, coalesce(failed_at, done_at, created_at) AS at, `
	// By the key.
	walkAll       = walked + `json_array(CAST(seq AS TEXT)) AS place FROM outbox WHERE seq < CAST(? AS INTEGER) ORDER BY seq DESC LIMIT ?`
	walkAllOldest = walked + `json_array(CAST(seq AS TEXT)) AS place FROM outbox WHERE seq > CAST(? AS INTEGER) ORDER BY seq LIMIT ?`
	walkIDs       = walked + `json_array(CAST(seq AS TEXT)) AS place FROM outbox
WHERE id IN (SELECT value FROM json_each(?)) AND seq > CAST(? AS INTEGER) ORDER BY seq LIMIT ?`

	// In the order in which they are claimed, by outbox_due. The first condition keeps other routing keys out of the bound.
	walkPending = walked + `json_array(routing_key, CAST(lapses AS TEXT), CAST(due_at AS TEXT), CAST(seq AS TEXT)) AS place
FROM outbox INDEXED BY outbox_due
WHERE due_at IS NOT NULL AND (? = '' OR routing_key = ?)
  AND (routing_key, lapses, due_at, seq) > (?, CAST(? AS INTEGER), CAST(? AS INTEGER), CAST(? AS INTEGER))
ORDER BY routing_key, lapses, due_at, seq LIMIT ?`

	// By outbox_failed.
	walkFailed = walked + `json_array(CAST(failed_at AS TEXT), CAST(seq AS TEXT)) AS place FROM outbox INDEXED BY outbox_failed
WHERE failed_at IS NOT NULL AND (failed_at, seq) < (CAST(? AS INTEGER), CAST(? AS INTEGER)) ORDER BY failed_at DESC, seq DESC LIMIT ?`
	walkFailedOldest = walked + `json_array(CAST(failed_at AS TEXT), CAST(seq AS TEXT)) AS place FROM outbox INDEXED BY outbox_failed
WHERE failed_at IS NOT NULL AND (failed_at, seq) > (CAST(? AS INTEGER), CAST(? AS INTEGER)) ORDER BY failed_at, seq LIMIT ?`

	// By the leases that hold them; one whose lease row is gone is not found here until a relay takes it back.
	walkInFlight = walked + `json_array(CAST(seq AS TEXT)) AS place FROM outbox
WHERE seq IN (SELECT j.value FROM outbox_lease l, json_each(l.ids) j) AND seq > CAST(? AS INTEGER) ORDER BY seq LIMIT ?`
)

// walk picks the index that serves a filter.
func walk(f relay.Filter, oldestFirst bool) dialect.Walk {
	switch {
	case len(f.IDs) > 0:
		ids, _ := json.Marshal(f.IDs) // Texts can always be written as JSON.
		return dialect.Walk{Query: walkIDs, Args: []any{string(ids)}, Start: []string{lowestSeq}}
	case f.State == relay.Pending:
		return dialect.Walk{Query: walkPending, Args: []any{f.RoutingKey, f.RoutingKey}, Start: []string{"", "-1", "0", "0"}}
	case f.State == relay.InFlight:
		return dialect.Walk{Query: walkInFlight, Start: []string{lowestSeq}}
	case f.State == relay.Failed && oldestFirst:
		return dialect.Walk{Query: walkFailedOldest, Start: []string{"0", lowestSeq}}
	case f.State == relay.Failed:
		return dialect.Walk{Query: walkFailed, Start: []string{highestSeq, highestSeq}}
	case oldestFirst:
		return dialect.Walk{Query: walkAllOldest, Start: []string{lowestSeq}}
	}
	return dialect.Walk{Query: walkAll, Start: []string{highestSeq}}
}

const textGet = `
SELECT o.id, aggregatetype, aggregateid, type, content_type, schema_version, headers, traceparent, routing_key, seq, state, due_at,
  expires_at, o.lease_id, attempts, lapses, replays, unknown_since, send_id, created_at, done_at, failed_at, resolved_at, reason,
  error_class, last_error, result, CASE WHEN state = 'in_flight' THEN l.relay END AS relay
FROM outbox o LEFT JOIN outbox_lease l USING (lease_id)
WHERE o.id = ?`

const textGetAttempts = `
SELECT attempt_id, message_id, life, attempt, relay, started_at, duration, outcome, status, error_class, error, answer
FROM outbox_attempt WHERE message_id = ? ORDER BY attempt_id`

const textGetPayload = `
SELECT payload AS text, NULL AS bytes FROM outbox WHERE id = ?`

const textLease = `
SELECT ` + sqlNow + ` AS now, l.relay, l.claimed_at, l.renewed_at, l.length FROM (SELECT 1) LEFT JOIN outbox_lease l ON l.lease_id = ?`
