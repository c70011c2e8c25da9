-- Tables of outboxd for SQLite, version 1. Runs as it is in the sqlite3 shell, on the application's own database file:
-- sqlite3 FILE < 001_outbox.sql
--
-- Every statement can be repeated. The last one writes the version: as long as it is missing, the schema is unfinished, no
-- relay works with it, and running the file again completes it.
--
-- The application's own SQLite library has to read this schema and to compute its defaults and checks: version 3.31 (January
-- 2020) or later, with JSON functions, and 3.35 for INSERT … RETURNING. Therefore the tables are not STRICT: a library before
-- 3.37 could not open the file at all. The CHECKs say instead that what is stored has its column's type.
--
-- Times are whole microseconds since 1970-01-01 00:00 UTC. SQLite's clock gives milliseconds:
-- CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000

-- Readers and the writer then do not stop each other. The mode stays with the file.
PRAGMA journal_mode = WAL;

CREATE TABLE IF NOT EXISTS outbox (
    -- The identity of the command. Chosen by the application, or made here: a time-ordered UUID (RFC 9562, version 7) of 48
    -- bits of milliseconds and 74 random bits. A second INSERT of it fails.
    id             TEXT    NOT NULL DEFAULT (printf('%08x-%04x-7',
                       CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) >> 16,
                       CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) & 65535)
                       || lower(substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1)
                       || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    -- What the message is about. NULL: the type stands for it in routing_key.
    aggregatetype  TEXT,
    -- Which one it is about: the order and the Kafka key. NULL: no key and no order.
    aggregateid    TEXT,
    -- The kind of message.
    type           TEXT    NOT NULL,
    -- Media type of the body.
    content_type   TEXT    NOT NULL DEFAULT 'application/json',
    -- Version of the payload of this type.
    schema_version INTEGER NOT NULL DEFAULT 1,
    -- A JSON object of strings that travels with the message.
    headers        TEXT    NOT NULL DEFAULT '{}',
    -- W3C trace context of the writer. NULL: none.
    traceparent    TEXT,
    -- coalesce(aggregatetype, type): what routes match.
    routing_key    TEXT    NOT NULL GENERATED ALWAYS AS (coalesce(aggregatetype, type)) STORED,
    -- Order of insertion. AUTOINCREMENT, so that no number comes twice.
    seq            INTEGER NOT NULL CONSTRAINT outbox_pkey PRIMARY KEY AUTOINCREMENT,
    -- When it was inserted.
    created_at     INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
    -- If it is not sent by then it fails with reason expired. NULL: never.
    expires_at     INTEGER,
    -- From when on it may be claimed; set exactly while pending.
    due_at         INTEGER DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
    -- The lease that it is or last was under. 0: never claimed; -1: taken back from a dead relay.
    lease_id       INTEGER NOT NULL DEFAULT 0,
    -- Sends of this life that were charged to the retry budget.
    attempts       INTEGER NOT NULL DEFAULT 0,
    -- Leases that ended without an outcome, since the last outcome.
    lapses         INTEGER NOT NULL DEFAULT 0,
    -- Lives before this one.
    replays        INTEGER NOT NULL DEFAULT 0,
    -- pending, in_flight, done or failed.
    state          TEXT    NOT NULL DEFAULT 'pending',
    -- Since when a send of the wire key may have taken effect without our knowing. NULL: none.
    unknown_since  INTEGER,
    -- The wire key, where a replay gave a new one. NULL: it is the id.
    send_id        TEXT,
    -- When it became done; set exactly then.
    done_at        INTEGER,
    -- When it became failed; set exactly then.
    failed_at      INTEGER,
    -- Since when a failed message needs nothing more. NULL: it does, or is not failed.
    resolved_at    INTEGER,
    -- Why it failed; set exactly then.
    reason         TEXT,
    -- Short code of the last send that was not done, or of why it was turned back. NULL: none yet.
    error_class    TEXT,
    -- That send in words, at most 2 KiB. NULL: none yet.
    last_error     TEXT,
    -- The reference that the destination answered with, at most 255 bytes; for Kafka partition@offset. NULL: none yet.
    result         TEXT,
    -- The body, every byte kept: a text in UTF-8, or a blob. NULL: empty. It stands last, so that no other column lies
    -- behind the pages that a long one fills.
    payload        BLOB,
    CONSTRAINT outbox_id_key UNIQUE (id),
    -- What every transport can carry.
    CONSTRAINT outbox_id_check CHECK (id NOT GLOB '*[^A-Za-z0-9_-]*' AND length(id) BETWEEN 1 AND 36 AND instr(id, char(0)) = 0),
    CONSTRAINT outbox_type_check CHECK (type <> '' AND type = trim(type, char(9, 10, 11, 12, 13, 32)) AND instr(type, char(0)) = 0),
    CONSTRAINT outbox_aggregatetype_check CHECK (aggregatetype <> '' AND aggregatetype = trim(aggregatetype, char(9, 10, 11, 12, 13, 32))
        AND instr(aggregatetype, char(0)) = 0),
    CONSTRAINT outbox_payload_check CHECK (typeof(payload) IN ('blob', 'text', 'null')),
    CONSTRAINT outbox_headers_check CHECK (CASE WHEN json_valid(headers) THEN json_type(headers) = 'object' ELSE 0 END),
    -- A blob in place of a text equals no text.
    CONSTRAINT outbox_text_check CHECK (typeof(id) = 'text' AND typeof(type) = 'text' AND typeof(aggregatetype) IN ('text', 'null')
        AND typeof(aggregateid) IN ('text', 'null') AND typeof(content_type) = 'text' AND typeof(headers) = 'text'
        AND typeof(traceparent) IN ('text', 'null')),
    CONSTRAINT outbox_state_check CHECK (state IN ('pending', 'in_flight', 'done', 'failed')),
    CONSTRAINT outbox_due_check CHECK ((state = 'pending') = (due_at IS NOT NULL)),
    CONSTRAINT outbox_done_check CHECK ((state = 'done') = (done_at IS NOT NULL)),
    CONSTRAINT outbox_failed_check CHECK ((state = 'failed') = (failed_at IS NOT NULL)),
    CONSTRAINT outbox_resolved_check CHECK (resolved_at IS NULL OR state = 'failed'),
    CONSTRAINT outbox_reason_check CHECK ((state = 'failed') = (reason IS NOT NULL)
        AND reason IN ('exhausted', 'rejected', 'too_large', 'expired', 'cancelled', 'lease_lost', 'unknown')),
    -- A date as text would be later than every number and never claimed; seconds or milliseconds, which lie before
    -- 2001-09-09 if read as microseconds, would make a delayed message due, or expired, at once. The end is 9999-12-31:
    -- farther times cannot be computed with.
    CONSTRAINT outbox_times_check CHECK (typeof(created_at) = 'integer' AND typeof(expires_at) IN ('integer', 'null')
        AND typeof(due_at) IN ('integer', 'null') AND typeof(unknown_since) IN ('integer', 'null')
        AND typeof(done_at) IN ('integer', 'null') AND typeof(failed_at) IN ('integer', 'null')
        AND typeof(resolved_at) IN ('integer', 'null')
        AND created_at BETWEEN 1000000000000000 AND 253402214399999999
        AND coalesce(due_at BETWEEN 1000000000000000 AND 253402214399999999, 1)
        AND coalesce(unknown_since BETWEEN 1000000000000000 AND 253402214399999999, 1)
        AND coalesce(expires_at >= 1000000000000000, 1)),
    CONSTRAINT outbox_counters_check CHECK (attempts >= 0 AND lapses >= 0 AND replays >= 0 AND typeof(attempts) = 'integer'
        AND typeof(lapses) = 'integer' AND typeof(replays) = 'integer' AND typeof(schema_version) = 'integer'
        AND typeof(lease_id) = 'integer')
);

