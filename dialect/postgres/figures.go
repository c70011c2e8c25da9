package postgres

import "github.com/outboxd/outboxd/dialect"

func figureTexts() dialect.FigureTexts {
	return dialect.FigureTexts{
		Depths: textDepths, DepthParts: depthParts, InFlight: textFlying, Failed: textUnresolved, Lapsed: textLapsed, Snapshot: textSnapshot,
		Duty: textDuty, LockDuty: textDuty + " FOR NO KEY UPDATE", AddDuty: textAddDuty, WriteDuty: textWriteDuty,
	}
}

// The claim index has an order for each value of lapses, so each is walked apart, with no sort.
const textDepths = `
SELECT lapses, type, count(*) AS pending, count(*) FILTER (WHERE due_at <= now()) AS due,
  (extract(epoch FROM now() - min(due_at)) * 1000000)::bigint AS oldest
FROM (` + depthOf + `= 0` + depthLimit + ` UNION ALL ` + depthOf + `= 1` + depthLimit + ` UNION ALL ` + depthOf + `= 2` + depthLimit +
	` UNION ALL ` + depthOf + `= 3` + depthLimit + ` UNION ALL ` + depthOf + `> 3` + depthLimit + `) m
GROUP BY lapses, type`

const (
	depthOf = `
  (SELECT least(lapses, 4) AS lapses, type, due_at FROM /*schema.*/outbox WHERE routing_key = ?::text AND due_at IS NOT NULL AND lapses `
	depthLimit = ` ORDER BY outbox.lapses, due_at, seq LIMIT ?::int)`
	depthParts = 5
)

// Each message is found by its key: LIMIT 1 keeps the planner from making a join of it, which could read the whole table.
const textFlying = `
SELECT coalesce(m.type, '') AS type, count(*) AS messages
FROM (SELECT lease_id, unnest(ids) AS id FROM /*schema.*/outbox_lease LIMIT ?::int) l
LEFT JOIN LATERAL (
  SELECT type FROM /*schema.*/outbox o WHERE o.id = l.id AND o.lease_id = l.lease_id AND o.state = 'in_flight' LIMIT 1) m ON true
GROUP BY m.type`

// By outbox_unresolved, which holds nothing else.
const textUnresolved = `
SELECT type, reason, count(*) AS messages FROM (
  SELECT type, reason FROM /*schema.*/outbox
  WHERE failed_at IS NOT NULL AND resolved_at IS NULL ORDER BY failed_at DESC LIMIT ?::int) f
GROUP BY type, reason`

const textLapsed = `
SELECT (extract(epoch FROM now() - ends) * 1000000)::bigint FROM (
  SELECT renewed_at + length AS ends FROM /*schema.*/outbox_lease LIMIT ?::int) l ORDER BY ends LIMIT 1`

// What keeps dead rows of this database from being removed: transactions that look or that write, and prepared ones. Of
// other roles they can be seen by members of pg_monitor only.
const textSnapshot = `
SELECT CASE WHEN pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') THEN (extract(epoch FROM greatest(
  (SELECT now() - min(xact_start) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type <> 'autovacuum worker'
      AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)),
  (SELECT now() - min(prepared) FROM pg_prepared_xacts WHERE database = current_database()),
  interval '0')) * 1000000)::bigint END`

const textDuty = `
SELECT coalesce(value, '') AS value, epoch FROM /*schema.*/outbox_control WHERE kind = ?::text AND name = ?::text AND owner = ''`

const textAddDuty = `
INSERT INTO /*schema.*/outbox_control (value, epoch, kind, name) VALUES (?::text, ?::bigint, ?::text, ?::text)`

const textWriteDuty = `
UPDATE /*schema.*/outbox_control SET value = ?::text, epoch = ?::bigint, updated_at = clock_timestamp()
WHERE kind = ?::text AND name = ?::text AND owner = ''`
