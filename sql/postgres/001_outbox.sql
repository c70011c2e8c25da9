-- Tables of outboxd for PostgreSQL 13 and later, version 1. Runs as it is in psql, into the first schema of the search_path,
-- or rendered for another schema by: outboxd migrate print --schema NAME.
--
-- Every statement can be repeated. The last one writes the version: as long as it is missing, the schema is unfinished, no
-- relay works with it, and running the file again completes it.

DO $do$
BEGIN
    IF current_setting('server_version_num')::integer < 130000 THEN
        RAISE EXCEPTION 'outboxd needs PostgreSQL 13 or later, this server is %', current_setting('server_version');
    END IF;
END
$do$;

-- A time-ordered UUID (RFC 9562, version 7), so that INSERTs stay at the right edge of the key's index. PostgreSQL 18 brings
-- its own. Before, it is 48 bits of milliseconds and 12 bits of their fraction with the version between, then 62 random
-- bits. One expression without FROM, so that the planner puts it into the INSERT in place of a call.
DO $do$
BEGIN
    IF current_setting('server_version_num')::integer >= 180000 THEN
        CREATE OR REPLACE FUNCTION /*schema.*/outbox_uuid7() RETURNS uuid LANGUAGE sql VOLATILE AS 'SELECT uuidv7()';
    ELSE
        CREATE OR REPLACE FUNCTION /*schema.*/outbox_uuid7() RETURNS uuid LANGUAGE sql VOLATILE AS $$
            SELECT (overlay(lpad(to_hex((extract(epoch FROM clock_timestamp()) * 4096000)::bigint), 15, '0') PLACING '7' FROM 13 FOR 0)
                || substr(gen_random_uuid()::text, 20))::uuid
        $$;
    END IF;
END
$do$;

-- What the application writes stands first and never changes; what the relay writes stands last. A new version of a row on
-- the same page then logs only the bytes from the first to the last changed one.
CREATE TABLE IF NOT EXISTS /*schema.*/outbox (
    id             uuid        NOT NULL DEFAULT /*schema.*/outbox_uuid7(),
    aggregatetype  text,
    aggregateid    text,
    type           text        NOT NULL,
    payload        text,
    payload_bytes  bytea,
    content_type   text        NOT NULL DEFAULT 'application/json',
    schema_version integer     NOT NULL DEFAULT 1,
    headers        text        NOT NULL DEFAULT '{}',
    traceparent    text,
    routing_key    text        NOT NULL GENERATED ALWAYS AS (coalesce(aggregatetype, type)) STORED,
    seq            bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at     timestamptz,
    due_at         timestamptz DEFAULT clock_timestamp(),
    lease_id       bigint      NOT NULL DEFAULT 0,
    attempts       integer     NOT NULL DEFAULT 0,
    lapses         integer     NOT NULL DEFAULT 0,
    replays        integer     NOT NULL DEFAULT 0,
    state          text        NOT NULL DEFAULT 'pending',
    unknown_since  timestamptz,
    send_id        uuid,
    done_at        timestamptz,
    failed_at      timestamptz,
    resolved_at    timestamptz,
    reason         text,
    error_class    text,
    last_error     text,
    result         text,
    CONSTRAINT outbox_pkey PRIMARY KEY (id),
    CONSTRAINT outbox_type_check CHECK (type <> '' AND type = btrim(type, E' \t\n\r\v\f')),
    CONSTRAINT outbox_aggregatetype_check CHECK (aggregatetype <> '' AND aggregatetype = btrim(aggregatetype, E' \t\n\r\v\f')),
    CONSTRAINT outbox_payload_check CHECK (payload IS NULL OR payload_bytes IS NULL),
    CONSTRAINT outbox_headers_check CHECK (json_typeof(headers::json) = 'object'),
    CONSTRAINT outbox_state_check CHECK (state IN ('pending', 'in_flight', 'done', 'failed')),
    CONSTRAINT outbox_due_check CHECK ((state = 'pending') = (due_at IS NOT NULL)),
    CONSTRAINT outbox_done_check CHECK ((state = 'done') = (done_at IS NOT NULL)),
    CONSTRAINT outbox_failed_check CHECK ((state = 'failed') = (failed_at IS NOT NULL)),
    CONSTRAINT outbox_resolved_check CHECK (resolved_at IS NULL OR state = 'failed'),
    CONSTRAINT outbox_reason_check CHECK ((state = 'failed') = (reason IS NOT NULL)
        AND reason IN ('exhausted', 'rejected', 'too_large', 'expired', 'cancelled', 'lease_lost', 'unknown')),
    -- Infinite times would make every claim that meets them fail: an age cannot be computed from one before version 17.
    CONSTRAINT outbox_times_check CHECK (due_at > '-infinity' AND due_at < '9999-12-31 00:00:00+00'
        AND isfinite(created_at) AND isfinite(unknown_since)),
    CONSTRAINT outbox_counters_check CHECK (attempts >= 0 AND lapses >= 0 AND replays >= 0)
) WITH (
    -- Two versions of a row must fit its page, so that done touches no index; an eager vacuum keeps dead index entries few.
    fillfactor = 45,
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.02
);

