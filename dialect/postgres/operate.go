package postgres

import (
	"strings"
	"unicode/utf8"

	"github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

func operationTexts() dialect.OperationTexts {
	return dialect.OperationTexts{
		Open: textOpen, Lock: textLock, Advance: textAdvance,
		Corrections: func(operation string) dialect.Walk {
			return dialect.Walk{Query: walkCorrections, Args: []any{operation}, Start: []string{lowestUUID}}
		},
		Candidates: textCandidates, LockCandidates: textCandidates + ` FOR NO KEY UPDATE OF o SKIP LOCKED`,
		Keys: func(messages []relay.Candidate) any {
			ids := make(pq.StringArray, len(messages))
			for i, m := range messages {
				ids[i] = m.ID
			}
			return ids
		},
		Changed: textChanged, KeepPayload: textKeepPayload, Correct: textCorrect, Revive: textRevive,
		Hasten: textHasten, Withdraw: textWithdraw, Resolve: textResolve, Tell: textTell,
		Pauses: textPauses, Paused: textPaused, Pause: textPause, Resume: textResume,
		Instance: textInstance, KeepInstance: textKeepInstance, SetInstance: textSetInstance, Did: textDid,
		Ask: textAsk, AskSoon: textAskSoon, Get: textGetOperation, List: textListOperations,
		CountCorrections: textCountCorrections, Payloads: textPayloads,
		AddCorrections: textAddCorrections, AddCorrection: textAddCorrection,
		OldBody: func(old dialect.Payload) []any {
			if old.Bytes != nil {
				return []any{nil, old.Bytes}
			}
			return []any{string(old.Text), nil}
		},
		Body: func(payload []byte) []any {
			if text := string(payload); utf8.ValidString(text) && !strings.Contains(text, "\x00") {
				return []any{text, nil}
			}
			return []any{nil, payload}
		},
	}
}

const nowMicros = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now`

const textOpen = `
SELECT id, op, filter, actor, coalesce(note, '') AS note, dry_run FROM /*schema.*/outbox_operation
WHERE applied_at IS NULL AND requested_at <= clock_timestamp()
ORDER BY op IN ('pause', 'resume') DESC, requested_at, id LIMIT 1000`

const textLock = `
SELECT coalesce(progress, '') AS progress, coalesce(affected, 0) AS affected, coalesce(detail, '') AS detail, ` + nowMicros + `
FROM /*schema.*/outbox_operation WHERE id = ?::uuid AND applied_at IS NULL FOR NO KEY UPDATE SKIP LOCKED`

const textAdvance = `
UPDATE /*schema.*/outbox_operation SET progress = ?::text, affected = ?::bigint, detail = nullif(?::text, ''), applier = ?::text,
  applied_at = CASE WHEN ?::boolean THEN clock_timestamp() END
WHERE id = ?::uuid`

// OFFSET keeps the two apart: each correction finds its message by the id, in order and no more than are wanted, also before
// the table of corrections is analysed.
const walkCorrections = walked + `json_build_array(id::text)::text AS place
FROM (SELECT id AS corrected FROM /*schema.*/outbox_correction WHERE operation_id = ?::uuid AND id > ?::uuid ORDER BY id OFFSET 0) c
CROSS JOIN LATERAL (SELECT * FROM /*schema.*/outbox WHERE id = corrected OFFSET 0) o
ORDER BY corrected LIMIT ?::int`

const textCandidates = `
SELECT id, seq, routing_key, type, state, coalesce(reason, '') AS reason, coalesce(error_class, '') AS error_class, lease_id,
  coalesce(due_at <= clock_timestamp(), false) AS due, resolved_at IS NOT NULL AS resolved,
  attempts > 0 OR EXISTS (SELECT FROM /*schema.*/outbox_attempt a WHERE a.message_id = o.id AND a.life = o.replays) AS went,
  coalesce(coalesce(failed_at, done_at, (SELECT max(started_at + duration) FROM /*schema.*/outbox_attempt a WHERE a.message_id = o.id))
    > (SELECT requested_at FROM /*schema.*/outbox_operation p WHERE p.id = ?::uuid), false) AS late,
  (extract(epoch FROM clock_timestamp() - unknown_since) * 1000000)::bigint AS unknown_for
FROM /*schema.*/outbox o WHERE id = ANY (?::uuid[]) ORDER BY id`

const textChanged = `
SELECT o.id FROM /*schema.*/outbox_correction c JOIN /*schema.*/outbox o ON o.id = c.id
WHERE c.operation_id = ?::uuid AND c.id = ANY (?::uuid[]) AND (c.old_payload IS NOT NULL OR c.old_payload_bytes IS NOT NULL)
  AND (coalesce(c.old_payload, ''), coalesce(c.old_payload_bytes, '')) <> (coalesce(o.payload, ''), coalesce(o.payload_bytes, ''))`

const textKeepPayload = `
UPDATE /*schema.*/outbox_correction c SET old_payload = o.payload, old_payload_bytes = o.payload_bytes
FROM /*schema.*/outbox o
WHERE c.operation_id = ?::uuid AND c.id = ANY (?::uuid[]) AND o.id = c.id`

const textCorrect = `
UPDATE /*schema.*/outbox o SET payload = c.payload, payload_bytes = c.payload_bytes
FROM /*schema.*/outbox_correction c
WHERE c.operation_id = ?::uuid AND o.id = ANY (?::uuid[]) AND c.id = o.id AND o.state IN ('pending', 'failed')`

// clock_timestamp and not now: the floors of claims rely on a due_at that is later than the transaction's number.
const textRevive = `
UPDATE /*schema.*/outbox SET state = 'pending', due_at = clock_timestamp(), attempts = 0, lapses = 0, replays = replays + 1,
  done_at = NULL, failed_at = NULL, resolved_at = NULL, reason = NULL, result = NULL,
  expires_at = CASE WHEN ?::boolean THEN expires_at END,
  unknown_since = CASE WHEN ?::boolean THEN NULL ELSE unknown_since END,
  send_id = CASE WHEN ?::boolean THEN /*schema.*/outbox_uuid7() ELSE send_id END
WHERE id = ANY (?::uuid[]) AND state <> 'in_flight'`

const textHasten = `UPDATE /*schema.*/outbox SET due_at = clock_timestamp() WHERE id = ANY (?::uuid[]) AND state = 'pending'`

const textWithdraw = `
UPDATE /*schema.*/outbox SET state = 'failed', reason = 'cancelled', due_at = NULL, failed_at = now(), resolved_at = now()
WHERE id = ANY (?::uuid[]) AND state = 'pending'`

const textTell = `
INSERT INTO /*schema.*/outbox (aggregatetype, aggregateid, type, payload, traceparent)
SELECT nullif(?::text, ''), aggregateid, ?::text, ` + sqlTelling + `, traceparent FROM /*schema.*/outbox
WHERE id = ANY (?::uuid[]) AND state = 'failed'`

const textResolve = `UPDATE /*schema.*/outbox SET resolved_at = now() WHERE id = ANY (?::uuid[]) AND state = 'failed'`

const textPauses = `
SELECT name, coalesce(value, '') AS value, ` + nowMicros + ` FROM /*schema.*/outbox_control WHERE kind = 'pause' AND owner = '' ORDER BY name`

const textPaused = `
SELECT name, coalesce(value, '') AS value, ` + nowMicros + ` FROM /*schema.*/outbox_control
WHERE kind = 'pause' AND name = ?::text AND owner = '' FOR UPDATE`

const textPause = `
INSERT INTO /*schema.*/outbox_control (kind, name, value) VALUES ('pause', ?::text, ?::text)
ON CONFLICT (kind, name, owner) DO UPDATE SET value = excluded.value, updated_at = now()`

const textResume = `DELETE FROM /*schema.*/outbox_control WHERE kind = 'pause' AND name = ?::text`

const textAsk = `
INSERT INTO /*schema.*/outbox_operation (id, op, filter, actor, note, dry_run)
VALUES (?::uuid, ?::text, ?::text, ?::text, nullif(?::text, ''), ?::boolean)`

const textAskSoon = `
INSERT INTO /*schema.*/outbox_operation (id, op, filter, actor, note, dry_run, requested_at)
VALUES (?::uuid, ?::text, ?::text, ?::text, nullif(?::text, ''), ?::boolean, clock_timestamp() + interval '1 second')`

const textInstance = `SELECT value FROM /*schema.*/outbox_control WHERE kind = 'instance' AND name = 'outbox' AND owner = ''`

const textKeepInstance = `
INSERT INTO /*schema.*/outbox_control (kind, name, value) VALUES ('instance', 'outbox', ?::text) ON CONFLICT (kind, name, owner) DO NOTHING`

const textSetInstance = `
INSERT INTO /*schema.*/outbox_control (kind, name, value) VALUES ('instance', 'outbox', ?::text)
ON CONFLICT (kind, name, owner) DO UPDATE SET value = excluded.value, updated_at = now()`

const textDid = `
INSERT INTO /*schema.*/outbox_operation (id, op, filter, actor, note, applied_at, affected)
VALUES (?::uuid, ?::text, ?::text, ?::text, nullif(?::text, ''), clock_timestamp(), ?::bigint)`

const textPayloads = `SELECT id, seq, payload AS text, payload_bytes AS bytes FROM /*schema.*/outbox WHERE id = ANY (?::uuid[]) ORDER BY id`

const textCountCorrections = `SELECT count(*) AS n FROM /*schema.*/outbox_correction WHERE operation_id = ?::uuid`

const (
	textAddCorrections = `
INSERT INTO /*schema.*/outbox_correction (operation_id, id, payload, payload_bytes, old_payload, old_payload_bytes) VALUES `
	textAddCorrection = `(?::uuid, ?::uuid, ?::text, ?::bytea, ?::text, ?::bytea)`
)

const (
	operationColumns = `SELECT id, op, filter, actor, note, dry_run, requested_at, applied_at, affected, detail, progress, applier
FROM /*schema.*/outbox_operation `
	textGetOperation   = operationColumns + `WHERE id = ?::uuid`
	textListOperations = operationColumns + `WHERE applied_at IS NULL OR NOT ?::boolean ORDER BY requested_at DESC, id DESC LIMIT ?::int`
)