-- The claim's index.
CREATE INDEX IF NOT EXISTS outbox_due ON outbox (routing_key, lapses, due_at, seq) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS outbox_failed ON outbox (failed_at) WHERE failed_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS outbox_unresolved ON outbox (failed_at) WHERE failed_at IS NOT NULL AND resolved_at IS NULL;

-- One row is one claim: the right of a relay to its messages, as long as it renews it.
CREATE TABLE IF NOT EXISTS outbox_lease (
    -- A random number above 0 that the relay chose before it asked.
    lease_id   INTEGER NOT NULL CONSTRAINT outbox_lease_pkey PRIMARY KEY,
    -- Whose it is.
    relay      TEXT    NOT NULL,
    -- When the claim was made.
    claimed_at INTEGER NOT NULL,
    -- When it was last renewed, and later than the time before. Others compare it with what they saw before; nobody
    -- compares it with a clock.
    renewed_at INTEGER NOT NULL,
    -- How long it may stand still before another relay takes it, in microseconds.
    length     INTEGER NOT NULL,
    -- The messages of the claim: a JSON array of their seq, ascending.
    ids        TEXT    NOT NULL,
    -- What cannot be compared or computed with would stop every reclaim.
    CONSTRAINT outbox_lease_times_check CHECK (typeof(claimed_at) = 'integer' AND typeof(renewed_at) = 'integer'
        AND typeof(length) = 'integer' AND length BETWEEN 0 AND 86400000000),
    CONSTRAINT outbox_lease_ids_check CHECK (CASE WHEN json_valid(ids) THEN json_type(ids) = 'array' ELSE 0 END)
);

