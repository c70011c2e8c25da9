package dialect

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Status is how the outbox is doing. Nothing in it counts the whole table.
type Status struct {
	Relays   []RelayStatus   `json:"relays"`
	Waiting  []Waits         `json:"waiting"`
	Failed   []FailedCount   `json:"failed"` // unresolved ones
	Breakers []BreakerStatus `json:"breakers"`
}

// RelayStatus is a row of outbox_relay.
type RelayStatus struct {
	Name         string    `json:"name"`
	Host         string    `json:"host"`
	Version      string    `json:"version"`
	ConfigHash   string    `json:"config_hash"`
	Destinations []string  `json:"destinations"`
	StartedAt    time.Time `json:"started_at"`
	SeenFor      Age       `json:"seen_for"` // since seen_at
}

// Waits are messages that are not final, by what they wait for.
type Waits struct {
	RoutingKey string `json:"routing_key"`
	Why        Why    `json:"why"`
	Messages   int    `json:"messages"`
	More       bool   `json:"more"`   // only so many were counted, there are more
	Oldest     Age    `json:"oldest"` // of Due: for how long the oldest has been due; of the others since it was created
}

// Why says what a message waits for.
type Why string

// What a message that is not final can wait for.
const (
	Due      Why = "due"       // a relay that takes it
	Delayed  Why = "delayed"   // the time that the application set
	Retrying Why = "retrying"  // its next try
	Paused   Why = "paused"    // somebody to resume it
	NoPolicy Why = "no_policy" // a configuration that accepts its type and version
	InFlight Why = "in_flight" // the outcome of its send
)

// FailedCount counts unresolved failed messages of a kind.
type FailedCount struct {
	RoutingKey string  `json:"routing_key"`
	Type       string  `json:"type"`
	Reason     string  `json:"reason"`
	ErrorClass *string `json:"error_class"`
	Messages   int     `json:"messages"`
	More       bool    `json:"more"`   // only the last ones were counted, there are more
	Latest     Age     `json:"latest"` // since the last one failed
}

// BreakerStatus is a breaker as its relay last told.
type BreakerStatus struct {
	Relay     string `json:"relay"`
	Name      string `json:"name"`  // destination, or destination/routing_key
	State     string `json:"state"` // ok, open or ramp
	Width     int    `json:"width"`
	Failures  int    `json:"failures"`
	LastError string `json:"last_error"`
	Age       Age    `json:"age"` // since its relay told so
}

// countBound is how many messages are counted of each routing key and number of lapses, and of failed ones in all.
const countBound = 10000

// A loose index scan finds the pairs of routing key and lapses, so that each is counted by a bounded walk of outbox_due
// that begins at the oldest. $1 countBound.
const statusWaiting = `
WITH RECURSIVE pairs AS (
  (SELECT routing_key, lapses FROM /*schema.*/outbox WHERE due_at IS NOT NULL ORDER BY routing_key, lapses LIMIT 1)
  UNION ALL
  SELECT n.routing_key, n.lapses FROM pairs p CROSS JOIN LATERAL (
    SELECT routing_key, lapses FROM /*schema.*/outbox
    WHERE due_at IS NOT NULL AND (routing_key, lapses) > (p.routing_key, p.lapses) ORDER BY routing_key, lapses LIMIT 1) n),
seen AS (
  SELECT m.*, row_number() OVER (PARTITION BY p.routing_key, p.lapses) > $1::int AS beyond
  FROM pairs p CROSS JOIN LATERAL (
    SELECT routing_key, created_at, due_at, lease_id, error_class FROM /*schema.*/outbox
    WHERE routing_key = p.routing_key AND lapses = p.lapses AND due_at IS NOT NULL ORDER BY due_at, seq LIMIT $1::int + 1) m),
told AS (
  SELECT routing_key, beyond, CASE WHEN due_at <= now() THEN 'due' WHEN error_class IN ('paused', 'no_policy') THEN error_class
      WHEN lease_id = 0 THEN 'delayed' ELSE 'retrying' END AS why,
    CASE WHEN due_at <= now() THEN due_at ELSE created_at END AS since
  FROM seen
  UNION ALL
  SELECT routing_key, false, 'in_flight', created_at FROM /*schema.*/outbox
  WHERE id = ANY (ARRAY(SELECT unnest(ids) FROM /*schema.*/outbox_lease)) AND state = 'in_flight')
SELECT routing_key, why, count(*) FILTER (WHERE NOT beyond) AS messages, bool_or(beyond) AS more,
  (extract(epoch FROM clock_timestamp() - min(since)) * 1000000)::bigint AS oldest
FROM told GROUP BY routing_key, why HAVING count(*) FILTER (WHERE NOT beyond) > 0 ORDER BY routing_key, why`

