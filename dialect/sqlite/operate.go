package sqlite

import (
	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// operationTexts lock nothing: a transaction that writes has the file to itself.
func operationTexts() dialect.OperationTexts {
	return dialect.OperationTexts{
		Open: textOpen, Lock: textLock, Advance: textAdvance,
		Corrections: func(operation string) dialect.Walk {
			return dialect.Walk{Query: walkCorrections, Args: []any{operation}, Start: []string{""}}
		},
		Candidates: textCandidates, LockCandidates: textCandidates,
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
		Body: func(payload []byte) []any { return []any{payload} },
		OldBody: func(old dialect.Payload) []any {
			if old.Text != nil {
				return []any{string(old.Text)}
			}
			return []any{old.Content()}
		},
	}
}

const textOpen = `
SELECT id, op, filter, actor, coalesce(note, '') AS note, dry_run <> 0 AS dry_run FROM outbox_operation
WHERE applied_at IS NULL AND requested_at <= ` + sqlNow + `
ORDER BY op IN ('pause', 'resume') DESC, requested_at, id LIMIT 1000`

const textLock = `
SELECT coalesce(progress, '') AS progress, coalesce(affected, 0) AS affected, coalesce(detail, '') AS detail, ` + sqlNow + ` AS now
FROM outbox_operation WHERE id = ? AND applied_at IS NULL`

const textAdvance = `
UPDATE outbox_operation SET progress = ?, affected = ?, detail = nullif(?, ''), applier = ?, applied_at = CASE WHEN ? THEN ` + sqlNow + ` END
WHERE id = ?`

// CROSS JOIN keeps the order of its tables: each correction finds its message by the id.
const walkCorrections = walked + `json_array(corrected) AS place
FROM (SELECT id AS corrected FROM outbox_correction WHERE operation_id = ? AND id > ?) CROSS JOIN outbox ON id = corrected
ORDER BY corrected LIMIT ?`

const textCandidates = `
SELECT id, seq, routing_key, type, state, coalesce(reason, '') AS reason, coalesce(error_class, '') AS error_class, lease_id,
  coalesce(due_at <= ` + sqlNow + `, 0) AS due, resolved_at IS NOT NULL AS resolved,
  attempts > 0 OR EXISTS (SELECT 1 FROM outbox_attempt a WHERE a.message_id = o.id AND a.life = o.replays) AS went,
  coalesce(coalesce(failed_at, done_at, (SELECT max(started_at + duration) FROM outbox_attempt a WHERE a.message_id = o.id))
    > (SELECT requested_at FROM outbox_operation p WHERE p.id = ?), 0) AS late,
  ` + sqlNow + ` - unknown_since AS unknown_for
FROM outbox o WHERE seq IN (?) ORDER BY seq`

const textChanged = `
SELECT o.id FROM outbox o JOIN outbox_correction c ON c.operation_id = ? AND c.id = o.id
WHERE o.seq IN (?) AND CAST(c.old_payload AS BLOB) <> CAST(coalesce(o.payload, '') AS BLOB)`

const textKeepPayload = `
UPDATE outbox_correction SET old_payload = (SELECT payload FROM outbox o WHERE o.id = outbox_correction.id)
WHERE operation_id = ? AND id IN (SELECT id FROM outbox WHERE seq IN (?))`

const textCorrect = `
UPDATE outbox SET payload = (SELECT payload FROM outbox_correction c WHERE c.operation_id = ? AND c.id = outbox.id)
WHERE seq IN (?) AND state IN ('pending', 'failed')`

const textRevive = `
UPDATE outbox SET state = 'pending', due_at = ` + sqlNow + `, attempts = 0, lapses = 0, replays = replays + 1,
  done_at = NULL, failed_at = NULL, resolved_at = NULL, reason = NULL, result = NULL,
  expires_at = CASE WHEN ? THEN expires_at END,
  unknown_since = CASE WHEN ? THEN NULL ELSE unknown_since END,
  send_id = CASE WHEN ? THEN lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2)
    || '-8' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))) ELSE send_id END
WHERE seq IN (?) AND state <> 'in_flight'`

const textHasten = `UPDATE outbox SET due_at = ` + sqlNow + ` WHERE seq IN (?) AND state = 'pending'`

const textWithdraw = `
UPDATE outbox SET state = 'failed', reason = 'cancelled', due_at = NULL, failed_at = ` + sqlNow + `, resolved_at = ` + sqlNow + `
WHERE seq IN (?) AND state = 'pending'`

const textTell = `
INSERT INTO outbox (aggregatetype, aggregateid, type, payload, traceparent)
SELECT nullif(?, ''), aggregateid, ?, ` + sqlTelling + `, traceparent FROM outbox WHERE seq IN (?) AND state = 'failed'`

const textResolve = `UPDATE outbox SET resolved_at = ` + sqlNow + ` WHERE seq IN (?) AND state = 'failed'`

const textPauses = `
SELECT name, coalesce(value, '') AS value, ` + sqlNow + ` AS now FROM outbox_control WHERE kind = 'pause' AND owner = '' ORDER BY name`

const textPaused = `
SELECT name, coalesce(value, '') AS value, ` + sqlNow + ` AS now FROM outbox_control
WHERE kind = 'pause' AND name = ? AND owner = ''`

const textPause = `
INSERT INTO outbox_control (kind, name, value) VALUES ('pause', ?, ?)
ON CONFLICT (kind, name, owner) DO UPDATE SET value = excluded.value, updated_at = ` + sqlNow

const textResume = `DELETE FROM outbox_control WHERE kind = 'pause' AND name = ?`

const textAsk = `
INSERT INTO outbox_operation (id, op, filter, actor, note, dry_run) VALUES (?, ?, ?, ?, nullif(?, ''), ?)`

const textAskSoon = `
INSERT INTO outbox_operation (id, op, filter, actor, note, dry_run, requested_at)
VALUES (?, ?, ?, ?, nullif(?, ''), ?, ` + sqlNow + ` + 1000000)`

const textInstance = `SELECT value FROM outbox_control WHERE kind = 'instance' AND name = 'outbox' AND owner = ''`

const textKeepInstance = `
INSERT INTO outbox_control (kind, name, value) VALUES ('instance', 'outbox', ?) ON CONFLICT (kind, name, owner) DO NOTHING`

const textSetInstance = `
INSERT INTO outbox_control (kind, name, value) VALUES ('instance', 'outbox', ?)
ON CONFLICT (kind, name, owner) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`

const textDid = `
INSERT INTO outbox_operation (id, op, filter, actor, note, applied_at, affected) VALUES (?, ?, ?, ?, nullif(?, ''), ` + sqlNow + `, ?)`

const textPayloads = `
SELECT id, seq, CASE typeof(payload) WHEN 'text' THEN payload END AS text, CASE typeof(payload) WHEN 'blob' THEN payload END AS bytes
FROM outbox WHERE seq IN (?) ORDER BY seq`

const textCountCorrections = `SELECT count(*) AS n FROM outbox_correction WHERE operation_id = ?`

const textAddCorrections = `INSERT INTO outbox_correction (operation_id, id, payload, old_payload) VALUES `

const (
	operationColumns = `SELECT id, op, filter, actor, note, dry_run, requested_at, applied_at, affected, detail, progress, applier
FROM outbox_operation `
	textGetOperation   = operationColumns + `WHERE id = ?`
	textListOperations = operationColumns + `WHERE applied_at IS NULL OR NOT ? ORDER BY requested_at DESC, id DESC LIMIT ?`
)