-- Append only: every send that went out and was not done, lapses, and done ones with a long answer. Kept 30 days.
CREATE TABLE IF NOT EXISTS outbox_attempt (
    -- Order of writing.
    attempt_id  INTEGER NOT NULL CONSTRAINT outbox_attempt_pkey PRIMARY KEY AUTOINCREMENT,
    -- The id of the message.
    message_id  TEXT    NOT NULL,
    -- Its replays at that time.
    life        INTEGER NOT NULL,
    -- Its attempts after this one.
    attempt     INTEGER NOT NULL,
    -- Which relay sent it, or lost it.
    relay       TEXT    NOT NULL,
    -- When the send began, or the claim of a lapse.
    started_at  INTEGER NOT NULL,
    -- From there to its end, in microseconds.
    duration    INTEGER NOT NULL,
    -- done, retry, fail, unknown or lapse.
    outcome     TEXT    NOT NULL,
    -- What was answered in numbers: the status of HTTP, the exit code of a program. NULL: none.
    status      INTEGER,
    -- Short code. NULL: a done or a lapse.
    error_class TEXT,
    -- The same in words. NULL: none.
    error       TEXT,
    -- A long answer of the destination, at most 4 KiB. NULL: none.
    answer      TEXT
);
CREATE INDEX IF NOT EXISTS outbox_attempt_message ON outbox_attempt (message_id);

-- What operators asked for, and what came of it: control surface and audit log. Kept a year.
CREATE TABLE IF NOT EXISTS outbox_operation (
    -- May be chosen by who asks.
    id           TEXT    NOT NULL DEFAULT (printf('%08x-%04x-7',
                     CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) >> 16,
                     CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) & 65535)
                     || lower(substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1)
                     || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))) CONSTRAINT outbox_operation_pkey PRIMARY KEY,
    -- replay, correct, retry_now, cancel, resolve, pause or resume; purge, instance and drill only tell what somebody did.
    op           TEXT    NOT NULL,
    -- Which messages, as a JSON object.
    filter       TEXT    NOT NULL,
    -- Who asks. SQLite knows no users: empty where nobody said it.
    actor        TEXT    NOT NULL DEFAULT '',
    -- Why, in the words of a person. NULL: not said.
    note         TEXT,
    -- 1: count only, change nothing.
    dry_run      INTEGER NOT NULL DEFAULT 0,
    -- When it was asked for.
    requested_at INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
    -- When it was finished. NULL: not yet.
    applied_at   INTEGER,
    -- How many messages it changed. NULL: not begun.
    affected     INTEGER,
    -- What was skipped and why. NULL: nothing to tell.
    detail       TEXT,
    -- Where it goes on after a crash. NULL: not begun.
    progress     TEXT,
    -- The relay that applies it. NULL: none yet.
    applier      TEXT,
    CONSTRAINT outbox_operation_op_check CHECK (op IN ('replay', 'correct', 'retry_now', 'cancel', 'resolve', 'pause', 'resume', 'purge', 'instance', 'drill')),
    CONSTRAINT outbox_operation_filter_check CHECK (CASE WHEN json_valid(filter) THEN json_type(filter) = 'object' ELSE 0 END),
    CONSTRAINT outbox_operation_dry_run_check CHECK (dry_run IN (0, 1)),
    CONSTRAINT outbox_operation_types_check CHECK (typeof(id) = 'text' AND typeof(affected) IN ('integer', 'null')),
    CONSTRAINT outbox_operation_times_check CHECK (typeof(requested_at) = 'integer' AND typeof(applied_at) IN ('integer', 'null'))
);
CREATE INDEX IF NOT EXISTS outbox_operation_open ON outbox_operation (requested_at) WHERE applied_at IS NULL;

