package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// ?1 seq, ?2 lease, ?3 state, ?4 delay, ?5 charged 0 or 1, ?6 what lapses is multiplied by, ?7 and what is added to it, ?8
// since when it is unknown whether it took effect, NULL: it is not, ?9 reason, ?10 error class, ?11 error, ?12 result.
// Durations are microseconds, that of ?8 before now; texts are NULL where there are none.
const sqlSettle = `
UPDATE outbox SET
  state = ?3, due_at = CASE WHEN ?3 = 'pending' THEN ` + sqlNow + ` + ?4 END, attempts = attempts + ?5, lapses = lapses * ?6 + ?7,
  unknown_since = CASE WHEN ?8 IS NULL THEN unknown_since ELSE coalesce(unknown_since, ` + sqlNow + ` - ?8) END,
  reason = ?9, error_class = coalesce(?10, error_class), last_error = coalesce(?11, last_error), result = coalesce(?12, result),
  done_at = CASE WHEN ?3 = 'done' THEN ` + sqlNow + ` END, failed_at = CASE WHEN ?3 = 'failed' THEN ` + sqlNow + ` END,
  resolved_at = CASE WHEN ?9 = 'expired' THEN ` + sqlNow + ` END
WHERE seq = ?1 AND lease_id = ?2 AND state = 'in_flight'`

// What goes into outbox_attempt, written just before the message itself, under the same guard. ?1 seq, ?2 lease, ?3 relay,
// ?4 charged 0 or 1, ?5 how long the send took and ?11 since it began, in microseconds, ?6 outcome, ?7 error class, ?8 error,
// ?9 answer, ?10 status.
const sqlRecord = `
INSERT INTO outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome, status, error_class, error, answer)
SELECT id, replays, attempts + ?4, ?3, ` + sqlNow + ` - ?11, ?5, ?6, nullif(?10, 0), ?7, ?8, ?9
FROM outbox WHERE seq = ?1 AND lease_id = ?2 AND state = 'in_flight'`

// The message that tells of one that sqlSettle just wrote. ?1 seq, ?2 type, ?3 aggregatetype or NULL.
const sqlTell = `
INSERT INTO outbox (aggregatetype, aggregateid, type, payload, traceparent)
SELECT ?3, aggregateid, ?2, ` + sqlTelling + `, traceparent FROM outbox WHERE seq = ?1`

// The payload that tells of a message that is final.
const sqlTelling = `json_object('id', id, 'type', type, 'state', state, 'reason', reason, 'result', result, 'attempts', attempts,
  'replays', replays, 'at', strftime('%Y-%m-%dT%H:%M:%S', coalesce(done_at, failed_at) / 1000000, 'unixepoch')
    || printf('.%06dZ', coalesce(done_at, failed_at) % 1000000))`

// settleArguments are those of sqlSettle.
func settleArguments(r dialect.Settling) []any {
	kept, added := lapses(r.Lapses)
	var unknown any
	if r.MarkUnknown {
		unknown = r.SinceMicros()
	}
	return []any{
		r.Seq, int64(r.Lease), string(r.State), r.Delay.Microseconds(), r.Charge, kept, added, unknown,
		orNull(string(r.Reason)), orNull(r.ErrorClass), orNull(r.LastError), orNull(r.Result),
	}
}

// recordArguments are those of sqlRecord.
func recordArguments(r dialect.Settling, relayName string) []any {
	return []any{
		r.Seq, int64(r.Lease), relayName, r.Charge, r.Took.Microseconds(), string(r.What),
		orNull(r.ErrorClass), orNull(r.LastError), orNull(r.Answer), r.Status, r.SinceMicros(),
	}
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// lapses gives what the column is multiplied by, and what is added.
func lapses(rule relay.LapseRule) (kept, added int) {
	switch rule {
	case relay.LapsesKeep:
		return 1, 0
	case relay.LapsesAdd:
		return 1, 1
	case relay.LapsesZero:
	}
	return 0, 0
}

// Settle implements relay.Store. A batch is one transaction.
func (s *Store) Settle(ctx context.Context, settlements []relay.Settlement) ([]relay.Unsettled, error) {
	b, err := dialect.NewBatch(settlements, func(r relay.Row) int64 { return r.Seq })
	if err != nil {
		return nil, err
	}
	return dialect.Settle(ctx, writer{s}, b)
}

// writer writes settlements. It has no second form around locked rows, since SQLite locks none: what could not be written
// in time is all in flight, and tried again.
type writer struct{ *Store }

// Write implements dialect.Writer.
func (w writer) Write(ctx context.Context, b dialect.Batch) (written int64, err error) {
	err = w.write(ctx, "settle", func(ctx context.Context, tx *sqlx.Tx) error {
		return prepared(ctx, tx, sqlRecord, func(record *sqlx.Stmt) error {
			return prepared(ctx, tx, sqlSettle, func(settle *sqlx.Stmt) error {
				return prepared(ctx, tx, sqlTell, func(tell *sqlx.Stmt) (err error) {
					written, err = statements{record, settle, tell}.write(ctx, b, w.relay)
					return err
				})
			})
		})
	})
	return written, err
}

// statements are those of a batch, each for one message.
type statements struct{ record, settle, tell *sqlx.Stmt }

func (s statements) write(ctx context.Context, b dialect.Batch, relayName string) (written int64, err error) {
	for _, r := range b {
		if r.Recorded() {
			if _, err := s.record.ExecContext(ctx, recordArguments(r, relayName)...); err != nil {
				return 0, err
			}
		}
		n, err := affected(s.settle.ExecContext(ctx, settleArguments(r)...))
		if err != nil {
			return 0, err
		}
		if n > 0 && r.Emit.Type != "" {
			if _, err := s.tell.ExecContext(ctx, r.Seq, r.Emit.Type, orNull(r.Emit.AggregateType)); err != nil {
				return 0, err
			}
		}
		written += n
	}
	return written, nil
}

// WriteAround implements dialect.Writer.
func (writer) WriteAround(context.Context, dialect.Batch) (int64, error) { return 0, nil }

// Of a batch of which not all was written: who holds each message. ?1 seq, ?2 id.
const sqlFate = `
SELECT lease_id AS lease, state = 'in_flight' AS inflight FROM outbox WHERE seq = ?1 AND id = ?2`

// Fates implements dialect.Writer.
func (w writer) Fates(ctx context.Context, b dialect.Batch) (map[string]dialect.Fate, error) {
	fates := make(map[string]dialect.Fate, len(b))
	err := w.read(ctx, "unsettled", func(ctx context.Context, q *sqlx.DB) error {
		return prepared(ctx, q, sqlFate, func(one *sqlx.Stmt) error {
			for _, r := range b {
				var fate dialect.Fate
				err := one.GetContext(ctx, &fate, r.Seq, r.ID)
				if errors.Is(err, sql.ErrNoRows) {
					continue
				}
				if err != nil {
					return err
				}
				fates[r.ID] = fate
			}
			return nil
		})
	})
	return fates, err
}
