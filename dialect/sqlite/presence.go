package sqlite

import (
	"context"
	"encoding/json"

	"github.com/jmoiron/sqlx"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// started_at stays that of the first beat. ?1 relay, ?2 host, ?3 version, ?4 hash of the configuration, ?5 destinations, a
// JSON array, ?6 instance.
const sqlBeat = `
INSERT INTO outbox_relay (name, host, version, config_hash, destinations, instance) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (name) DO UPDATE SET host = excluded.host, version = excluded.version, config_hash = excluded.config_hash,
  destinations = excluded.destinations, instance = excluded.instance, seen_at = excluded.seen_at`

// ?1 relay, ?2 a JSON object of the breakers by name. The words before ON keep it from being read as that of a join.
const sqlBreakers = `
INSERT INTO outbox_control (kind, name, owner, value)
SELECT 'breaker', key, ?1, value FROM json_each(?2) WHERE true
ON CONFLICT (kind, name, owner) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`

// What this relay has no more goes, and what one left that was killed, after a day: relays are named anew at each start
// unless they are told a name. ?1 relay, ?2 as above.
const sqlBuryBreakers = `
DELETE FROM outbox_control
WHERE kind = 'breaker' AND (owner = ?1 AND name NOT IN (SELECT key FROM json_each(?2)) OR owner <> ?1 AND updated_at < ` + sqlNow + ` - 86400000000)`

// ?1 relay.
const sqlBuryRelays = `
DELETE FROM outbox_relay WHERE name <> ?1 AND seen_at < ` + sqlNow + ` - 86400000000`

// Beat implements relay.Presence. The breakers are a transaction of their own, as on the other databases: what becomes of it
// is no matter of the beat, since the next one shows them.
func (s *Store) Beat(ctx context.Context, b relay.Beat) error {
	destinations, err := json.Marshal(append([]string{}, b.Destinations...)) // a nil slice would be null
	if err != nil {
		return err
	}
	err = s.write(ctx, "beat", func(ctx context.Context, tx *sqlx.Tx) error {
		return execAll(ctx, tx, statement{sqlBeat, []any{s.relay, b.Host, b.Version, b.ConfigHash, string(destinations), b.Instance}})
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dialect.ShowFor)
	defer cancel()
	_ = s.show(ctx, b.Breakers)
	return nil
}

// show writes the breakers, and takes away what is no more.
func (s *Store) show(ctx context.Context, states []relay.BreakerState) error {
	values := make(map[string]json.RawMessage, len(states))
	for _, state := range states {
		name, value := dialect.BreakerRow(state)
		values[name] = json.RawMessage(value)
	}
	breakers, err := json.Marshal(values)
	if err != nil {
		return err
	}
	return s.write(ctx, "show", func(ctx context.Context, tx *sqlx.Tx) error {
		return execAll(ctx, tx,
			statement{sqlBreakers, []any{s.relay, string(breakers)}},
			statement{sqlBuryBreakers, []any{s.relay, string(breakers)}},
			statement{sqlBuryRelays, []any{s.relay}})
	})
}

// ?1 relay.
const (
	sqlLeaveBreakers = `
DELETE FROM outbox_control WHERE kind = 'breaker' AND owner = ?1`
	sqlLeave = `
DELETE FROM outbox_relay WHERE name = ?1`
)

// Peers implements relay.Presence.
func (s *Store) Peers(ctx context.Context) ([]relay.Peer, error) { return s.Inspector.Peers(ctx) }

// Leave implements relay.Presence.
func (s *Store) Leave(ctx context.Context) error {
	return s.write(ctx, "leave", func(ctx context.Context, tx *sqlx.Tx) error {
		return execAll(ctx, tx, statement{sqlLeaveBreakers, []any{s.relay}}, statement{sqlLeave, []any{s.relay}})
	})
}

// statement is one of several that one transaction runs.
type statement struct {
	text string
	args []any
}

func execAll(ctx context.Context, tx *sqlx.Tx, statements ...statement) error {
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s.text, s.args...); err != nil {
			return err
		}
	}
	return nil
}