-- The claim's index. No index and no predicate may name state, lease_id, attempts, done_at or result: done would be no
-- HOT update any more.
CREATE INDEX IF NOT EXISTS outbox_due ON /*schema.*/outbox (routing_key, lapses, due_at, seq) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS outbox_failed ON /*schema.*/outbox (failed_at) WHERE failed_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS outbox_unresolved ON /*schema.*/outbox (failed_at) WHERE failed_at IS NOT NULL AND resolved_at IS NULL;

COMMENT ON TABLE /*schema.*/outbox IS 'One row is one message: a command or an event that the application wrote in its own transaction, for outboxd to send.';
COMMENT ON COLUMN /*schema.*/outbox.id IS 'The identity of the command. Chosen by the application, or made here; a second INSERT of it fails.';
COMMENT ON COLUMN /*schema.*/outbox.aggregatetype IS 'What the message is about. NULL: the type stands for it in routing_key.';
COMMENT ON COLUMN /*schema.*/outbox.aggregateid IS 'Which one it is about: the order and the Kafka key. NULL: no key and no order.';
COMMENT ON COLUMN /*schema.*/outbox.type IS 'The kind of message.';
COMMENT ON COLUMN /*schema.*/outbox.payload IS 'The body, every byte kept. NULL: see payload_bytes; both NULL: empty.';
COMMENT ON COLUMN /*schema.*/outbox.payload_bytes IS 'The body where text cannot hold it. NULL: see payload.';
COMMENT ON COLUMN /*schema.*/outbox.content_type IS 'Media type of the body.';
COMMENT ON COLUMN /*schema.*/outbox.schema_version IS 'Version of the payload of this type.';
COMMENT ON COLUMN /*schema.*/outbox.headers IS 'A JSON object of strings that travels with the message.';
COMMENT ON COLUMN /*schema.*/outbox.traceparent IS 'W3C trace context of the writer. NULL: none.';
COMMENT ON COLUMN /*schema.*/outbox.routing_key IS 'coalesce(aggregatetype, type): what routes match.';
COMMENT ON COLUMN /*schema.*/outbox.seq IS 'Order of insertion.';
COMMENT ON COLUMN /*schema.*/outbox.created_at IS 'When it was inserted.';
COMMENT ON COLUMN /*schema.*/outbox.expires_at IS 'If it is not sent by then it fails with reason expired. NULL: never.';
COMMENT ON COLUMN /*schema.*/outbox.due_at IS 'From when on it may be claimed; set exactly while pending.';
COMMENT ON COLUMN /*schema.*/outbox.lease_id IS 'The lease that it is or last was under. 0: never claimed; -1: taken back from a dead relay.';
COMMENT ON COLUMN /*schema.*/outbox.attempts IS 'Sends of this life that were charged to the retry budget.';
COMMENT ON COLUMN /*schema.*/outbox.lapses IS 'Leases that ended without an outcome, since the last outcome.';
COMMENT ON COLUMN /*schema.*/outbox.replays IS 'Lives before this one.';
COMMENT ON COLUMN /*schema.*/outbox.state IS 'pending, in_flight, done or failed.';
COMMENT ON COLUMN /*schema.*/outbox.unknown_since IS 'Since when a send of the wire key may have taken effect without our knowing. NULL: none.';
COMMENT ON COLUMN /*schema.*/outbox.send_id IS 'The wire key, where a replay gave a new one. NULL: it is the id.';
COMMENT ON COLUMN /*schema.*/outbox.done_at IS 'When it became done; set exactly then.';
COMMENT ON COLUMN /*schema.*/outbox.failed_at IS 'When it became failed; set exactly then.';
COMMENT ON COLUMN /*schema.*/outbox.resolved_at IS 'Since when a failed message needs nothing more. NULL: it does, or is not failed.';
COMMENT ON COLUMN /*schema.*/outbox.reason IS 'Why it failed; set exactly then.';
COMMENT ON COLUMN /*schema.*/outbox.error_class IS 'Short code of the last send that was not done, or of why it was turned back. NULL: none yet.';
COMMENT ON COLUMN /*schema.*/outbox.last_error IS 'That send in words, at most 2 KiB. NULL: none yet.';
COMMENT ON COLUMN /*schema.*/outbox.result IS 'The reference that the destination answered with, at most 255 bytes; for Kafka partition@offset. NULL: none yet.';

