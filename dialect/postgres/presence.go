package postgres

import (
	"context"

	"github.com/lib/pq"

	"github.com/outboxd/outboxd/dialect"
	"github.com/outboxd/outboxd/relay"
)

// started_at stays that of the first beat. $1 relay, $2 host, $3 version, $4 hash of the configuration, $5 destinations,
// $6 instance.
const sqlBeat = `
INSERT INTO /*schema.*/outbox_relay (name, host, version, config_hash, destinations, instance)
VALUES ($1::text, $2::text, $3::text, $4::text, $5::text[], $6::text)
ON CONFLICT (name) DO UPDATE SET host = excluded.host, version = excluded.version,
  config_hash = excluded.config_hash, destinations = excluded.destinations, instance = excluded.instance,
  seen_at = now()`

// What a relay left that was killed goes after a day: relays are named anew at each start unless they are told a name. Rows
// that others hold are passed over, so that it waits for nobody; ON CONFLICT would wait. $1 relay, $2 names of its breakers,
// $3 what they are.
const sqlShow = `
WITH b AS (
  SELECT name, value FROM unnest($2::text[], $3::text[]) AS b(name, value)),
free AS MATERIALIZED (
  SELECT name, owner FROM /*schema.*/outbox_control
  WHERE kind = 'breaker' AND (owner = $1::text OR updated_at < now() - interval '1 day') FOR UPDATE SKIP LOCKED),
gone AS (
  DELETE FROM /*schema.*/outbox_control c USING free f
  WHERE c.kind = 'breaker' AND c.name = f.name AND c.owner = f.owner AND (f.owner <> $1::text OR f.name <> ALL ($2::text[]))),
dead AS (
  DELETE FROM /*schema.*/outbox_relay WHERE name = ANY (ARRAY(
    SELECT name FROM /*schema.*/outbox_relay
    WHERE name <> $1::text AND seen_at < now() - interval '1 day' FOR UPDATE SKIP LOCKED))),
u AS (
  UPDATE /*schema.*/outbox_control c SET value = b.value, updated_at = now() FROM free f JOIN b USING (name)
  WHERE f.owner = $1::text AND c.kind = 'breaker' AND c.name = f.name AND c.owner = f.owner)
INSERT INTO /*schema.*/outbox_control (kind, name, owner, value)
SELECT 'breaker', name, $1::text, value FROM b
WHERE NOT EXISTS (
  SELECT FROM /*schema.*/outbox_control c WHERE c.kind = 'breaker' AND c.name = b.name AND c.owner = $1::text)`

// Beat implements relay.Presence.
func (p *Store) Beat(ctx context.Context, b relay.Beat) error {
	destinations := append(pq.StringArray{}, b.Destinations...) // a nil array would be NULL
	if _, err := p.keep.exec(ctx, "beat", p.relay, b.Host, b.Version, b.ConfigHash, destinations, b.Instance); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dialect.ShowFor)
	defer cancel()
	names, values := pq.StringArray{}, pq.StringArray{}
	for _, s := range b.Breakers {
		name, value := dialect.BreakerRow(s)
		names, values = append(names, name), append(values, value)
	}
	_, _ = p.keep.exec(ctx, "show", p.relay, names, values) // no failed beat: the next one shows them
	return nil
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
