package postgres

import (
	"context"
	"strconv"
	"sync"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// $1 leases, $2 relay. What does not come back is gone or in other hands.
const sqlRenew = `
UPDATE /*schema.*/outbox_lease SET renewed_at = now() WHERE lease_id = ANY ($1::bigint[]) AND relay = $2::text
RETURNING lease_id`

// Renew implements relay.Store.
func (p *Store) Renew(ctx context.Context, leases []relay.LeaseID) (lost []relay.LeaseID, err error) {
	held := map[relay.LeaseID]bool{}
	err = p.keep.query(ctx, "renew", func(rows *sqlx.Rows) error {
		var id relay.LeaseID
		err := rows.Scan(&id)
		held[id] = true
		return err
	}, leaseArray(leases), p.relay)
	if err != nil {
		return nil, err
	}
	for _, id := range leases {
		if !held[id] {
			lost = append(lost, id)
		}
	}
	return lost, nil
}

// $1 leases, $2 relay.
const sqlFinish = `
DELETE FROM /*schema.*/outbox_lease WHERE lease_id = ANY ($1::bigint[]) AND relay = $2::text`

// Finish implements relay.Store.
func (p *Store) Finish(ctx context.Context, leases []relay.LeaseID) error {
	_, err := p.keep.exec(ctx, "finish", leaseArray(leases), p.relay)
	return err
}

func leaseArray(leases []relay.LeaseID) pq.Int64Array {
	ids := make(pq.Int64Array, len(leases))
	for i, id := range leases {
		ids[i] = int64(id)
	}
	return ids
}

// All leases, each beside the server that answers, which comes alone where there is no lease. A server is known by its
// start and its address: a standby that took over has others, and may show an older renewal. One that became read-only
// keeps its sessions, and says so.
const sqlWatch = `
SELECT pg_postmaster_start_time()::text || ' ' || coalesce(host(inet_server_addr()) || ' ' || inet_server_port(), '') AS server,
  pg_backend_pid() AS session, current_setting('transaction_read_only') AS read_only, coalesce(l.lease_id, 0) AS lease_id, coalesce(l.relay, '') AS relay,
  coalesce(l.renewed_at::text, '') AS renewed_at, coalesce((extract(epoch FROM l.length) * 1000000)::bigint, 0) AS length_us
FROM (VALUES (true)) AS answers(alone) LEFT JOIN /*schema.*/outbox_lease l ON alone`

// Watch implements relay.Reclaimer.
func (p *Store) Watch(ctx context.Context) (era string, leases []relay.Lease, err error) {
	return p.watch.look(ctx)
}

// watcher looks at the leases on one connection of its own, which it opens anew only after an error, so that no silent
// reconnect hides between two looks. Behind a pooler sessions change from call to call, and the server alone is the era.
type watcher struct {
	runner *runner

	mu   sync.Mutex
	conn *sqlx.Conn
}

func (w *watcher) look(ctx context.Context) (era string, leases []relay.Lease, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	scan := func(rows *sqlx.Rows) error {
		var l relay.Lease
		var server, readOnly string
		var session, length int64
		err := rows.Scan(&server, &session, &readOnly, &l.ID, &l.Relay, &l.Renewed, &length)
		era, l.Length = server, dialect.FromMicros(length)
		if w.conn != nil {
			era += " " + strconv.FormatInt(session, 10)
		}
		if l.ID != 0 {
			leases = append(leases, l)
		}
		if readOnly == "on" {
			return errReadOnly
		}
		return err
	}
	if w.runner.db.pooler {
		err = w.runner.query(ctx, "watch", scan)
	} else {
		err = w.own(ctx, scan)
	}
	if err != nil {
		return "", nil, err
	}
	return era, leases, nil
}

// own runs the query on the watcher's own connection.
func (w *watcher) own(ctx context.Context, scan func(*sqlx.Rows) error) error {
	ctx, cancel := context.WithTimeout(ctx, w.runner.limit)
	defer cancel()
	if w.conn == nil {
		conn, err := w.runner.pool.Connx(ctx)
		if err != nil {
			return wrap("watch", err)
		}
		w.conn = conn
	}
	rows, err := w.conn.QueryxContext(ctx, w.runner.queries["watch"])
	if err == nil {
		err = readAll(rows, scan)
	}
	if err != nil {
		_ = w.conn.Close() // it is in doubt: the fault of the query is the one to tell
		w.conn = nil
	}
	return w.runner.told(wrap("watch", err))
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
