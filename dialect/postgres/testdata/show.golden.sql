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
  SELECT FROM /*schema.*/outbox_control c WHERE c.kind = 'breaker' AND c.name = b.name AND c.owner = $1::text);
