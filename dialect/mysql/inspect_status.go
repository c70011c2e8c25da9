package mysql

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
)

// Of one group of routing key and lapses, the first dialect.CountBound pending messages. Each group is a query of its own,
// since only a range between constants ends where the pending ones end: an index of these servers has all messages in it.
// Arguments: routing key, routing key, lapses.
const textWaiting = `
SELECT CONVERT(? USING utf8mb4) AS routing_key, why, CAST(SUM(NOT beyond) AS SIGNED) AS messages, MAX(beyond) AS more,
  TIMESTAMPDIFF(MICROSECOND, MIN(since), UTC_TIMESTAMP(6)) AS oldest
FROM (
  SELECT CASE WHEN due_at <= UTC_TIMESTAMP(6) THEN 'due' WHEN error_class IN ('paused', 'no_policy') THEN error_class
      WHEN lease_id = 0 THEN 'delayed' ELSE 'retrying' END AS why,
    CASE WHEN due_at <= UTC_TIMESTAMP(6) THEN due_at ELSE created_at END AS since, ROW_NUMBER() OVER (ORDER BY due_at, seq) > 10000 AS beyond
  FROM (
    SELECT due_at, seq, created_at, error_class, lease_id FROM /*schema.*/outbox FORCE INDEX (outbox_due)
    WHERE routing_key = ? AND lapses = ? AND due_at < TIMESTAMP'` + notPending + `' ORDER BY lapses, due_at, seq LIMIT 10001) m) told
GROUP BY why HAVING SUM(NOT beyond) > 0`

const textInFlight = `
SELECT o.routing_key, 'in_flight' AS why, COUNT(*) AS messages, FALSE AS more,
  TIMESTAMPDIFF(MICROSECOND, MIN(o.created_at), UTC_TIMESTAMP(6)) AS oldest
FROM ` + inFlight + ` GROUP BY o.routing_key`

// The last dialect.CountBound that failed and that nobody has resolved, by outbox_unresolved.
const textFailed = `
WITH seen AS (
  SELECT routing_key, type, reason, error_class, failed_at, ROW_NUMBER() OVER (ORDER BY failed_at DESC) > 10000 AS beyond FROM (
    SELECT routing_key, type, reason, error_class, failed_at FROM /*schema.*/outbox FORCE INDEX (outbox_unresolved)
    WHERE resolved_at = TIMESTAMP'` + never + `' AND failed_at > TIMESTAMP'` + never + `' ORDER BY failed_at DESC LIMIT 10001) f)
SELECT routing_key, type, reason, error_class, COUNT(*) AS messages, (SELECT MAX(beyond) FROM seen) AS more,
  TIMESTAMPDIFF(MICROSECOND, MAX(failed_at), UTC_TIMESTAMP(6)) AS latest
FROM seen WHERE NOT beyond
GROUP BY routing_key, type, reason, error_class ORDER BY messages DESC, routing_key, type, reason, error_class`

const textRelays = `
SELECT name, host, version, config_hash, instance, destinations AS served, started_at,
  TIMESTAMPDIFF(MICROSECOND, seen_at, UTC_TIMESTAMP(6)) AS seen_for
FROM /*schema.*/outbox_relay ORDER BY name`

const textPeers = `SELECT name, CAST(seen_at AS CHAR) AS seen, destinations AS served FROM /*schema.*/outbox_relay ORDER BY name`

const textBreakers = `
SELECT owner AS relay, name, COALESCE(value, '') AS value, TIMESTAMPDIFF(MICROSECOND, updated_at, UTC_TIMESTAMP(6)) AS age
FROM /*schema.*/outbox_control WHERE kind = 'breaker' ORDER BY name, owner`

// Status looks at relays, waiting and failed messages, and breakers.
func (d *DB) Status(ctx context.Context) (dialect.Status, error) {
	s, err := d.Inspector.Status(ctx)
	if err == nil {
		s.Waiting, err = d.Waiting(ctx)
	}
	return s, err
}

// Waiting tells which messages are not final, and why: by routing key, at most dialect.CountBound of each kind are counted.
func (d *DB) Waiting(ctx context.Context) ([]dialect.Waits, error) {
	waits, err := d.Inspector.Waiting(ctx) // what is in flight
	if err != nil {
		return nil, err
	}
	count, err := render(textWaiting, d.schema)
	if err != nil {
		return nil, err
	}
	err = d.Read(ctx, func(q sqlx.ExtContext) error {
		return d.eachGroup(ctx, q, "", func(g dialect.Group) error {
			var counted []dialect.Waits
			err := sqlx.SelectContext(ctx, q, &counted, count, g.RoutingKey, g.RoutingKey, g.Lapses)
			waits = append(waits, counted...)
			return err
		})
	})
	return merge(waits), wrap("status of waiting messages", err)
}

// eachGroup calls f for each group of which a message is pending, in the order of outbox_due: of one routing key, or with ""
// of all.
func (d *DB) eachGroup(ctx context.Context, q sqlx.ExtContext, only string, f func(dialect.Group) error) error {
	next, err := render(sqlRoutingKeys, d.schema)
	if err != nil {
		return err
	}
	last := dialect.Group{RoutingKey: only, Lapses: math.MaxInt32}
	if only != "" {
		last.Lapses = -1
	}
	for {
		var found []struct {
			dialect.Group
			Pending bool
		}
		if err := sqlx.SelectContext(ctx, q, &found, next, last.RoutingKey, last.Lapses, last.RoutingKey); err != nil || len(found) == 0 {
			return err
		}
		last = found[0].Group
		if only != "" && last.RoutingKey != only {
			return nil
		}
		if !found[0].Pending {
			continue
		}
		if err := f(last); err != nil {
			return err
		}
	}
}

// merge puts the counts of a routing key's groups together.
func merge(waits []dialect.Waits) []dialect.Waits {
	type kind struct {
		routingKey string
		why        dialect.Why
	}
	merged := map[kind]dialect.Waits{}
	for _, w := range waits {
		k := kind{w.RoutingKey, w.Why}
		if have, ok := merged[k]; ok {
			w.Messages += have.Messages
			w.More = w.More || have.More
			w.Oldest = max(w.Oldest, have.Oldest)
		}
		merged[k] = w
	}
	sorted := slices.AppendSeq([]dialect.Waits{}, maps.Values(merged))
	slices.SortFunc(sorted, func(a, b dialect.Waits) int {
		return cmp.Or(cmp.Compare(a.RoutingKey, b.RoutingKey), cmp.Compare(a.Why, b.Why))
	})
	return sorted
}
