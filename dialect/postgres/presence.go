package postgres

import (
	"context"
	"encoding/json"

	"github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// One statement, so that people never see a relay without its breakers. started_at stays that of the first beat. What a
// relay left that was killed goes after a day: relays are named anew at each start unless they are told a name. $1 relay,
// $2 host, $3 version, $4 hash of the configuration, $5 destinations, $6 names of the breakers, $7 what they are.
const sqlBeat = `
WITH r AS (
  INSERT INTO /*schema.*/outbox_relay (name, host, version, config_hash, destinations)
  VALUES ($1::text, $2::text, $3::text, $4::text, $5::text[])
  ON CONFLICT (name) DO UPDATE SET host = excluded.host, version = excluded.version,
    config_hash = excluded.config_hash, destinations = excluded.destinations, seen_at = now()),
gone AS (
  DELETE FROM /*schema.*/outbox_control WHERE kind = 'breaker'
    AND (owner = $1::text AND name <> ALL ($6::text[]) OR owner <> $1::text AND updated_at < now() - interval '1 day')),
dead AS (
  DELETE FROM /*schema.*/outbox_relay WHERE name <> $1::text AND seen_at < now() - interval '1 day')
INSERT INTO /*schema.*/outbox_control (kind, name, owner, value)
SELECT 'breaker', name, $1::text, value FROM unnest($6::text[], $7::text[]) AS b(name, value)
ON CONFLICT (kind, name, owner) DO UPDATE SET value = excluded.value, updated_at = now()`

// Beat implements relay.Presence.
func (p *Store) Beat(ctx context.Context, b relay.Beat) error {
	names, values := pq.StringArray{}, pq.StringArray{}
	for _, s := range b.Breakers {
		name, value := dialect.BreakerRow(s)
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		names, values = append(names, name), append(values, string(text))
	}
	destinations := append(pq.StringArray{}, b.Destinations...) // a nil array would be NULL
	_, err := p.keep.exec(ctx, "beat", p.relay, b.Host, b.Version, b.ConfigHash, destinations, names, values)
	return err
}

// Peers implements relay.Presence.
func (p *Store) Peers(ctx context.Context) ([]relay.Peer, error) { return p.Inspector.Peers(ctx) }

// $1 relay.
const sqlLeave = `
WITH gone AS (DELETE FROM /*schema.*/outbox_control WHERE kind = 'breaker' AND owner = $1::text)
DELETE FROM /*schema.*/outbox_relay WHERE name = $1::text`

// Leave implements relay.Presence.
func (p *Store) Leave(ctx context.Context) error {
	_, err := p.keep.exec(ctx, "leave", p.relay)
	return err
}
