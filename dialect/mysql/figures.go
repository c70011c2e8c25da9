package mysql

import "github.com/outboxd/outboxd/dialect"

func figureTexts() dialect.FigureTexts {
	return dialect.FigureTexts{
		Depths: textDepths, DepthParts: depthParts, InFlight: textFlying, Failed: textUnresolved, Lapsed: textLapsed, Snapshot: textSnapshot,
		Duty: textDuty, LockDuty: textDuty + " FOR UPDATE", AddDuty: textAddDuty, WriteDuty: textWriteDuty,
	}
}

// The claim index has an order for each value of lapses, so each is walked apart, with no sort. Messages that are not pending
// stand behind each value's; those of more than 4 are walked, too, but for a relay that dies each time just before it fails a
// message there are none.
const textDepths = `
SELECT lapses, type, COUNT(*) AS pending, CAST(SUM(due_at <= UTC_TIMESTAMP(6)) AS SIGNED) AS due,
  TIMESTAMPDIFF(MICROSECOND, MIN(due_at), UTC_TIMESTAMP(6)) AS oldest
FROM (` + depthOf + `= 0` + depthLimit + ` UNION ALL ` + depthOf + `= 1` + depthLimit + ` UNION ALL ` + depthOf + `= 2` + depthLimit +
	` UNION ALL ` + depthOf + `= 3` + depthLimit + ` UNION ALL ` + depthOf + `= 4` + depthLimit + ` UNION ALL ` + depthOf + `> 4` + depthLimit + `) m
GROUP BY lapses, type`

const (
	depthOf = `
  (SELECT LEAST(o.lapses, 5) AS lapses, o.type, o.due_at FROM /*schema.*/outbox o FORCE INDEX (outbox_due)
    WHERE o.routing_key = ? AND o.due_at < TIMESTAMP'` + notPending + `' AND o.lapses `
	depthLimit = ` ORDER BY o.lapses, o.due_at, o.seq LIMIT ?)`
	depthParts = 6
)

const textFlying = `
SELECT COALESCE(o.type, '') AS type, COUNT(*) AS messages
FROM (SELECT l.lease_id, s.seq FROM /*schema.*/outbox_lease l STRAIGHT_JOIN JSON_TABLE(l.ids, '$[*]' COLUMNS (seq bigint PATH '$')) s LIMIT ?) l
LEFT JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = l.seq AND o.lease_id = l.lease_id AND o.state = 'in_flight'
GROUP BY o.type`

// By outbox_unresolved.
const textUnresolved = `
SELECT o.type, o.reason, COUNT(*) AS messages
FROM (SELECT seq FROM /*schema.*/outbox FORCE INDEX (outbox_unresolved)
  WHERE resolved_at = TIMESTAMP'` + never + `' AND failed_at > TIMESTAMP'` + never + `' ORDER BY failed_at DESC LIMIT ?) f
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = f.seq
GROUP BY o.type, o.reason`

const textLapsed = `
SELECT TIMESTAMPDIFF(MICROSECOND, ends, UTC_TIMESTAMP(6)) FROM (
  SELECT renewed_at + INTERVAL length MICROSECOND AS ends FROM /*schema.*/outbox_lease LIMIT ?) l ORDER BY ends LIMIT 1`

// trx_started is of the server's own time zone. The role needs the right PROCESS.
const textSnapshot = `
SELECT COALESCE(TIMESTAMPDIFF(MICROSECOND, CONVERT_TZ(MIN(trx_started), 'SYSTEM', '+00:00'), UTC_TIMESTAMP()), 0) AS snapshot
FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id <> CONNECTION_ID()`

const textDuty = `
SELECT COALESCE(value, '') AS value, epoch FROM /*schema.*/outbox_control WHERE kind = ? AND name = ? AND owner = ''`

const textAddDuty = `INSERT INTO /*schema.*/outbox_control (value, epoch, kind, name) VALUES (?, ?, ?, ?)`

const textWriteDuty = `
UPDATE /*schema.*/outbox_control SET value = ?, epoch = ?, updated_at = UTC_TIMESTAMP(6)
WHERE kind = ? AND name = ? AND owner = ''`
