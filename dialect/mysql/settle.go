package mysql

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// The guard compares pairs: each message with its own lease. Touches no index, and lets no column grow. Argument: rows of
// seq, lease, result.
const sqlSettleDone = `
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
  seq bigint PATH '$[0]', lease_id bigint PATH '$[1]', result varchar(255) CHARACTER SET utf8mb4 PATH '$[2]')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
SET o.state = 'done', o.attempts = LEAST(o.attempts + 1, 2147483647), o.lapses = 0, o.done_at = UTC_TIMESTAMP(6),
  o.result = s.result
WHERE o.lease_id = s.lease_id AND o.state = 'in_flight'`

// All that is more than a done with a short answer. Lapses: kept times what they are, and added. unknown_us is since the
// send began, where it may have taken effect. Texts are NULL where there are none. Argument: rows as in settleRow.
const sqlSettle = `
UPDATE ` + sqlSettlements + ` s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
SET o.state = s.state,
  o.due_at = IF(s.state = 'pending', UTC_TIMESTAMP(6) + INTERVAL s.delay_us MICROSECOND, TIMESTAMP'9999-12-31 00:00:00'),
  o.attempts = LEAST(o.attempts + s.charged, 2147483647), o.lapses = LEAST(o.lapses * s.kept + s.added, 2147483647),
  o.unknown_since = IF(s.unknown_us IS NULL OR o.unknown_since > TIMESTAMP'1000-01-01 00:00:00', o.unknown_since,
    UTC_TIMESTAMP(6) - INTERVAL s.unknown_us MICROSECOND),
  o.reason = s.reason, o.error_class = COALESCE(s.error_class, o.error_class), o.last_error = COALESCE(s.error, o.last_error),
  o.result = IF(s.state = 'done', s.result, o.result), o.done_at = IF(s.state = 'done', UTC_TIMESTAMP(6), o.done_at),
  o.failed_at = IF(s.state = 'failed', UTC_TIMESTAMP(6), o.failed_at),
  o.resolved_at = IF(s.reason = 'expired', UTC_TIMESTAMP(6), o.resolved_at)
WHERE o.lease_id = s.lease_id AND o.state = 'in_flight'`

// The rows of outbox_attempt that go with it, after it in the same transaction. Arguments: relay, rows as in settleRow.
const sqlRecord = `
INSERT INTO /*schema.*/outbox_attempt
  (message_id, life, attempt, relay, started_at, duration, outcome, status, error_class, error, answer)
SELECT o.id, o.replays, o.attempts, ?, UTC_TIMESTAMP(6) - INTERVAL s.since_us MICROSECOND, s.took_us, s.outcome,
  s.status, s.error_class, s.error, s.answer
FROM ` + sqlSettlements + ` s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
WHERE s.took_us IS NOT NULL`

// The messages that tell of others, after it in the same transaction: the rows are locked, so they are as it wrote them. The
// list has none that it did not write. Argument: rows as in tellRow.
const sqlTell = `
INSERT INTO /*schema.*/outbox (aggregatetype, aggregateid, type, payload, traceparent)
SELECT s.aggregatetype, o.aggregateid, s.type, ` + sqlTelling + `, o.traceparent
FROM JSON_TABLE(?, '$[*]' COLUMNS (
  seq bigint PATH '$[0]', lease_id bigint PATH '$[1]', type varchar(256) CHARACTER SET utf8mb4 PATH '$[2]',
  aggregatetype varchar(256) CHARACTER SET utf8mb4 PATH '$[3]')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
WHERE o.lease_id = s.lease_id AND o.state IN ('done', 'failed')`

// The payload that tells of a message that is final.
const sqlTelling = `JSON_OBJECT('id', o.id, 'type', o.type, 'state', o.state, 'reason', o.reason, 'result', NULLIF(RTRIM(o.result), ''),
  'attempts', o.attempts, 'replays', o.replays, 'at', DATE_FORMAT(GREATEST(o.done_at, o.failed_at), '%Y-%m-%dT%H:%i:%s.%fZ'))`