CREATE TABLE IF NOT EXISTS /*schema.*/outbox_lease (
    lease_id   bigint      NOT NULL CONSTRAINT outbox_lease_pkey PRIMARY KEY,
    relay      text        NOT NULL,
    claimed_at timestamptz NOT NULL,
    renewed_at timestamptz NOT NULL,
    length     interval    NOT NULL,
    ids        uuid[]      NOT NULL,
    -- What cannot be compared or computed with would stop every reclaim.
    CONSTRAINT outbox_lease_times_check CHECK (isfinite(claimed_at) AND isfinite(renewed_at) AND length BETWEEN '0' AND '1 day')
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

COMMENT ON TABLE /*schema.*/outbox_lease IS 'One row is one claim: the right of a relay to its messages, as long as it renews it.';
COMMENT ON COLUMN /*schema.*/outbox_lease.lease_id IS 'A random number above 0 that the relay chose before it asked.';
COMMENT ON COLUMN /*schema.*/outbox_lease.relay IS 'Whose it is.';
COMMENT ON COLUMN /*schema.*/outbox_lease.claimed_at IS 'When the claim was made.';
COMMENT ON COLUMN /*schema.*/outbox_lease.renewed_at IS 'When it was last renewed. Others compare it with what they saw before; nobody compares it with a clock.';
COMMENT ON COLUMN /*schema.*/outbox_lease.length IS 'How long it may stand still before another relay takes it.';
COMMENT ON COLUMN /*schema.*/outbox_lease.ids IS 'The messages of the claim, ascending.';

CREATE TABLE IF NOT EXISTS /*schema.*/outbox_attempt (
    attempt_id  bigint      NOT NULL GENERATED ALWAYS AS IDENTITY CONSTRAINT outbox_attempt_pkey PRIMARY KEY,
    message_id  uuid        NOT NULL,
    life        integer     NOT NULL,
    attempt     integer     NOT NULL,
    relay       text        NOT NULL,
    started_at  timestamptz NOT NULL,
    duration    interval    NOT NULL,
    outcome     text        NOT NULL,
    status      integer,
    error_class text,
    error       text,
    answer      text
);
CREATE INDEX IF NOT EXISTS outbox_attempt_message ON /*schema.*/outbox_attempt (message_id);

COMMENT ON TABLE /*schema.*/outbox_attempt IS 'Append only: every send that went out and was not done, lapses, and done ones with a long answer. Kept 30 days.';
COMMENT ON COLUMN /*schema.*/outbox_attempt.attempt_id IS 'Order of writing.';
COMMENT ON COLUMN /*schema.*/outbox_attempt.message_id IS 'The id of the message.';
COMMENT ON COLUMN /*schema.*/outbox_attempt.life IS 'Its replays at that time.';
COMMENT ON COLUMN /*schema.*/outbox_attempt.attempt IS 'Its attempts after this one.';
COMMENT ON COLUMN /*schema.*/outbox_attempt.relay IS 'Which relay sent it, or lost it.';
COMMENT ON COLUMN /*schema.*/outbox_attempt.started_at IS 'When the send began, or the claim of a lapse.';
COMMENT ON COLUMN /*schema.*/outbox_attempt.duration IS 'From there to its end.';
COMMENT ON COLUMN /*schema.*/outbox_attempt.outcome IS 'done, retry, fail, unknown or lapse.';
COMMENT ON COLUMN /*schema.*/outbox_attempt.status IS 'What was answered in numbers: the status of HTTP, the exit code of a program. NULL: none.';
COMMENT ON COLUMN /*schema.*/outbox_attempt.error_class IS 'Short code. NULL: a done or a lapse.';
COMMENT ON COLUMN /*schema.*/outbox_attempt.error IS 'The same in words. NULL: none.';
COMMENT ON COLUMN /*schema.*/outbox_attempt.answer IS 'A long answer of the destination, at most 4 KiB. NULL: none.';

CREATE TABLE IF NOT EXISTS /*schema.*/outbox_operation (
    id           uuid        NOT NULL DEFAULT /*schema.*/outbox_uuid7() CONSTRAINT outbox_operation_pkey PRIMARY KEY,
    op           text        NOT NULL,
    filter       text        NOT NULL,
    actor        text        NOT NULL DEFAULT session_user,
    note         text,
    dry_run      boolean     NOT NULL DEFAULT false,
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    applied_at   timestamptz,
    affected     bigint,
    detail       text,
    progress     text,
    applier      text,
    CONSTRAINT outbox_operation_op_check CHECK (op IN ('replay', 'correct', 'retry_now', 'cancel', 'resolve', 'pause', 'resume', 'purge', 'instance', 'drill')),
    CONSTRAINT outbox_operation_filter_check CHECK (json_typeof(filter::json) = 'object')
);
CREATE INDEX IF NOT EXISTS outbox_operation_open ON /*schema.*/outbox_operation (requested_at) WHERE applied_at IS NULL;

COMMENT ON TABLE /*schema.*/outbox_operation IS 'What operators asked for, and what came of it: control surface and audit log. Kept a year.';
COMMENT ON COLUMN /*schema.*/outbox_operation.id IS 'May be chosen by who asks.';
COMMENT ON COLUMN /*schema.*/outbox_operation.op IS 'replay, correct, retry_now, cancel, resolve, pause or resume; purge, instance and drill only tell what somebody did.';
COMMENT ON COLUMN /*schema.*/outbox_operation.filter IS 'Which messages, as a JSON object; of a drill what came of it.';
COMMENT ON COLUMN /*schema.*/outbox_operation.actor IS 'Who asks.';
COMMENT ON COLUMN /*schema.*/outbox_operation.note IS 'Why, in the words of a person. NULL: not said.';
COMMENT ON COLUMN /*schema.*/outbox_operation.dry_run IS 'Count only, change nothing.';
COMMENT ON COLUMN /*schema.*/outbox_operation.requested_at IS 'When it was asked for.';
COMMENT ON COLUMN /*schema.*/outbox_operation.applied_at IS 'When it was finished. NULL: not yet.';
COMMENT ON COLUMN /*schema.*/outbox_operation.affected IS 'How many messages it changed. NULL: not begun.';
COMMENT ON COLUMN /*schema.*/outbox_operation.detail IS 'What was skipped and why. NULL: nothing to tell.';
COMMENT ON COLUMN /*schema.*/outbox_operation.progress IS 'Where it goes on after a crash. NULL: not begun.';
COMMENT ON COLUMN /*schema.*/outbox_operation.applier IS 'The relay that applies it. NULL: none yet.';

-- Corrections are written before their operation, or in its transaction, so there is no foreign key.
CREATE TABLE IF NOT EXISTS /*schema.*/outbox_correction (
    operation_id      uuid NOT NULL,
    id                uuid NOT NULL,
    payload           text,
    payload_bytes     bytea,
    old_payload       text,
    old_payload_bytes bytea,
    CONSTRAINT outbox_correction_pkey PRIMARY KEY (operation_id, id),
    CONSTRAINT outbox_correction_payload_check CHECK (payload IS NULL OR payload_bytes IS NULL)
);

COMMENT ON TABLE /*schema.*/outbox_correction IS 'The payloads of correct operations, new and old. Kept a year.';
COMMENT ON COLUMN /*schema.*/outbox_correction.operation_id IS 'The id of the operation.';
COMMENT ON COLUMN /*schema.*/outbox_correction.id IS 'The id of the message.';
COMMENT ON COLUMN /*schema.*/outbox_correction.payload IS 'The new body. NULL: see payload_bytes; both NULL: empty.';
COMMENT ON COLUMN /*schema.*/outbox_correction.payload_bytes IS 'The new body where text cannot hold it. NULL: see payload.';
COMMENT ON COLUMN /*schema.*/outbox_correction.old_payload IS 'The body before; where who corrects gives it, the message must still have it. NULL: not applied yet, or see old_payload_bytes; both NULL: it was empty.';
COMMENT ON COLUMN /*schema.*/outbox_correction.old_payload_bytes IS 'The body before where text cannot hold it, as old_payload. NULL: see there.';

CREATE TABLE IF NOT EXISTS /*schema.*/outbox_control (
    kind       text        NOT NULL,
    name       text        NOT NULL,
    owner      text        NOT NULL DEFAULT '',
    value      text,
    epoch      bigint      NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT outbox_control_pkey PRIMARY KEY (kind, name, owner)
);

COMMENT ON TABLE /*schema.*/outbox_control IS 'Durable facts that relays share, and facts that they show to people.';
COMMENT ON COLUMN /*schema.*/outbox_control.kind IS 'What the fact is: breaker, pause or instance.';
COMMENT ON COLUMN /*schema.*/outbox_control.name IS 'What it is about; of a breaker destination, or destination/routing_key.';
COMMENT ON COLUMN /*schema.*/outbox_control.owner IS 'The relay that it is about. Empty: all.';
COMMENT ON COLUMN /*schema.*/outbox_control.value IS 'The fact; of a breaker a JSON object of state, width, failures and last_error, of the instance one of name, actor and note. NULL: that the row exists says all.';
COMMENT ON COLUMN /*schema.*/outbox_control.epoch IS 'Grows each time the owner changes; 0 where there is none.';
COMMENT ON COLUMN /*schema.*/outbox_control.updated_at IS 'When it was last written.';

CREATE TABLE IF NOT EXISTS /*schema.*/outbox_relay (
    name         text        NOT NULL CONSTRAINT outbox_relay_pkey PRIMARY KEY,
    host         text        NOT NULL,
    version      text        NOT NULL,
    config_hash  text        NOT NULL,
    destinations text[]      NOT NULL,
    instance     text        NOT NULL DEFAULT '',
    started_at   timestamptz NOT NULL DEFAULT now(),
    seen_at      timestamptz NOT NULL DEFAULT now()
);

COMMENT ON TABLE /*schema.*/outbox_relay IS 'Relays that are alive, or were until their seen_at.';
COMMENT ON COLUMN /*schema.*/outbox_relay.name IS 'Its name, as in leases and attempts.';
COMMENT ON COLUMN /*schema.*/outbox_relay.host IS 'The machine it runs on.';
COMMENT ON COLUMN /*schema.*/outbox_relay.version IS 'The version of outboxd.';
COMMENT ON COLUMN /*schema.*/outbox_relay.config_hash IS 'Tells whether relays have the same configuration.';
COMMENT ON COLUMN /*schema.*/outbox_relay.destinations IS 'The destinations that it serves.';
COMMENT ON COLUMN /*schema.*/outbox_relay.instance IS 'The instance that its configuration names. Empty: none.';
COMMENT ON COLUMN /*schema.*/outbox_relay.started_at IS 'When it started.';
COMMENT ON COLUMN /*schema.*/outbox_relay.seen_at IS 'When it last said that it is alive.';

-- Writes one message, for triggers, scripts and languages where a call is easier than an INSERT. It trims the blanks that
-- fixed-width hosts pad with, and picks up the trace of SET LOCAL outbox.traceparent. The role of the application suffices.
CREATE OR REPLACE FUNCTION /*schema.*/outbox_write(
    p_type text, p_payload text, p_aggregateid text DEFAULT NULL, p_aggregatetype text DEFAULT NULL,
    p_headers text DEFAULT '{}', p_delay interval DEFAULT '0', p_id uuid DEFAULT NULL
) RETURNS uuid LANGUAGE sql VOLATILE SET search_path FROM CURRENT AS $$
    INSERT INTO /*schema.*/outbox (id, aggregatetype, aggregateid, type, payload, headers, traceparent, due_at)
    VALUES (coalesce(p_id, /*schema.*/outbox_uuid7()), rtrim(p_aggregatetype), p_aggregateid, rtrim(p_type), p_payload, p_headers,
        nullif(current_setting('outbox.traceparent', true), ''), clock_timestamp() + p_delay)
    RETURNING id
$$;

CREATE TABLE IF NOT EXISTS /*schema.*/outbox_version (
    version    integer     NOT NULL CONSTRAINT outbox_version_pkey PRIMARY KEY,
    admits     integer     NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

COMMENT ON TABLE /*schema.*/outbox_version IS 'Migrations that are finished, one row each.';
COMMENT ON COLUMN /*schema.*/outbox_version.version IS 'The number of the file.';
COMMENT ON COLUMN /*schema.*/outbox_version.admits IS 'The oldest relay that may still run: the version of the schema that it was built for.';
COMMENT ON COLUMN /*schema.*/outbox_version.applied_at IS 'When.';

INSERT INTO /*schema.*/outbox_version (version, admits) VALUES (1, 1) ON CONFLICT (version) DO NOTHING;
