package mysql

import (
	"context"
	"encoding/json"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// started_at stays that of the first beat. Arguments: relay, host, version, hash of the configuration, destinations.
const sqlBeat = `
INSERT INTO /*schema.*/outbox_relay (name, host, version, config_hash, destinations)
SELECT name, host, version, config_hash, destinations
FROM (SELECT ? AS name, ? AS host, ? AS version, ? AS config_hash, ? AS destinations) b
ON DUPLICATE KEY UPDATE host = b.host, version = b.version, config_hash = b.config_hash, destinations = b.destinations,
  seen_at = UTC_TIMESTAMP(6)`

// Arguments: relay, breakers.
const sqlBeatBreakers = `
INSERT INTO /*schema.*/outbox_control (kind, name, owner, value)
SELECT 'breaker', b.name, ?, b.value
FROM JSON_TABLE(?, '$[*]' COLUMNS (
  name varchar(400) CHARACTER SET utf8mb4 PATH '$[0]', value text CHARACTER SET utf8mb4 PATH '$[1]')) b
ON DUPLICATE KEY UPDATE value = b.value, updated_at = UTC_TIMESTAMP(6)`

// Breakers that this relay has no more, and what a relay left that was killed a day ago: relays are named anew at each
// start unless they are told a name. Read without locks and then deleted by their keys, since a DELETE that scans would
// wait for the beats of others. Arguments: relay, relay.
const sqlForgotten = `
SELECT TRUE AS breaker, name, owner FROM /*schema.*/outbox_control
WHERE kind = 'breaker' AND (owner = ? OR updated_at < UTC_TIMESTAMP(6) - INTERVAL 1 DAY)
UNION ALL
SELECT FALSE, name, name FROM /*schema.*/outbox_relay WHERE name <> ? AND seen_at < UTC_TIMESTAMP(6) - INTERVAL 1 DAY`

// Arguments: name, owner, relay.
const sqlForgetBreaker = `
DELETE FROM /*schema.*/outbox_control
WHERE kind = 'breaker' AND name = ? AND owner = ? AND (owner = ? OR updated_at < UTC_TIMESTAMP(6) - INTERVAL 1 DAY)`

// Argument: relay.
const sqlForgetRelay = `
DELETE FROM /*schema.*/outbox_relay WHERE name = ? AND seen_at < UTC_TIMESTAMP(6) - INTERVAL 1 DAY`

// Beat implements relay.Presence. One transaction, so that people never see a relay without its breakers.
func (s *Store) Beat(ctx context.Context, b relay.Beat) error {
	breakers, shown := make(list[[2]string], len(b.Breakers)), map[string]bool{}
	for i, state := range b.Breakers {
		name, value := dialect.BreakerRow(state)
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		breakers[i] = [2]string{name, string(text)}
		shown[breakers[i][0]] = true
	}
	return s.keep.transaction(ctx, "beat", func(ctx context.Context, tx session) error {
		_, err := tx.exec(ctx, "beat", s.relay, b.Host, b.Version, b.ConfigHash, list[string](b.Destinations).String())
		if err != nil {
			return err
		}
		if _, err := tx.exec(ctx, "beat_breakers", s.relay, breakers.String()); err != nil {
			return err
		}
		return s.forget(ctx, tx, shown)
	})
}

// forgotten is a row that goes: of a breaker, or of a relay where owner is its own name.
type forgotten struct {
	breaker     bool
	name, owner string
}

// forget deletes what nobody shows any more.
func (s *Store) forget(ctx context.Context, tx session, shown map[string]bool) error {
	var all []forgotten
	err := tx.query(ctx, "forgotten", func(rows *sqlx.Rows) error {
		var f forgotten
		err := rows.Scan(&f.breaker, &f.name, &f.owner)
		if !f.breaker || f.owner != s.relay || !shown[f.name] {
			all = append(all, f)
		}
		return err
	}, s.relay, s.relay)
	for _, f := range all {
		if err != nil {
			break
		}
		if f.breaker {
			_, err = tx.exec(ctx, "forget_breaker", f.name, f.owner, s.relay)
		} else {
			_, err = tx.exec(ctx, "forget_relay", f.name)
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
