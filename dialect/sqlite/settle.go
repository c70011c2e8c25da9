package sqlite

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// ?1 a JSON array of [seq, lease, result].
const sqlSettleDone = `
UPDATE outbox SET state = 'done', attempts = attempts + 1, lapses = 0, done_at = ` + sqlNow + `, result = s.result
FROM (SELECT value ->> 0 AS seq, value ->> 1 AS lease_id, value ->> 2 AS result FROM json_each(?1)) AS s
WHERE outbox.seq = s.seq AND outbox.lease_id = s.lease_id AND outbox.state = 'in_flight'`

// All that is more than a done with a short answer. ?1 a JSON array of what restArguments gives.
const sqlSettle = `
UPDATE outbox SET
  state = s.state, due_at = CASE WHEN s.state = 'pending' THEN ` + sqlNow + ` + s.delay END,
  attempts = attempts + s.charged, lapses = lapses * s.kept + s.added,
  unknown_since = CASE WHEN s.marked THEN coalesce(unknown_since, ` + sqlNow + ` - max(s.took, 0)) ELSE unknown_since END,
  reason = s.reason, error_class = coalesce(s.class, error_class), last_error = coalesce(s.error, last_error),
  result = coalesce(s.result, outbox.result),
  done_at = CASE WHEN s.state = 'done' THEN ` + sqlNow + ` END, failed_at = CASE WHEN s.state = 'failed' THEN ` + sqlNow + ` END,
  resolved_at = CASE WHEN s.reason = 'expired' THEN ` + sqlNow + ` END
FROM (` + sqlRest + `) AS s
WHERE outbox.seq = s.seq AND outbox.lease_id = s.lease_id AND outbox.state = 'in_flight'`

// What goes into outbox_attempt, written just before the messages themselves, under the same guard. ?1 as above, ?2 relay.
const sqlRecord = `
INSERT INTO outbox_attempt (message_id, life, attempt, relay, started_at, duration, outcome, error_class, error, answer)
SELECT o.id, o.replays, o.attempts + s.charged, ?2, ` + sqlNow + ` - s.took, s.took, s.what, s.class, s.error, s.answer
FROM (` + sqlRest + `) AS s CROSS JOIN outbox o
WHERE s.took >= 0 AND o.seq = s.seq AND o.lease_id = s.lease_id AND o.state = 'in_flight'`

const sqlRest = `
  SELECT value ->> 0 AS seq, value ->> 1 AS lease_id, value ->> 2 AS what, value ->> 3 AS state, value ->> 4 AS delay,
    value ->> 5 AS charged, value ->> 6 AS kept, value ->> 7 AS added, value ->> 8 AS marked, value ->> 9 AS took,
    value ->> 10 AS reason, value ->> 11 AS class, value ->> 12 AS error, value ->> 13 AS result, value ->> 14 AS answer
  FROM json_each(?1)`

// doneArguments are a row of what sqlSettleDone takes.
func doneArguments(r relay.Row) []any { return []any{r.Seq, r.Lease, orNull(r.Result)} }

// restArguments are a row of what sqlSettle and sqlRecord take, in the order of sqlRest. Durations are microseconds; took is
// -1 where no attempt is to be recorded.
func restArguments(r relay.Row) []any {
	kept, added := lapses(r.Lapses)
	return []any{
		r.Seq, r.Lease, r.What, r.State, r.Delay.Microseconds(), bit(r.Charge), kept, added, bit(r.MarkUnknown),
		dialect.TookMicros(r), orNull(string(r.Reason)), orNull(r.ErrorClass), orNull(r.LastError), orNull(r.Result), orNull(r.Answer),
	}
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func bit(yes bool) int {
	if yes {
		return 1
	}
	return 0
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
	short, long := b.Split()
	done, err := array(dialect.Column(short, doneArguments))
	if err != nil {
		return 0, err
	}
	rest, err := array(dialect.Column(long, restArguments))
	if err != nil {
		return 0, err
	}
	err = w.write(ctx, "settle", func(ctx context.Context, tx *sqlx.Tx) error {
		written = 0
		if len(long) > 0 {
			if _, err := tx.ExecContext(ctx, sqlRecord, rest, w.relay); err != nil {
				return err
			}
			n, err := affected(tx.ExecContext(ctx, sqlSettle, rest))
			if err != nil {
				return err
			}
			written += n
		}
		if len(short) > 0 {
			n, err := affected(tx.ExecContext(ctx, sqlSettleDone, done))
			if err != nil {
				return err
			}
			written += n
		}
		return nil
	})
	return written, err
}

// WriteAround implements dialect.Writer.
func (writer) WriteAround(context.Context, dialect.Batch) (int64, error) { return 0, nil }

// Of a batch of which not all was written: who holds each message. ?1 seqs, a JSON array.
const sqlUnsettled = `
SELECT id, lease_id AS lease, state = 'in_flight' AS inflight FROM outbox WHERE seq IN (SELECT value FROM json_each(?1))`

// Fates implements dialect.Writer.
func (w writer) Fates(ctx context.Context, b dialect.Batch) (map[string]dialect.Fate, error) {
	seqs, err := array(dialect.Column(b, func(r relay.Row) int64 { return r.Seq }))
	if err != nil {
		return nil, err
	}
	var rows []struct {
		ID string
		dialect.Fate
	}
	err = w.read(ctx, "unsettled", func(ctx context.Context, q sqlx.ExtContext) error {
		return sqlx.SelectContext(ctx, q, &rows, sqlUnsettled, seqs)
	})
	if err != nil {
		return nil, err
	}
	fates := make(map[string]dialect.Fate, len(rows))
	for _, r := range rows {
		fates[r.ID] = r.Fate
	}
	return fates, nil
}