-- The payloads of correct operations, new and old. Kept a year. Corrections are written before their operation, or in its
-- transaction, so there is no foreign key.
CREATE TABLE IF NOT EXISTS outbox_correction (
    -- The id of the operation.
    operation_id TEXT NOT NULL,
    -- The id of the message.
    id           TEXT NOT NULL,
    -- The new body, a text in UTF-8 or a blob. NULL: empty.
    payload      BLOB,
    -- The body before; where who corrects gives it, the message must still have it. NULL: not applied yet, or it was empty.
    old_payload  BLOB,
    CONSTRAINT outbox_correction_pkey PRIMARY KEY (operation_id, id),
    CONSTRAINT outbox_correction_payload_check CHECK (typeof(payload) IN ('blob', 'text', 'null') AND typeof(old_payload) IN ('blob', 'text', 'null'))
);

-- Durable facts that relays share, and facts that they show to people.
CREATE TABLE IF NOT EXISTS outbox_control (
    -- What the fact is: breaker, pause or instance.
    kind       TEXT    NOT NULL,
    -- What it is about; of a breaker destination, or destination/routing_key.
    name       TEXT    NOT NULL,
    -- The relay that it is about. Empty: all.
    owner      TEXT    NOT NULL DEFAULT '',
    -- The fact; of a breaker a JSON object of state, width, failures and last_error, of the instance one of name, actor and note. NULL: that the row exists says all.
    value      TEXT,
    -- Grows each time the owner changes; 0 where there is none.
    epoch      INTEGER NOT NULL DEFAULT 0,
    -- When it was last written.
    updated_at INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
    CONSTRAINT outbox_control_pkey PRIMARY KEY (kind, name, owner)
);

-- Relays that are alive, or were until their seen_at.
CREATE TABLE IF NOT EXISTS outbox_relay (
    -- Its name, as in leases and attempts.
    name         TEXT    NOT NULL CONSTRAINT outbox_relay_pkey PRIMARY KEY,
    -- The machine it runs on.
    host         TEXT    NOT NULL,
    -- The version of outboxd.
    version      TEXT    NOT NULL,
    -- Tells whether relays have the same configuration.
    config_hash  TEXT    NOT NULL,
    -- The destinations that it serves, a JSON array.
    destinations TEXT    NOT NULL,
    -- The instance that its configuration names. Empty: none.
    instance     TEXT    NOT NULL DEFAULT '',
    -- When it started.
    started_at   INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
    -- When it last said that it is alive.
    seen_at      INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
);

-- Migrations that are finished, one row each.
CREATE TABLE IF NOT EXISTS outbox_version (
    -- The number of the file.
    version    INTEGER NOT NULL CONSTRAINT outbox_version_pkey PRIMARY KEY,
    -- The oldest relay that may still run: the version of the schema that it was built for.
    admits     INTEGER NOT NULL,
    -- When.
    applied_at INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
);

INSERT INTO outbox_version (version, admits) VALUES (1, 1) ON CONFLICT (version) DO NOTHING;
