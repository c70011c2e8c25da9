-- Roles of outboxd, to be granted to login roles: GRANT outbox_application TO shop. Run it after the migrations, as a
-- superuser or as somebody who may make roles and owns the tables; it can be repeated. Roles belong to the whole server:
-- a second outbox in another schema uses the same ones, with the rights that this file gives there, too.
--
--   outbox_application  writes messages, and reads what became of them; reads no payload, sets no state
--   outbox_reader       reads everything but payloads
--   outbox_operator     reader, and asks for operations
--   outbox_corrector    operator, reads payloads, and gives messages other ones
--   outbox_relay        what outboxd run does
--   outbox_migrator     owns the tables and makes new ones: outboxd migrate up

DO $do$
DECLARE
    role   text;
    schema text := (SELECT typnamespace::regnamespace FROM pg_type WHERE oid = pg_typeof(NULL::/*schema.*/outbox));
BEGIN
    FOREACH role IN ARRAY ARRAY['application', 'reader', 'operator', 'corrector', 'relay', 'migrator'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE outbox_%s NOLOGIN', role);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL; -- It is there already, or another session makes it at this moment.
        END;
        EXECUTE format('GRANT USAGE ON SCHEMA %s TO outbox_%s', schema, role);
    END LOOP;
    EXECUTE format('GRANT CREATE ON SCHEMA %s TO outbox_migrator', schema);
END
$do$;

GRANT INSERT (id, aggregatetype, aggregateid, type, payload, payload_bytes, content_type, schema_version, headers, traceparent, due_at, expires_at)
    ON /*schema.*/outbox TO outbox_application;
GRANT SELECT (id, state, reason, result, created_at, due_at, expires_at, done_at, failed_at, resolved_at)
    ON /*schema.*/outbox TO outbox_application;

GRANT SELECT (id, aggregatetype, aggregateid, type, content_type, schema_version, headers, traceparent, routing_key, seq, created_at, expires_at, due_at,
        lease_id, attempts, lapses, replays, state, unknown_since, send_id, done_at, failed_at, resolved_at, reason, error_class, last_error, result)
    ON /*schema.*/outbox TO outbox_reader, outbox_operator, outbox_corrector;
GRANT SELECT ON /*schema.*/outbox_lease, /*schema.*/outbox_attempt, /*schema.*/outbox_operation, /*schema.*/outbox_control, /*schema.*/outbox_relay,
    /*schema.*/outbox_version TO outbox_reader, outbox_operator, outbox_corrector;
GRANT SELECT (operation_id, id) ON /*schema.*/outbox_correction TO outbox_reader, outbox_operator, outbox_corrector;

GRANT INSERT (id, op, filter, actor, note, dry_run) ON /*schema.*/outbox_operation TO outbox_operator, outbox_corrector;

GRANT SELECT (payload, payload_bytes) ON /*schema.*/outbox TO outbox_corrector;
GRANT SELECT, INSERT (operation_id, id, payload, payload_bytes, old_payload, old_payload_bytes)
    ON /*schema.*/outbox_correction TO outbox_corrector;

-- The relay changes payloads for corrections only, deletes messages for retention only, and writes some only to tell what
-- became of others. It reads everything.
GRANT SELECT, DELETE, INSERT (aggregatetype, aggregateid, type, payload, traceparent) ON /*schema.*/outbox TO outbox_relay;
GRANT UPDATE (payload, payload_bytes, expires_at, due_at, lease_id, attempts, lapses, replays, state, unknown_since, send_id, done_at, failed_at,
        resolved_at, reason, error_class, last_error, result)
    ON /*schema.*/outbox TO outbox_relay;
GRANT SELECT, INSERT, UPDATE, DELETE ON /*schema.*/outbox_lease, /*schema.*/outbox_control, /*schema.*/outbox_relay TO outbox_relay;
GRANT SELECT, INSERT, DELETE ON /*schema.*/outbox_attempt TO outbox_relay;
GRANT SELECT, INSERT, DELETE ON /*schema.*/outbox_operation TO outbox_relay;
GRANT UPDATE (applied_at, affected, detail, progress, applier) ON /*schema.*/outbox_operation TO outbox_relay;
GRANT SELECT, DELETE ON /*schema.*/outbox_correction TO outbox_relay;
GRANT UPDATE (old_payload, old_payload_bytes) ON /*schema.*/outbox_correction TO outbox_relay;
GRANT SELECT ON /*schema.*/outbox_version TO outbox_relay;

GRANT EXECUTE ON FUNCTION /*schema.*/outbox_uuid7() TO outbox_application, outbox_operator, outbox_corrector, outbox_relay;
GRANT EXECUTE ON FUNCTION /*schema.*/outbox_write(text, text, text, text, text, interval, uuid) TO outbox_application;

ALTER TABLE /*schema.*/outbox OWNER TO outbox_migrator;
ALTER TABLE /*schema.*/outbox_lease OWNER TO outbox_migrator;
ALTER TABLE /*schema.*/outbox_attempt OWNER TO outbox_migrator;
ALTER TABLE /*schema.*/outbox_operation OWNER TO outbox_migrator;
ALTER TABLE /*schema.*/outbox_correction OWNER TO outbox_migrator;
ALTER TABLE /*schema.*/outbox_control OWNER TO outbox_migrator;
ALTER TABLE /*schema.*/outbox_relay OWNER TO outbox_migrator;
ALTER TABLE /*schema.*/outbox_version OWNER TO outbox_migrator;
ALTER FUNCTION /*schema.*/outbox_uuid7() OWNER TO outbox_migrator;
ALTER FUNCTION /*schema.*/outbox_write(text, text, text, text, text, interval, uuid) OWNER TO outbox_migrator;
