package sqlite

import (
	"context"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// Two renewals within a millisecond, or after the clock stepped back, have to look different, so renewed_at always grows.
const sqlRenewedAt = `renewed_at = max(renewed_at + 1, ` + sqlNow + `)`

// ?1 leases, a JSON array, ?2 relay. What does not come back is gone or in other hands.
const sqlRenew = `
UPDATE outbox_lease SET ` + sqlRenewedAt + `
WHERE lease_id IN (SELECT value FROM json_each(?1)) AND relay = ?2 RETURNING lease_id`

// Renew implements relay.Store.
func (s *Store) Renew(ctx context.Context, leases []relay.LeaseID) (lost []relay.LeaseID, err error) {
	if len(leases) == 0 {
		return nil, nil
	}
	which, err := array(leases)
	if err != nil {
		return nil, err
	}
	var held []relay.LeaseID
	err = s.write(ctx, "renew", func(ctx context.Context, tx *sqlx.Tx) error {
		return sqlx.SelectContext(ctx, tx, &held, sqlRenew, which, s.relay)
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(leases), func(id relay.LeaseID) bool { return slices.Contains(held, id) }), nil
}

// ?1 leases, a JSON array, ?2 relay.
const sqlFinish = `
DELETE FROM outbox_lease WHERE lease_id IN (SELECT value FROM json_each(?1)) AND relay = ?2`

// Finish implements relay.Store.
func (s *Store) Finish(ctx context.Context, leases []relay.LeaseID) error {
	if len(leases) == 0 {
		return nil
	}
	which, err := array(leases)
	if err != nil {
		return err
	}
	return s.write(ctx, "finish", func(ctx context.Context, tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, sqlFinish, which, s.relay)
		return err
	})
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
	err = s.read(ctx, "watch", func(ctx context.Context, q sqlx.ExtContext) error {
		return sqlx.SelectContext(ctx, q, &rows, sqlWatch)
	})
	if err != nil {
		return "", nil, err
	}
	for _, r := range rows {
		r.Lease.Length = dialect.FromMicros(r.LengthMicros)
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
	if w.file == nil || !os.SameFile(w.file, file) {
		d.forget()
		w.eras++
	}
	w.file = file
	return strconv.Itoa(w.eras), nil
}