const sqlSettlements = `JSON_TABLE(?, '$[*]' COLUMNS (
  seq bigint PATH '$[0]', lease_id bigint PATH '$[1]', state char(9) CHARACTER SET ascii PATH '$[2]',
  delay_us bigint PATH '$[3]', charged int PATH '$[4]', kept int PATH '$[5]', added int PATH '$[6]',
  unknown_us bigint PATH '$[7]', reason varchar(16) CHARACTER SET ascii PATH '$[8]',
  error_class varchar(32) CHARACTER SET utf8mb4 PATH '$[9]', error text CHARACTER SET utf8mb4 PATH '$[10]',
  result varchar(255) CHARACTER SET utf8mb4 PATH '$[11]', outcome varchar(16) CHARACTER SET ascii PATH '$[12]',
  answer text CHARACTER SET utf8mb4 PATH '$[13]', took_us bigint PATH '$[14]', status int PATH '$[15]',
  since_us bigint PATH '$[16]'))`

// Locks, of messages in flight under their lease, those that nobody else holds. The list stands in a query of its own, with
// a LIMIT that keeps it apart, since MySQL refuses a locking clause that spans a JSON_TABLE. Argument: pairs of seq and
// lease.
const sqlLock = `
SELECT o.seq, o.id, o.routing_key
FROM (SELECT seq, lease_id FROM JSON_TABLE(?, '$[*]' COLUMNS (
  seq bigint PATH '$[0]', lease_id bigint PATH '$[1]')) j LIMIT 1000000) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq
WHERE o.lease_id = s.lease_id AND o.state = 'in_flight' FOR UPDATE SKIP LOCKED`

// Of a batch of which not all was written: who holds each message. Argument: messages.
const sqlFates = `
SELECT o.id, o.lease_id, o.state = 'in_flight' AS in_flight
FROM JSON_TABLE(?, '$[*]' COLUMNS (seq bigint PATH '$')) s
STRAIGHT_JOIN /*schema.*/outbox o FORCE INDEX (PRIMARY) ON o.seq = s.seq`

// Settle implements relay.Store. Settlements of done messages, of those that the application is told of and of all others
// are transactions apart, and are parted again where their texts are long; so an error may leave some of them written.
// Asked for again, what is written is passed over.
func (s *Store) Settle(ctx context.Context, settlements []relay.Settlement) (unsettled []relay.Unsettled, err error) {
	all, err := sorted(settlements)
	if err != nil {
		return nil, err
	}
	done, told, rest := all.Split()
	for _, kind := range []struct {
		batch  dialect.Batch
		writer dialect.Writer
	}{{done, doneWriter{writer{s}}}, {told, restWriter{writer{s}}}, {rest, restWriter{writer{s}}}} {
		for _, part := range parts(kind.batch) {
			more, err := dialect.Settle(ctx, kind.writer, part)
			if err != nil {
				return nil, err
			}
			unsettled = append(unsettled, more...)
		}
	}
	return unsettled, nil
}

// sorted puts the settlements in the order in which all relays lock rows.
func sorted(settlements []relay.Settlement) (dialect.Batch, error) {
	return dialect.NewBatch(settlements, func(r relay.Row) int64 { return r.Seq })
}

// partBytes bounds the texts of one statement. Escaped twice, for JSON and for SQL, each of their bytes may become seven:
// far below the max_allowed_packet of any server (16 MiB on MariaDB, 64 MiB on MySQL, where nobody lowered it).
const partBytes = 256 << 10

// parts cuts a batch where its texts grow too long for one statement.
func parts(b dialect.Batch) (all []dialect.Batch) {
	bytes, from := 0, 0
	for i, r := range b {
		n := 128 + len(r.ErrorClass) + len(r.LastError) + len(r.Result) + len(r.Answer) +
			len(r.Emit.Type) + len(r.Emit.AggregateType)
		if bytes += n; bytes > partBytes {
			all, bytes, from = append(all, b[from:i]), n, i
		}
	}
	return append(all, b[from:])
}

