package mysql

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// write runs a short transaction that people or operations ask for.
func (d *DB) write(ctx context.Context, f func(sqlx.ExtContext) error) error {
	return d.transaction(ctx, d.work, func(tx *sqlx.Tx) error { return f(tx) })
}

func operationTexts() dialect.OperationTexts {
	return dialect.OperationTexts{
		Open: textOpen, Lock: textLock, Advance: textAdvance,
		Corrections: func(operation string) dialect.Walk {
			return dialect.Walk{Query: walkCorrections, Args: []any{operation}, Start: []string{""}, Order: "id"}
		},
		Candidates: textCandidates, LockCandidates: textCandidates + ` FOR UPDATE SKIP LOCKED`,
		Keys: func(messages []relay.Candidate) any {
			seqs := make([]int64, len(messages))
			for i, m := range messages {
				seqs[i] = m.Seq
			}
			return seqs
		},
		Changed: textChanged, KeepPayload: textKeepPayload, Correct: textCorrect, Revive: textRevive,
		Hasten: textHasten, Withdraw: textWithdraw, Resolve: textResolve, Tell: textTell,
		Pauses: textPauses, Paused: textPaused, Pause: textPause, Resume: textResume,
		Instance: textInstance, KeepInstance: textKeepInstance, SetInstance: textSetInstance, Did: textDid,
		Ask: textAsk, AskSoon: textAskSoon, Get: textGetOperation, List: textListOperations,
		CountCorrections: textCountCorrections, Payloads: textPayloads,
		AddCorrections: textAddCorrections, AddCorrection: `(?, ?, ?, ?)`,
		Body:    func(payload []byte) []any { return []any{payload} },
		OldBody: func(old dialect.Payload) []any { return []any{old.Content()} },
	}
}

const nowMicros = `TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6)) AS now`

const textOpen = `
SELECT id, op, filter, actor, COALESCE(note, '') AS note, dry_run <> 0 AS dry_run FROM /*schema.*/outbox_operation
WHERE applied_at IS NULL AND requested_at <= UTC_TIMESTAMP(6)
ORDER BY op IN ('pause', 'resume') DESC, requested_at, id LIMIT 1000`

const textLock = `
SELECT COALESCE(progress, '') AS progress, COALESCE(affected, 0) AS affected, COALESCE(detail, '') AS detail, ` + nowMicros + `
FROM /*schema.*/outbox_operation WHERE id = ? AND applied_at IS NULL FOR UPDATE SKIP LOCKED`

const textAdvance = `
UPDATE /*schema.*/outbox_operation SET progress = ?, affected = ?, detail = NULLIF(?, ''), applier = ?, applied_at = IF(?, UTC_TIMESTAMP(6), NULL)
WHERE id = ?`

const walkCorrections = walked + `JSON_ARRAY(c.id) AS place FROM /*schema.*/outbox_correction c FORCE INDEX (PRIMARY)
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (outbox_id_key) ON o.id = c.id
WHERE c.operation_id = CONVERT(? USING ascii) COLLATE ascii_bin AND c.id > CONVERT(? USING ascii) COLLATE ascii_bin ORDER BY c.id LIMIT ?`

const textCandidates = `
SELECT id, seq, routing_key, type, state, COALESCE(reason, '') AS reason, COALESCE(error_class, '') AS error_class, lease_id,
  due_at <= UTC_TIMESTAMP(6) AS due, resolved_at > TIMESTAMP'1000-01-01 00:00:00' AS resolved,
  attempts > 0 OR EXISTS (SELECT 1 FROM /*schema.*/outbox_attempt a WHERE a.message_id = o.id AND a.life = o.replays) AS went,
  GREATEST(failed_at, done_at, COALESCE((SELECT MAX(started_at + INTERVAL duration MICROSECOND)
      FROM /*schema.*/outbox_attempt a WHERE a.message_id = o.id), failed_at))
    > COALESCE((SELECT requested_at FROM /*schema.*/outbox_operation p WHERE p.id = ?),
    TIMESTAMP'9999-12-31 00:00:00') AS late,
  TIMESTAMPDIFF(MICROSECOND, NULLIF(unknown_since, TIMESTAMP'1000-01-01 00:00:00'), UTC_TIMESTAMP(6)) AS unknown_for
FROM /*schema.*/outbox o FORCE INDEX (PRIMARY) WHERE seq IN (?) ORDER BY seq`

const textChanged = `
SELECT o.id FROM /*schema.*/outbox o FORCE INDEX (PRIMARY)
STRAIGHT_JOIN /*schema.*/outbox_correction c FORCE INDEX (PRIMARY) ON c.operation_id = ? AND c.id = o.id
WHERE o.seq IN (?) AND c.old_payload <> COALESCE(o.payload, '')`

// What writes begins with messages that are locked already, by their key: it waits for nobody.
const textKeepPayload = corrected + `SET c.old_payload = o.payload WHERE o.seq IN (?)`

const textCorrect = corrected + `SET o.payload = c.payload WHERE o.seq IN (?) AND o.state IN ('pending', 'failed')`

