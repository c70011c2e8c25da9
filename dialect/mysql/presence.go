package mysql

import (
	"context"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// started_at stays that of the first beat. Arguments: relay, host, version, hash of the configuration, destinations, instance.
const sqlBeat = `
INSERT INTO /*schema.*/outbox_relay (name, host, version, config_hash, destinations, instance)
SELECT name, host, version, config_hash, destinations, instance
FROM (SELECT ? AS name, ? AS host, ? AS version, ? AS config_hash, ? AS destinations, ? AS instance) b
ON DUPLICATE KEY UPDATE host = b.host, version = b.version, config_hash = b.config_hash, destinations = b.destinations,
  instance = b.instance, seen_at = UTC_TIMESTAMP(6)`

// The breakers of this relay, and those that a relay left that was killed a day ago: relays are named anew at each start
// unless they are told a name. Argument: relay.
const sqlBreakers = `
SELECT name, owner FROM /*schema.*/outbox_control
WHERE kind = 'breaker' AND (owner = ? OR updated_at < UTC_TIMESTAMP(6) - INTERVAL 1 DAY)`

// Locks those of them that nobody else holds, by their keys: a scan would lock those of other relays in passing. Argument:
// pairs of name and owner.
const sqlFreeBreakers = `
SELECT c.name, c.owner
FROM (SELECT name, owner FROM JSON_TABLE(?, '$[*]' COLUMNS (
  name varchar(400) CHARACTER SET utf8mb4 PATH '$[0]', owner varchar(255) CHARACTER SET utf8mb4 PATH '$[1]')) j LIMIT 1000000) s
STRAIGHT_JOIN /*schema.*/outbox_control c FORCE INDEX (PRIMARY) ON c.kind = 'breaker' AND c.name = s.name AND c.owner = s.owner
FOR UPDATE SKIP LOCKED`

// Arguments: relay, breakers.
const sqlShow = `
INSERT INTO /*schema.*/outbox_control (kind, name, owner, value)
SELECT 'breaker', b.name, ?, b.value
FROM JSON_TABLE(?, '$[*]' COLUMNS (
  name varchar(400) CHARACTER SET utf8mb4 PATH '$[0]', value text CHARACTER SET utf8mb4 PATH '$[1]')) b
ON DUPLICATE KEY UPDATE value = b.value, updated_at = UTC_TIMESTAMP(6)`

// Arguments: name, owner, relay.
const sqlForgetBreaker = `
DELETE FROM /*schema.*/outbox_control
WHERE kind = 'breaker' AND name = ? AND owner = ? AND (owner = ? OR updated_at < UTC_TIMESTAMP(6) - INTERVAL 1 DAY)`

// Relays that were killed a day ago and that nobody else holds. Argument: relay.
const sqlDead = `
SELECT name FROM /*schema.*/outbox_relay
WHERE name <> ? AND seen_at < UTC_TIMESTAMP(6) - INTERVAL 1 DAY FOR UPDATE SKIP LOCKED`

// Argument: relay.
const sqlForgetRelay = `
DELETE FROM /*schema.*/outbox_relay WHERE name = ?`

// Beat implements relay.Presence.
func (s *Store) Beat(ctx context.Context, b relay.Beat) error {
	_, err := s.keep.exec(ctx, "beat", s.relay, b.Host, b.Version, b.ConfigHash, list[string](b.Destinations).String(), b.Instance)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dialect.ShowFor)
	defer cancel()
	// Neither is a failed beat: the next one does it.
	_ = s.keep.transaction(ctx, "show", func(ctx context.Context, tx session) error { return s.show(ctx, tx, b.Breakers) })
	_ = s.keep.transaction(ctx, "dead", s.bury)
	return nil
}

// show writes the breakers and takes away those that are no more, but for rows that others hold: it waits for none.
func (s *Store) show(ctx context.Context, tx session, breakers []relay.BreakerState) error {
	known, err := keys(ctx, tx, "breakers", s.relay)
	if err != nil {
		return err
	}
	free, err := keys(ctx, tx, "free_breakers", known.String())
	if err != nil {
		return err
	}
	rows, shown := list[[2]string]{}, map[string]bool{}
	for _, state := range breakers {
		name, value := dialect.BreakerRow(state)
		shown[name] = true
		if key := [2]string{name, s.relay}; slices.Contains(free, key) || !slices.Contains(known, key) {
			rows = append(rows, [2]string{name, value})
		}
	}
	if _, err := tx.exec(ctx, "show", s.relay, rows.String()); err != nil {
		return err
	}
	for _, key := range free {
		if name, owner := key[0], key[1]; owner != s.relay || !shown[name] {
			if _, err := tx.exec(ctx, "forget_breaker", name, owner, s.relay); err != nil {
				return err
			}
		}
	}
	return nil
}

// keys runs a query for breakers' names and owners.
func keys(ctx context.Context, tx session, name string, args ...any) (all list[[2]string], err error) {
	err = tx.query(ctx, name, func(rows *sqlx.Rows) error {
		var key [2]string
		err := rows.Scan(&key[0], &key[1])
		all = append(all, key)
		return err
	}, args...)
	return all, err
}

// bury takes away relays that are dead.
func (s *Store) bury(ctx context.Context, tx session) error {
	var dead []string
	err := tx.query(ctx, "dead", func(rows *sqlx.Rows) error {
		var name string
		err := rows.Scan(&name)
		dead = append(dead, name)
		return err
	}, s.relay)
	for _, name := range dead {
		if err == nil {
			_, err = tx.exec(ctx, "forget_relay", name)
		}
	}
	return err
}

// Argument: relay.
const sqlLeaveBreakers = `
DELETE FROM /*schema.*/outbox_control WHERE kind = 'breaker' AND owner = ?`

// Argument: relay.
const sqlLeave = `
DELETE FROM /*schema.*/outbox_relay WHERE name = ?`

// Peers implements relay.Presence.
func (s *Store) Peers(ctx context.Context) ([]relay.Peer, error) { return s.Inspector.Peers(ctx) }

// Leave implements relay.Presence.
func (s *Store) Leave(ctx context.Context) error {
	return s.keep.transaction(ctx, "leave", func(ctx context.Context, tx session) error {
		if _, err := tx.exec(ctx, "leave_breakers", s.relay); err != nil {
			return err
		}
		_, err := tx.exec(ctx, "leave", s.relay)
		return err
	})
}
