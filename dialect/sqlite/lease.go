package sqlite

import (
	"context"
	"os"
	"strconv"
	"sync"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// Two renewals within a millisecond, or after the clock stepped back, have to look different, so renewed_at always grows.
const sqlRenewedAt = `renewed_at = max(renewed_at + 1, ` + sqlNow + `)`

// ?1 lease, ?2 relay. What it does not find is gone or in other hands.
const sqlRenew = `
UPDATE outbox_lease SET ` + sqlRenewedAt + ` WHERE lease_id = ?1 AND relay = ?2`

// Renew implements relay.Store.
func (s *Store) Renew(ctx context.Context, leases []relay.LeaseID) (lost []relay.LeaseID, err error) {
	return s.eachLease(ctx, "renew", sqlRenew, leases)
}

// ?1 lease, ?2 relay.
const sqlFinish = `
DELETE FROM outbox_lease WHERE lease_id = ?1 AND relay = ?2`

// Finish implements relay.Store.
func (s *Store) Finish(ctx context.Context, leases []relay.LeaseID) error {
	_, err := s.eachLease(ctx, "finish", sqlFinish, leases)
	return err
}

// eachLease writes each lease of ours, and gives those that it did not find.
func (s *Store) eachLease(ctx context.Context, name, query string, leases []relay.LeaseID) (missed []relay.LeaseID, err error) {
	if len(leases) == 0 {
		return nil, nil
	}
	err = s.write(ctx, name, func(ctx context.Context, tx *sqlx.Tx) error {
		return prepared(ctx, tx, query, func(one *sqlx.Stmt) error {
			for _, id := range leases {
				n, err := affected(one.ExecContext(ctx, int64(id), s.relay))
				if err != nil {
					return err
				}
				if n == 0 {
					missed = append(missed, id)
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return missed, nil
}

const sqlWatch = `
SELECT lease_id AS id, relay, CAST(renewed_at AS TEXT) AS renewed, length AS length_us FROM outbox_lease`

// Watch implements relay.Reclaimer. SQLite has no server whose start would begin an era, and no session that could lead to
// another one: the file is all there is. One that was replaced by another of its name is another era.
func (s *Store) Watch(ctx context.Context) (era string, leases []relay.Lease, err error) {
	if era, err = s.watch.look(s.db); err != nil {
		return "", nil, s.db.wrap("watch", err)
	}
	var rows []struct {
		relay.Lease
		LengthMicros int64 `json:"length_us"`
	}
	err = s.read(ctx, "watch", func(ctx context.Context, q *sqlx.DB) error {
		return q.SelectContext(ctx, &rows, sqlWatch)
	})
	if err != nil {
		return "", nil, err
	}
	for _, r := range rows {
		r.Length = dialect.FromMicros(r.LengthMicros)
		leases = append(leases, r.Lease)
	}
	return era, leases, nil
}

// watcher tells one file from the next at the same path.
type watcher struct {
	mu   sync.Mutex
	file os.FileInfo
	eras int
}

// look counts a new era where the file is not the one that it was, and lets no connection to the old one be used again.
func (w *watcher) look(d *DB) (era string, err error) {
	file, err := os.Stat(d.path)
	if err != nil {
		return "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil && !os.SameFile(w.file, file) {
		d.forget()
		w.eras++
	}
	w.file = file
	return strconv.Itoa(w.eras), nil
}
