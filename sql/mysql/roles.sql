-- Roles of outboxd, to be granted to accounts. A role has no effect before it is the account's default role:
--
--   MySQL:    GRANT outbox_application TO shop; SET DEFAULT ROLE ALL TO shop;
--   MariaDB:  GRANT outbox_application TO shop; SET DEFAULT ROLE outbox_application FOR shop;
--
-- Run it after the migrations, in the database of the tables (mysql shop < roles.sql), as an account that may make roles and
-- grant rights there; it can be repeated. Roles belong to the whole server: a second outbox in another database uses the
-- same ones, with the rights that this file gives there, too.
--
--   outbox_application  writes messages, and reads what became of them; reads no payload, sets no state
--   outbox_reader       reads everything but payloads
--   outbox_operator     reader, and asks for operations
--   outbox_corrector    operator, reads payloads, and gives messages other ones
--   outbox_relay        what outboxd run does
--   outbox_migrator     makes and changes tables: outboxd migrate up

CREATE ROLE IF NOT EXISTS outbox_application;
CREATE ROLE IF NOT EXISTS outbox_reader;
CREATE ROLE IF NOT EXISTS outbox_operator;
CREATE ROLE IF NOT EXISTS outbox_corrector;
CREATE ROLE IF NOT EXISTS outbox_relay;
CREATE ROLE IF NOT EXISTS outbox_migrator;

GRANT INSERT (id, aggregatetype, aggregateid, type, payload, content_type, schema_version, headers, traceparent, due_at, expires_at),
    SELECT (id, state, reason, result, created_at, due_at, expires_at, done_at, failed_at, resolved_at)
    ON /*schema.*/outbox TO outbox_application;

GRANT SELECT (id, aggregatetype, aggregateid, type, content_type, schema_version, headers, traceparent, routing_key, seq, created_at, expires_at, due_at,
        lease_id, attempts, lapses, replays, state, unknown_since, send_id, done_at, failed_at, resolved_at, reason, error_class, last_error, result)
    ON /*schema.*/outbox TO outbox_reader, outbox_operator, outbox_corrector;
GRANT SELECT ON /*schema.*/outbox_lease TO outbox_reader, outbox_operator, outbox_corrector;
GRANT SELECT ON /*schema.*/outbox_attempt TO outbox_reader, outbox_operator, outbox_corrector;
GRANT SELECT ON /*schema.*/outbox_operation TO outbox_reader, outbox_operator, outbox_corrector;
GRANT SELECT ON /*schema.*/outbox_control TO outbox_reader, outbox_operator, outbox_corrector;
GRANT SELECT ON /*schema.*/outbox_relay TO outbox_reader, outbox_operator, outbox_corrector;
GRANT SELECT ON /*schema.*/outbox_version TO outbox_reader, outbox_operator, outbox_corrector;
GRANT SELECT (operation_id, id) ON /*schema.*/outbox_correction TO outbox_reader, outbox_operator, outbox_corrector;

GRANT INSERT (id, op, filter, actor, note, dry_run) ON /*schema.*/outbox_operation TO outbox_operator, outbox_corrector;

GRANT SELECT (payload) ON /*schema.*/outbox TO outbox_corrector;
GRANT SELECT, INSERT (operation_id, id, payload, old_payload) ON /*schema.*/outbox_correction TO outbox_corrector;

-- The relay changes payloads for corrections only, deletes messages for retention only, and writes some only to tell what
-- became of others. It reads everything.
GRANT SELECT, DELETE, INSERT (aggregatetype, aggregateid, type, payload, traceparent), UPDATE (payload, expires_at, due_at, lease_id, attempts, lapses, replays, state, unknown_since, send_id, done_at, failed_at,
        resolved_at, reason, error_class, last_error, result)
    ON /*schema.*/outbox TO outbox_relay;
GRANT SELECT, INSERT, UPDATE, DELETE ON /*schema.*/outbox_lease TO outbox_relay;
GRANT SELECT, INSERT, UPDATE, DELETE ON /*schema.*/outbox_control TO outbox_relay;
GRANT SELECT, INSERT, UPDATE, DELETE ON /*schema.*/outbox_relay TO outbox_relay;
GRANT SELECT, INSERT, DELETE ON /*schema.*/outbox_attempt TO outbox_relay;
GRANT SELECT, INSERT, DELETE, UPDATE (applied_at, affected, detail, progress, applier) ON /*schema.*/outbox_operation TO outbox_relay;
GRANT SELECT, DELETE, UPDATE (old_payload) ON /*schema.*/outbox_correction TO outbox_relay;
GRANT SELECT ON /*schema.*/outbox_version TO outbox_relay;

-- Later migrations make tables of other names, so this is a right on the whole database. The servers read _ in a database's
-- name as any character here: beside shop_a do not keep shopXa.
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, REFERENCES ON /*schema.*/* TO outbox_migrator;
