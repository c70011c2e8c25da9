package mysql

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// By the key alone: a scan would wait for the lease of a claim that is under way. Arguments: leases, relay.
const sqlRenew = `
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (lease_id bigint PATH '$')) s
STRAIGHT_JOIN /*schema.*/outbox_lease l FORCE INDEX (PRIMARY) ON l.lease_id = s.lease_id
SET l.renewed_at = UTC_TIMESTAMP(6)
WHERE l.relay = ?`

// Which of them are ours. Arguments: leases, relay.
const sqlRenewed = `
SELECT l.lease_id
FROM JSON_TABLE(?, '$[*]' COLUMNS (lease_id bigint PATH '$')) s
STRAIGHT_JOIN /*schema.*/outbox_lease l FORCE INDEX (PRIMARY) ON l.lease_id = s.lease_id
WHERE l.relay = ?`

// Renew implements relay.Store.
func (s *Store) Renew(ctx context.Context, leases []relay.LeaseID) (lost []relay.LeaseID, err error) {
	ids := list[relay.LeaseID](leases)
	renewed, err := s.keep.exec(ctx, "renew", ids.String(), s.relay)
	if err != nil || renewed == int64(len(leases)) {
		return nil, err
	}
	held := map[relay.LeaseID]bool{}
	err = s.keep.query(ctx, "renewed", func(rows *sqlx.Rows) error {
		var id relay.LeaseID
		err := rows.Scan(&id)
		held[id] = true
		return err
	}, ids.String(), s.relay)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(leases), func(id relay.LeaseID) bool { return held[id] }), nil
}

// Arguments: leases, relay.
const sqlFinish = `
DELETE /*schema.*/outbox_lease FROM JSON_TABLE(?, '$[*]' COLUMNS (lease_id bigint PATH '$')) s
STRAIGHT_JOIN /*schema.*/outbox_lease FORCE INDEX (PRIMARY) ON outbox_lease.lease_id = s.lease_id
WHERE outbox_lease.relay = ?`

// Finish implements relay.Store.
func (s *Store) Finish(ctx context.Context, leases []relay.LeaseID) error {
	_, err := s.keep.exec(ctx, "finish", list[relay.LeaseID](leases).String(), s.relay)
	return err
}

// All leases, each beside the server that answers, which comes alone where there is no lease. No variable is both the
// server's own and known to both products, but of two servers that can follow each other, host, port or server_id differ.
// One that became a standby keeps its sessions, and only says that it is read-only.
const sqlWatch = `
SELECT CONCAT_WS(' ', @@hostname, @@port, @@server_id) AS server, CONNECTION_ID() AS session,
  CAST(@@GLOBAL.read_only AS char) AS mode,
  COALESCE(l.lease_id, 0) AS lease_id, COALESCE(l.relay, '') AS relay, COALESCE(CAST(l.renewed_at AS char), '') AS renewed_at,
  COALESCE(l.length, 0) AS length_us
FROM (SELECT 1 AS alone) answers LEFT JOIN /*schema.*/outbox_lease l ON alone = 1`

// Watch implements relay.Reclaimer.
func (s *Store) Watch(ctx context.Context) (era string, leases []relay.Lease, err error) {
	return s.watch.look(ctx)
}

// watcher looks at the leases on one connection of its own, which it opens anew only after an error, so that no silent
// reconnect hides between two looks. It counts them, since a server numbers its sessions anew at each start.
type watcher struct {
	runner *runner

	mu     sync.Mutex
	conn   *sqlx.Conn
	opened int
}

func (w *watcher) look(ctx context.Context) (era string, leases []relay.Lease, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, w.runner.limit)
	defer cancel()
	if w.conn == nil {
		if w.conn, err = w.runner.pool.Connx(ctx); err != nil {
			return "", nil, wrap("watch", err)
		}
		w.opened++
	}
	rows, err := w.conn.QueryxContext(ctx, w.runner.queries["watch"])
	if err == nil {
		err = readAll(rows, func(rows *sqlx.Rows) error {
			var l relay.Lease
			var server, mode string
			var session, length int64
			err := rows.Scan(&server, &session, &mode, &l.ID, &l.Relay, &l.Renewed, &length)
			era, l.Length = fmt.Sprint(server, " ", session, " ", w.opened), dialect.FromMicros(length)
			if l.ID != 0 {
				leases = append(leases, l)
			}
			if err == nil {
				err = writable(mode)
			}
			return err
		})
	}
	if err != nil {
		discard(w.conn) // it is in doubt: the fault of the query is the one to tell
		w.conn = nil
		return "", nil, wrap("watch", err)
	}
	return era, leases, nil
}

func (w *watcher) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == nil {
		return nil
	}
	conn := w.conn
	w.conn = nil
	return conn.Close()
}
