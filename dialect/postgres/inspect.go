package postgres

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// inspector answers what people ask.
func (d *DB) inspector() *dialect.Inspector {
	return &dialect.Inspector{
		Read: d.read,
		Write: func(ctx context.Context, f func(sqlx.ExtContext) error) error {
			return d.transaction(ctx, d.work, func(tx *sqlx.Tx) error { return f(tx) })
		},
		Render: func(text string) (string, error) {
			text, err := render(text, d.schema)
			return sqlx.Rebind(sqlx.DOLLAR, text), err
		},
		Wrap:   wrap,
		Moment: func(t time.Time) any { return t },
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
	lowestUUID  = "00000000-0000-0000-0000-000000000000"
	highestUUID = "ffffffff-ffff-ffff-ffff-ffffffffffff"
)

const (
	walked = `SELECT ` + dialect.ListedFields + `, coalesce(failed_at, done_at, created_at) AS at, `
	// By the key.
	walkAll       = walked + `json_build_array(id::text)::text AS place FROM /*schema.*/outbox WHERE id < ?::uuid ORDER BY id DESC LIMIT ?::int`
	walkAllOldest = walked + `json_build_array(id::text)::text AS place FROM /*schema.*/outbox WHERE id > ?::uuid ORDER BY id LIMIT ?::int`
	walkIDs       = walked + `json_build_array(id::text)::text AS place FROM /*schema.*/outbox
WHERE id = ANY (?::uuid[]) AND id > ?::uuid ORDER BY id LIMIT ?::int`

	// In the order in which they are claimed, by outbox_due. The first condition keeps other routing keys out of the bound.
	walkPending = walked + `json_build_array(routing_key, lapses::text, due_at::text, seq::text)::text AS place FROM /*schema.*/outbox
WHERE due_at IS NOT NULL AND (?::text = '' OR routing_key = ?)
  AND (routing_key, lapses, due_at, seq) > (?::text, ?::int, ?::timestamptz, ?::bigint)
ORDER BY routing_key, lapses, due_at, seq LIMIT ?::int`

	// By outbox_failed.
	walkFailed = walked + `json_build_array(failed_at::text, id::text)::text AS place FROM /*schema.*/outbox
WHERE failed_at IS NOT NULL AND (failed_at, id) < (?::timestamptz, ?::uuid) ORDER BY failed_at DESC, id DESC LIMIT ?::int`
	walkFailedOldest = walked + `json_build_array(failed_at::text, id::text)::text AS place FROM /*schema.*/outbox
WHERE failed_at IS NOT NULL AND (failed_at, id) > (?::timestamptz, ?::uuid) ORDER BY failed_at, id LIMIT ?::int`

	// By the leases that hold them; one whose lease row is gone is not found here until a relay takes it back.
	walkInFlight = walked + `json_build_array(id::text)::text AS place FROM /*schema.*/outbox
WHERE id = ANY (ARRAY(SELECT unnest(ids) FROM /*schema.*/outbox_lease)) AND id > ?::uuid ORDER BY id LIMIT ?::int`
)

// walk picks the index that serves a filter.
func walk(f relay.Filter, oldestFirst bool) dialect.Walk {
	switch {
	case len(f.IDs) > 0:
		return dialect.Walk{Query: walkIDs, Args: []any{pq.StringArray(f.IDs)}, Start: []string{lowestUUID}}
	case f.State == relay.Pending:
		return dialect.Walk{Query: walkPending, Args: []any{f.RoutingKey, f.RoutingKey}, Start: []string{"", "-1", "-infinity", "0"}}
	case f.State == relay.InFlight:
		return dialect.Walk{Query: walkInFlight, Start: []string{lowestUUID}}
	case f.State == relay.Failed && oldestFirst:
		return dialect.Walk{Query: walkFailedOldest, Start: []string{"-infinity", lowestUUID}}
	case f.State == relay.Failed:
		return dialect.Walk{Query: walkFailed, Start: []string{"infinity", highestUUID}}
	case oldestFirst:
		return dialect.Walk{Query: walkAllOldest, Start: []string{lowestUUID}}
	}
	return dialect.Walk{Query: walkAll, Start: []string{highestUUID}}
}

const textGet = `
SELECT o.id, aggregatetype, aggregateid, type, content_type, schema_version, headers, traceparent, routing_key, seq, state, due_at,
  expires_at, o.lease_id, attempts, lapses, replays, unknown_since, send_id, created_at, done_at, failed_at, resolved_at, reason,
  error_class, last_error, result, CASE WHEN state = 'in_flight' THEN l.relay END AS relay
FROM /*schema.*/outbox o LEFT JOIN /*schema.*/outbox_lease l USING (lease_id)
WHERE o.id = ?::uuid`

const textGetAttempts = `
SELECT attempt_id, message_id, life, attempt, relay, started_at, (extract(epoch FROM duration) * 1000000)::bigint AS duration,
  outcome, status, error_class, error, answer
FROM /*schema.*/outbox_attempt WHERE message_id = ?::uuid ORDER BY attempt_id`

const textGetPayload = `SELECT payload AS text, payload_bytes AS bytes FROM /*schema.*/outbox WHERE id = ?::uuid`

const textLease = `
SELECT clock_timestamp() AS now, l.relay, l.claimed_at, l.renewed_at, (extract(epoch FROM l.length) * 1000000)::bigint AS length
FROM (SELECT 1) one LEFT JOIN /*schema.*/outbox_lease l ON l.lease_id = ?::bigint`
