package mysql

import (
	"time"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// inspector answers what people ask.
func (d *DB) inspector() *dialect.Inspector {
	return &dialect.Inspector{
		Read:   d.read,
		Write:  d.write,
		Render: func(text string) (string, error) { return render(text, d.schema) },
		Wrap:   wrap,
		Moment: func(t time.Time) any { return t.UTC() },
		Groups: d.groups,

		Operations: operationTexts(),
		Figures:    figureTexts(),
		Texts: dialect.Texts{
			Walk: walk, ErringFailed: erringFailed, ErringOldest: erringOldest, ErringNewest: erringNewest, ErringNext: erringNext, Passed: textPassed, Sent: textSent, Get: textGet, GetAttempts: textGetAttempts, GetPayload: textGetPayload, Lease: textLease,
			Waiting: textInFlight, Failed: textFailed, Relays: textRelays, Breakers: textBreakers, Peers: textPeers,
			NextGroup: nextGroup, GroupEnds: textGroupEnds,
		},
	}
}

const (
	lowestSeq  = "0"
	highestSeq = "9223372036854775807"
	never      = "1000-01-01 00:00:00" // of what did not happen
	notPending = "9999-12-31 00:00:00" // due_at of all that is not pending
)

// Sentinels are shown as NULL, and so are the blanks that a result is made longer with. A place is a derived table of one
// row, whose columns the servers treat as constants: its parts are named where they are needed, and bound once.
const (
	walked = `SELECT o.id, o.seq, o.state, o.routing_key, o.aggregateid, o.type, o.schema_version, o.attempts, o.lapses, o.created_at,
  NULLIF(o.due_at, TIMESTAMP'` + notPending + `') AS due_at, NULLIF(o.failed_at, TIMESTAMP'` + never + `') AS failed_at,
  NULLIF(o.resolved_at, TIMESTAMP'` + never + `') AS resolved_at, o.reason, o.error_class, NULLIF(RTRIM(o.result), '') AS result, COALESCE(NULLIF(o.failed_at, TIMESTAMP'` + never + `'), NULLIF(o.done_at, TIMESTAMP'` + never + `'), o.created_at) AS at, `

	// By the key.
	seqPlace      = `JSON_ARRAY(CAST(o.seq AS CHAR)) AS place FROM `
	walkAll       = walked + seqPlace + `/*schema.*/outbox o WHERE o.seq < CAST(? AS SIGNED) ORDER BY o.seq DESC LIMIT ?`
	walkAllOldest = walked + seqPlace + `/*schema.*/outbox o WHERE o.seq > CAST(? AS SIGNED) ORDER BY o.seq LIMIT ?`
	walkIDs       = walked + seqPlace + `JSON_TABLE(?, '$[*]' COLUMNS (id varchar(255) PATH '$')) j
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (outbox_id_key) ON o.id = CONVERT(j.id USING ascii) COLLATE ascii_bin
WHERE o.seq > CAST(? AS SIGNED) ORDER BY o.seq LIMIT ?`

	// In the order in which they are claimed, by outbox_due, in which those that are not pending stand at the end of each
	// group of routing key and lapses. A page that ends there is followed by one that begins with the next group. Only the
	// index is read of them. The wanted routing key is a range: of an equality MariaDB makes a constant, and then sorts all of
	// its messages.
	walkPending = `SELECT COALESCE(o.id, '') AS id, w.seq, COALESCE(o.state, '') AS state, w.routing_key, o.aggregateid,
  COALESCE(o.type, '') AS type, COALESCE(o.schema_version, 0) AS schema_version, COALESCE(o.attempts, 0) AS attempts, w.lapses,
  COALESCE(o.created_at, w.due_at) AS created_at, w.due_at, NULL AS failed_at, NULL AS resolved_at, o.reason, o.error_class,
  NULLIF(RTRIM(o.result), '') AS result, COALESCE(o.created_at, w.due_at) AS at,
  JSON_ARRAY(w.routing_key, CAST(w.lapses AS CHAR), CAST(w.due_at AS CHAR), CAST(w.seq AS CHAR)) AS place
FROM (SELECT i.routing_key, i.lapses, i.due_at, i.seq
  FROM (SELECT ? AS wanted, ? AS routing_key, CAST(? AS SIGNED) AS lapses, CAST(? AS DATETIME(6)) AS due_at, CAST(? AS SIGNED) AS seq) p
  STRAIGHT_JOIN /*schema.*/outbox i FORCE INDEX (outbox_due)
  WHERE (p.wanted = '' OR i.routing_key >= p.wanted AND i.routing_key <= p.wanted) AND (i.routing_key > p.routing_key
    OR i.routing_key = p.routing_key AND i.lapses > p.lapses
    OR i.routing_key = p.routing_key AND i.lapses = p.lapses AND i.due_at < TIMESTAMP'` + notPending + `'
      AND (i.due_at > p.due_at OR i.due_at = p.due_at AND i.seq > p.seq))
  ORDER BY i.routing_key, i.lapses, i.due_at, i.seq LIMIT ?) w
LEFT JOIN /*schema.*/outbox o ON o.seq = w.seq AND w.due_at < TIMESTAMP'` + notPending + `'
ORDER BY w.routing_key, w.lapses, w.due_at, w.seq`

	// By outbox_failed.
	byFailed = `JSON_ARRAY(CAST(o.failed_at AS CHAR), CAST(o.seq AS CHAR)) AS place
FROM (SELECT CAST(? AS DATETIME(6)) AS failed_at, CAST(? AS SIGNED) AS seq) p
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (outbox_failed) WHERE o.failed_at > TIMESTAMP'` + never + `' AND `
	walkFailed       = walked + byFailed + `(o.failed_at < p.failed_at OR o.failed_at = p.failed_at AND o.seq < p.seq) ORDER BY o.failed_at DESC, o.seq DESC LIMIT ?`
	walkFailedOldest = walked + byFailed + `(o.failed_at > p.failed_at OR o.failed_at = p.failed_at AND o.seq > p.seq) ORDER BY o.failed_at, o.seq LIMIT ?`

	// By the leases that hold them; one whose lease row is gone is not found here until a relay takes it back.
	inFlight = `/*schema.*/outbox_lease l STRAIGHT_JOIN JSON_TABLE(l.ids, '$[*]' COLUMNS (seq bigint PATH '$')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq AND o.lease_id = l.lease_id AND o.state = 'in_flight'`
	walkInFlight = walked + seqPlace + inFlight + ` WHERE o.seq > CAST(? AS SIGNED) ORDER BY o.seq LIMIT ?`
)

// walk picks the index that serves a filter. MariaDB numbers the rows of a derived table backwards where OVER names no
// order.
func walk(f relay.Filter, oldestFirst bool) dialect.Walk {
	switch {
	case len(f.IDs) > 0:
		return dialect.Walk{Query: walkIDs, Args: []any{list[string](f.IDs).String()}, Start: []string{lowestSeq}, Order: "seq"}
	case f.State == relay.Pending:
		return dialect.Walk{Query: walkPending, Args: []any{f.RoutingKey}, Start: []string{"", "-1", never, lowestSeq}, Order: "routing_key, lapses, due_at, seq"}
	case f.State == relay.InFlight:
		return dialect.Walk{Query: walkInFlight, Start: []string{lowestSeq}, Order: "seq"}
	case f.State == relay.Failed && oldestFirst:
		return dialect.Walk{Query: walkFailedOldest, Start: []string{never, lowestSeq}, Order: "failed_at, seq"}
	case f.State == relay.Failed:
		return dialect.Walk{Query: walkFailed, Start: []string{notPending, highestSeq}, Order: "failed_at DESC, seq DESC"}
	case oldestFirst:
		return dialect.Walk{Query: walkAllOldest, Start: []string{lowestSeq}, Order: "seq"}
	}
	return dialect.Walk{Query: walkAll, Start: []string{highestSeq}, Order: "seq DESC"}
}

// An id in another character set than the column's would be looked for without the index.
const textGet = `
SELECT o.id, o.aggregatetype, o.aggregateid, o.type, o.content_type, o.schema_version, o.headers, o.traceparent, o.routing_key, o.seq, o.state,
  NULLIF(o.due_at, TIMESTAMP'` + notPending + `') AS due_at, o.expires_at, o.lease_id, o.attempts, o.lapses, o.replays,
  NULLIF(o.unknown_since, TIMESTAMP'` + never + `') AS unknown_since, o.send_id, o.created_at,
  NULLIF(o.done_at, TIMESTAMP'` + never + `') AS done_at, NULLIF(o.failed_at, TIMESTAMP'` + never + `') AS failed_at,
  NULLIF(o.resolved_at, TIMESTAMP'` + never + `') AS resolved_at, o.reason, o.error_class, o.last_error, NULLIF(RTRIM(o.result), '') AS result, l.relay
FROM /*schema.*/outbox o LEFT JOIN /*schema.*/outbox_lease l ON l.lease_id = o.lease_id AND o.state = 'in_flight'
WHERE o.id = CONVERT(? USING ascii) COLLATE ascii_bin`

const textGetAttempts = `
SELECT attempt_id, message_id, life, attempt, relay, started_at, duration, outcome, status, error_class, error, answer
FROM /*schema.*/outbox_attempt WHERE message_id = CONVERT(? USING ascii) COLLATE ascii_bin ORDER BY attempt_id`

const textGetPayload = `
SELECT NULL AS text, payload AS bytes FROM /*schema.*/outbox WHERE id = CONVERT(? USING ascii) COLLATE ascii_bin`

const textLease = `
SELECT UTC_TIMESTAMP(6) AS now, l.relay, l.claimed_at, l.renewed_at, l.length
FROM (SELECT 1) one LEFT JOIN /*schema.*/outbox_lease l ON l.lease_id = ?`
