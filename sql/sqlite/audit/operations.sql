-- What did operators ask for, and what came of it? Open ones first, then the latest, 100 in all. An open one without an
-- applier waits for a relay. The table is small: a row for each thing that was asked for, kept a year.
SELECT id, op, filter, actor, note, dry_run, strftime('%Y-%m-%dT%H:%M:%fZ', requested_at / 1e6, 'unixepoch') AS requested_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', applied_at / 1e6, 'unixepoch') AS applied_at, affected, detail, applier
FROM outbox_operation
ORDER BY applied_at IS NOT NULL, requested_at DESC
LIMIT 100;