const corrected = `
UPDATE /*schema.*/outbox o FORCE INDEX (PRIMARY)
STRAIGHT_JOIN /*schema.*/outbox_correction c FORCE INDEX (PRIMARY) ON c.operation_id = ? AND c.id = o.id
`

const textRevive = `
UPDATE /*schema.*/outbox FORCE INDEX (PRIMARY) SET state = 'pending', due_at = UTC_TIMESTAMP(6), attempts = 0, lapses = 0, replays = replays + 1,
  done_at = TIMESTAMP'1000-01-01 00:00:00', failed_at = TIMESTAMP'1000-01-01 00:00:00', resolved_at = TIMESTAMP'1000-01-01 00:00:00',
  reason = NULL, result = DEFAULT,
  expires_at = IF(?, expires_at, NULL),
  unknown_since = IF(?, TIMESTAMP'1000-01-01 00:00:00', unknown_since),
  send_id = IF(?, UUID(), send_id)
WHERE seq IN (?) AND state <> 'in_flight'`

const textHasten = `UPDATE /*schema.*/outbox FORCE INDEX (PRIMARY) SET due_at = UTC_TIMESTAMP(6) WHERE seq IN (?) AND state = 'pending'`

const textWithdraw = `
UPDATE /*schema.*/outbox FORCE INDEX (PRIMARY) SET state = 'failed', reason = 'cancelled', due_at = TIMESTAMP'9999-12-31 00:00:00',
  failed_at = UTC_TIMESTAMP(6), resolved_at = UTC_TIMESTAMP(6)
WHERE seq IN (?) AND state = 'pending'`

const textTell = `
INSERT INTO /*schema.*/outbox (aggregatetype, aggregateid, type, payload, traceparent)
SELECT NULLIF(?, ''), o.aggregateid, ?, ` + sqlTelling + `, o.traceparent FROM /*schema.*/outbox o FORCE INDEX (PRIMARY)
WHERE o.seq IN (?) AND o.state = 'failed'`

const textResolve = `UPDATE /*schema.*/outbox FORCE INDEX (PRIMARY) SET resolved_at = UTC_TIMESTAMP(6) WHERE seq IN (?) AND state = 'failed'`

const textPauses = `
SELECT name, COALESCE(value, '') AS value, ` + nowMicros + ` FROM /*schema.*/outbox_control WHERE kind = 'pause' AND owner = '' ORDER BY name`

const textPaused = `
SELECT name, COALESCE(value, '') AS value, ` + nowMicros + ` FROM /*schema.*/outbox_control
WHERE kind = 'pause' AND name = ? AND owner = '' FOR UPDATE`

const textPause = `
INSERT INTO /*schema.*/outbox_control (kind, name, value) VALUES ('pause', ?, ?)
ON DUPLICATE KEY UPDATE value = VALUES(value), updated_at = UTC_TIMESTAMP(6)`

const textResume = `DELETE FROM /*schema.*/outbox_control WHERE kind = 'pause' AND name = ?`

const textAsk = `
INSERT INTO /*schema.*/outbox_operation (id, op, filter, actor, note, dry_run) VALUES (?, ?, ?, ?, NULLIF(?, ''), ?)`

const textAskSoon = `
INSERT INTO /*schema.*/outbox_operation (id, op, filter, actor, note, dry_run, requested_at)
VALUES (?, ?, ?, ?, NULLIF(?, ''), ?, UTC_TIMESTAMP(6) + INTERVAL 1 SECOND)`

const textInstance = `SELECT value FROM /*schema.*/outbox_control WHERE kind = 'instance' AND name = 'outbox' AND owner = ''`

const textKeepInstance = `
INSERT INTO /*schema.*/outbox_control (kind, name, value) VALUES ('instance', 'outbox', ?) ON DUPLICATE KEY UPDATE name = name`

const textSetInstance = `
INSERT INTO /*schema.*/outbox_control (kind, name, value) VALUES ('instance', 'outbox', ?)
ON DUPLICATE KEY UPDATE value = VALUES(value), updated_at = UTC_TIMESTAMP(6)`

const textDid = `
INSERT INTO /*schema.*/outbox_operation (id, op, filter, actor, note, applied_at, affected)
VALUES (?, ?, ?, ?, NULLIF(?, ''), UTC_TIMESTAMP(6), ?)`

const textPayloads = `SELECT id, seq, NULL AS text, payload AS bytes FROM /*schema.*/outbox FORCE INDEX (PRIMARY) WHERE seq IN (?) ORDER BY seq`

const textCountCorrections = `SELECT count(*) AS n FROM /*schema.*/outbox_correction WHERE operation_id = ?`

const textAddCorrections = `INSERT INTO /*schema.*/outbox_correction (operation_id, id, payload, old_payload) VALUES `

const (
	operationColumns = `SELECT id, op, filter, actor, note, dry_run, requested_at, applied_at, affected, detail, progress, applier
FROM /*schema.*/outbox_operation `
	textGetOperation   = operationColumns + `WHERE id = ?`
	textListOperations = operationColumns + `WHERE applied_at IS NULL OR NOT ? ORDER BY requested_at DESC, id DESC LIMIT ?`
)
