package sqlite

import "github.com/outboxd/outboxd/dialect"

// figureTexts lock nothing: a transaction that writes has the file to itself.
func figureTexts() dialect.FigureTexts {
	return dialect.FigureTexts{
		Depths: textDepths, DepthParts: depthParts, InFlight: textFlying, Failed: textUnresolved, Lapsed: textLapsed, Snapshot: textSnapshot,
		Duty: textDuty, LockDuty: textDuty, AddDuty: textAddDuty, WriteDuty: textWriteDuty,
	}
}

// The claim index has an order for each value of lapses, so each is walked apart, with no sort.
const textDepths = `
SELECT lapses, type, count(*) AS pending, sum(due_at <= ` + sqlNow + `) AS due, ` + sqlNow + ` - min(due_at) AS oldest
FROM (` + depthOf + `= 0` + depthLimit + ` UNION ALL ` + depthOf + `= 1` + depthLimit + ` UNION ALL ` + depthOf + `= 2` + depthLimit +
	` UNION ALL ` + depthOf + `= 3` + depthLimit + ` UNION ALL ` + depthOf + `> 3` + depthLimit + `) m
GROUP BY lapses, type`

const (
	depthOf = `
  SELECT * FROM (SELECT min(o.lapses, 4) AS lapses, o.type, o.due_at FROM outbox o INDEXED BY outbox_due
    WHERE o.routing_key = ? AND o.due_at IS NOT NULL AND o.lapses `
	depthLimit = ` ORDER BY o.lapses, o.due_at, o.seq LIMIT ?)`
	depthParts = 5
)

// Messages are looked up one by one, so that it does not depend on what ANALYZE last saw.
const textFlying = `
SELECT coalesce(type, '') AS type, count(*) AS messages FROM (
  SELECT (SELECT o.type FROM outbox o WHERE o.seq = l.seq AND o.lease_id = l.lease_id AND o.state = 'in_flight') AS type
  FROM (SELECT l.lease_id, j.value AS seq FROM outbox_lease l CROSS JOIN json_each(l.ids) AS j LIMIT ?) l)
GROUP BY type`

// By outbox_unresolved, which holds nothing else.
const textUnresolved = `
SELECT type, reason, count(*) AS messages FROM (
  SELECT type, reason FROM outbox INDEXED BY outbox_unresolved
  WHERE failed_at IS NOT NULL AND resolved_at IS NULL ORDER BY failed_at DESC LIMIT ?)
GROUP BY type, reason`

const textLapsed = `
SELECT ` + sqlNow + ` - ends FROM (SELECT renewed_at + length AS ends FROM outbox_lease LIMIT ?) ORDER BY ends LIMIT 1`

// SQLite does not say who reads since when.
const textSnapshot = `SELECT NULL`

const textDuty = `SELECT coalesce(value, '') AS value, epoch FROM outbox_control WHERE kind = ? AND name = ? AND owner = ''`

const textAddDuty = `INSERT INTO outbox_control (value, epoch, kind, name) VALUES (?, ?, ?, ?)`

const textWriteDuty = `
UPDATE outbox_control SET value = ?, epoch = ?, updated_at = ` + sqlNow + ` WHERE kind = ? AND name = ? AND owner = ''`