type writer struct{ store *Store }

// Fates implements dialect.Writer.
func (w writer) Fates(ctx context.Context, b dialect.Batch) (map[string]dialect.Fate, error) {
	fates := make(map[string]dialect.Fate, len(b))
	err := w.store.work.query(ctx, "fates", func(rows *sqlx.Rows) error {
		var id string
		var f dialect.Fate
		err := rows.Scan(&id, &f.Lease, &f.InFlight)
		fates[id] = f
		return err
	}, list[int64](dialect.Column(b, func(r dialect.Settling) int64 { return r.Seq })).String())
	return fates, err
}

// around writes the part of a batch that nobody else has locked, in one transaction.
func (w writer) around(ctx context.Context, name string, b dialect.Batch, write func(context.Context, session, dialect.Batch) (int64, error)) (written int64, err error) {
	err = w.store.work.transaction(ctx, name, func(ctx context.Context, tx session) error {
		free, err := lock(ctx, tx, pairs(b))
		if err != nil || len(free) == 0 {
			return err
		}
		written, err = write(ctx, tx, those(b, free))
		return err
	})
	return written, err
}

// lock gives, by seq, the ids of those messages that it locked.
func lock(ctx context.Context, tx session, pairs list[[2]int64]) (map[int64]relay.Moved, error) {
	locked := make(map[int64]relay.Moved, len(pairs))
	err := tx.query(ctx, "lock", func(rows *sqlx.Rows) error {
		var seq int64
		var m relay.Moved
		err := rows.Scan(&seq, &m.ID, &m.RoutingKey)
		locked[seq] = m
		return err
	}, pairs.String())
	return locked, err
}

func pairs(b dialect.Batch) list[[2]int64] {
	return dialect.Column(b, func(r dialect.Settling) [2]int64 { return [2]int64{r.Seq, int64(r.Lease)} })
}

func those(b dialect.Batch, locked map[int64]relay.Moved) dialect.Batch {
	kept := make(dialect.Batch, 0, len(locked))
	for _, r := range b {
		if _, ok := locked[r.Seq]; ok {
			kept = append(kept, r)
		}
	}
	return kept
}

// doneWriter writes done messages with a short answer, at first in one statement that may wait for locks.
type doneWriter struct{ writer }

// Write implements dialect.Writer.
func (w doneWriter) Write(ctx context.Context, b dialect.Batch) (int64, error) {
	return w.store.work.exec(ctx, "settle_done", doneRows(b))
}

// WriteAround implements dialect.Writer.
func (w doneWriter) WriteAround(ctx context.Context, b dialect.Batch) (int64, error) {
	return w.around(ctx, "settle_done", b, func(ctx context.Context, tx session, b dialect.Batch) (int64, error) {
		return tx.exec(ctx, "settle_done", doneRows(b))
	})
}

// restWriter writes all others, with their rows of outbox_attempt and the messages that tell of them. It needs a
// transaction anyway, so it never waits for a lock.
type restWriter struct{ writer }

// Write implements dialect.Writer.
func (w restWriter) Write(ctx context.Context, b dialect.Batch) (int64, error) {
	return w.around(ctx, "settle", b, func(ctx context.Context, tx session, b dialect.Batch) (int64, error) {
		rows := settleRows(b)
		written, err := tx.exec(ctx, "settle", rows)
		if err == nil && recorded(b) {
			_, err = tx.exec(ctx, "record", w.store.relay, rows)
		}
		if tell := tellRows(b); err == nil && len(tell) > 0 {
			_, err = tx.exec(ctx, "tell", tell.String())
		}
		return written, err
	})
}

// WriteAround implements dialect.Writer.
func (w restWriter) WriteAround(ctx context.Context, b dialect.Batch) (int64, error) {
	return w.Write(ctx, b)
}