// The last countBound that failed, by outbox_failed. $1 countBound.
const statusFailed = `
WITH seen AS (
  SELECT routing_key, type, reason, error_class, failed_at, resolved_at, row_number() OVER () > $1::int AS beyond FROM (
    SELECT routing_key, type, reason, error_class, failed_at, resolved_at FROM /*schema.*/outbox
    WHERE failed_at IS NOT NULL ORDER BY failed_at DESC LIMIT $1::int + 1) f)
SELECT routing_key, type, reason, error_class, count(*) AS messages, (SELECT bool_or(beyond) FROM seen) AS more,
  (extract(epoch FROM clock_timestamp() - max(failed_at)) * 1000000)::bigint AS latest
FROM seen WHERE resolved_at IS NULL AND NOT beyond
GROUP BY routing_key, type, reason, error_class ORDER BY messages DESC, routing_key, type, reason, error_class`

const statusRelays = `
SELECT name, host, version, config_hash, array_to_json(destinations)::text AS served, started_at,
  (extract(epoch FROM clock_timestamp() - seen_at) * 1000000)::bigint AS seen_for
FROM /*schema.*/outbox_relay ORDER BY name`

const statusBreakers = `
SELECT owner AS relay, name, value, (extract(epoch FROM clock_timestamp() - updated_at) * 1000000)::bigint AS age
FROM /*schema.*/outbox_control WHERE kind = 'breaker' ORDER BY name, owner`

// Status looks at relays, waiting and failed messages, and breakers.
func (d *DB) Status(ctx context.Context) (s Status, err error) {
	if s.Relays, err = d.relays(ctx); err != nil {
		return s, err
	}
	if s.Waiting, err = d.Waiting(ctx); err != nil {
		return s, err
	}
	s.Failed = []FailedCount{}
	if err = d.selectAll(ctx, "status of failed messages", &s.Failed, statusFailed, countBound); err != nil {
		return s, err
	}
	s.Breakers, err = d.breakers(ctx)
	return s, err
}

// Waiting tells which messages are not final, and why: by routing key, at most countBound of each kind are counted.
func (d *DB) Waiting(ctx context.Context) ([]Waits, error) {
	waits := []Waits{}
	return waits, d.selectAll(ctx, "status of waiting messages", &waits, statusWaiting, countBound)
}

func (d *DB) relays(ctx context.Context) ([]RelayStatus, error) {
	var found []struct {
		RelayStatus
		Served string
	}
	err := d.selectAll(ctx, "status of relays", &found, statusRelays)
	relays := make([]RelayStatus, 0, len(found))
	for _, f := range found {
		if err := json.Unmarshal([]byte(f.Served), &f.Destinations); err != nil {
			return nil, fmt.Errorf("destinations of relay %s: %w", f.Name, err)
		}
		relays = append(relays, f.RelayStatus)
	}
	return relays, err
}

func (d *DB) breakers(ctx context.Context) ([]BreakerStatus, error) {
	var found []struct {
		BreakerStatus
		Value string
	}
	err := d.selectAll(ctx, "status of breakers", &found, statusBreakers)
	breakers := make([]BreakerStatus, 0, len(found))
	for _, f := range found {
		if json.Unmarshal([]byte(f.Value), &f.BreakerStatus) != nil {
			f.State = "unreadable" // Somebody wrote into the row.
		}
		breakers = append(breakers, f.BreakerStatus)
	}
	return breakers, err
}
