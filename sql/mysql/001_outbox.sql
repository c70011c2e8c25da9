-- Tables of outboxd for MySQL 8.0.17 and MariaDB 10.6 and later, version 1. Runs as it is in the client of either, in the
-- database that is in use, or rendered for another one by: outboxd migrate print --schema NAME. Where the two products
-- differ, a comment that only one of them reads makes the difference: /*!80017 for MySQL, /*M!100600 for MariaDB.
--
-- Every statement can be repeated. The last one writes the version: as long as it is missing, the schema is unfinished, no
-- relay works with it, and running the file again completes it.
--
-- How it differs from the tables of PostgreSQL, and why:
--   No column that a relay writes grows: an InnoDB page that INSERTs filled would have to split. So columns have a fixed
--   width, and 1000-01-01 stands for a time that never came, 9999-12-31 for the due_at of all that is not pending.
--   All times are UTC, whatever time zone a session has.
--   Columns that the application writes are one character wider than their CHECK allows. A session without a strict
--   sql_mode cuts what is too long; the CHECK then still sees that it was, and refuses it.
--   A NULL where there is a default is refused, too, where such a session would make '' or 0 of it.

CREATE TABLE IF NOT EXISTS /*schema.*/outbox (
    -- A time-ordered UUID (RFC 9562, version 7), so that INSERTs stay at the right edge of the key's index: 48 bits of
    -- milliseconds, 10 of the microseconds behind them, 2 at random, 60 out of a hash. TIMESTAMPDIFF, since UNIX_TIMESTAMP
    -- would read a time of day as one of the session's time zone. RAND() within the sum, since MariaDB computes a text
    -- that is constant for a statement only once for as long as it keeps the table open. UUID() alone repeats itself on
    -- servers that have the same network address, as containers do, and RAND() within a server; hashed together they do not.
    id             varchar(37)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT (LOWER(CONCAT(
                       INSERT(INSERT(LPAD(CONVERT(HEX(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000 * 4096
                           + TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) MOD 1000 * 4
                           + CAST(FLOOR(RAND() * 4) AS SIGNED)) USING ascii), 15, '0'), 13, 0, '-7'), 9, 0, '-'),
                       '-8', INSERT(LEFT(CONVERT(SHA2(CONCAT(UUID(), RAND()), 256) USING ascii), 15), 4, 0, '-'))))
                   COMMENT 'The identity of the command. Chosen by the application, or made here; a second INSERT of it fails.',
    aggregatetype  varchar(256) COMMENT 'What the message is about. NULL: the type stands for it in routing_key.',
    aggregateid    varchar(256) COMMENT 'Which one it is about: the order and the Kafka key. NULL: no key and no order.',
    type           varchar(256) NOT NULL COMMENT 'The kind of message.',
    payload        longblob     COMMENT 'The body, every byte kept. NULL: empty.',
    content_type   varchar(256) NOT NULL DEFAULT 'application/json' COMMENT 'Media type of the body.',
    schema_version integer      NOT NULL DEFAULT 1 COMMENT 'Version of the payload of this type.',
    headers        mediumtext   NOT NULL DEFAULT ('{}') COMMENT 'A JSON object of strings that travels with the message.',
    traceparent    varchar(256) COMMENT 'W3C trace context of the writer. NULL: none.',
    routing_key    varchar(256) GENERATED ALWAYS AS (COALESCE(aggregatetype, type)) STORED
                   COMMENT 'COALESCE(aggregatetype, type): what routes match.',
    seq            bigint       NOT NULL AUTO_INCREMENT COMMENT 'Order of insertion.',
    created_at     datetime(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)) COMMENT 'When it was inserted.',
    expires_at     datetime(6)  COMMENT 'If it is not sent by then it fails with reason expired. UTC. NULL: never.',
    due_at         datetime(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6))
                   COMMENT 'From when on it may be claimed; below 9999-12-31 exactly while pending. UTC.',
    lease_id       bigint       NOT NULL DEFAULT 0
                   COMMENT 'The lease that it is or last was under. 0: never claimed; -1: taken back from a dead relay.',
    attempts       integer      NOT NULL DEFAULT 0 COMMENT 'Sends of this life that were charged to the retry budget.',
    lapses         integer      NOT NULL DEFAULT 0 COMMENT 'Leases that ended without an outcome, since the last outcome.',
    replays        integer      NOT NULL DEFAULT 0 COMMENT 'Lives before this one.',
    state          char(9)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'pending'
                   COMMENT 'pending, in_flight, done or failed.',
    unknown_since  datetime(6)  NOT NULL DEFAULT '1000-01-01 00:00:00'
                   COMMENT 'Since when a send of the wire key may have taken effect without our knowing. 1000-01-01: none.',
    send_id        char(36)     CHARACTER SET ascii COLLATE ascii_bin
                   COMMENT 'The wire key, where a replay gave a new one. NULL: it is the id.',
    done_at        datetime(6)  NOT NULL DEFAULT '1000-01-01 00:00:00' COMMENT 'When it became done. 1000-01-01: it is not.',
    failed_at      datetime(6)  NOT NULL DEFAULT '1000-01-01 00:00:00' COMMENT 'When it became failed. 1000-01-01: it is not.',
    resolved_at    datetime(6)  NOT NULL DEFAULT '1000-01-01 00:00:00'
                   COMMENT 'Since when a failed message needs nothing more. 1000-01-01: it does, or is not failed.',
    reason         varchar(16)  CHARACTER SET ascii COLLATE ascii_bin COMMENT 'Why it failed; set exactly then.',
    error_class    varchar(32)
                   COMMENT 'Short code of the last send that was not done, or of why it was turned back. NULL: none yet.',
    last_error     text         COMMENT 'That send in words, at most 2 KiB. NULL: none yet.',
    result         varchar(255) NOT NULL DEFAULT '                                                                '
                   COMMENT 'The reference that the destination answered with, at most 255 bytes, with blanks behind it up to 64; for Kafka partition@offset. Blank: none yet.',
    CONSTRAINT outbox_pkey PRIMARY KEY (seq),
    CONSTRAINT outbox_id_key UNIQUE (id),
    -- The claim's index. No index may name state, lease_id, attempts, done_at or result: done would change an index.
    INDEX outbox_due (routing_key, lapses, due_at, seq),
    INDEX outbox_failed (failed_at),
    INDEX outbox_unresolved (resolved_at, failed_at),
    -- A negated class, since $ also matches before a line feed at the end.
    CONSTRAINT outbox_id_check CHECK (id <> '' AND CHAR_LENGTH(id) <= 36 AND id NOT REGEXP '[^A-Za-z0-9_-]'),
    -- ASCII gives the first byte, 0 for ''. Blanks are tab, line feed, vertical tab, form feed, carriage return, space.
    CONSTRAINT outbox_type_check CHECK (ASCII(type) NOT IN (0, 9, 10, 11, 12, 13, 32)
        AND ASCII(RIGHT(type, 1)) NOT IN (0, 9, 10, 11, 12, 13, 32)),
    CONSTRAINT outbox_aggregatetype_check CHECK (ASCII(aggregatetype) NOT IN (0, 9, 10, 11, 12, 13, 32)
        AND ASCII(RIGHT(aggregatetype, 1)) NOT IN (0, 9, 10, 11, 12, 13, 32)),
    CONSTRAINT outbox_length_check CHECK (CHAR_LENGTH(type) <= 255 AND CHAR_LENGTH(content_type) <= 255
        AND CHAR_LENGTH(aggregatetype) <= 255 AND CHAR_LENGTH(aggregateid) <= 255 AND CHAR_LENGTH(traceparent) <= 255),
    CONSTRAINT outbox_content_type_check CHECK (content_type <> ''),
    CONSTRAINT outbox_schema_version_check CHECK (schema_version > 0),
    CONSTRAINT outbox_headers_check CHECK (JSON_VALID(headers) AND JSON_TYPE(headers) = 'OBJECT'),
    CONSTRAINT outbox_state_check CHECK (state IN ('pending', 'in_flight', 'done', 'failed')),
    CONSTRAINT outbox_due_check CHECK ((state = 'pending') = (due_at < TIMESTAMP'9999-12-31 00:00:00')),
    CONSTRAINT outbox_done_check CHECK ((state = 'done') = (done_at > TIMESTAMP'1000-01-01 00:00:00')),
    CONSTRAINT outbox_failed_check CHECK ((state = 'failed') = (failed_at > TIMESTAMP'1000-01-01 00:00:00')),
    CONSTRAINT outbox_resolved_check CHECK (resolved_at = TIMESTAMP'1000-01-01 00:00:00' OR state = 'failed'),
    CONSTRAINT outbox_reason_check CHECK ((state = 'failed') = (reason IS NOT NULL)
        AND reason IN ('exhausted', 'rejected', 'too_large', 'expired', 'cancelled', 'lease_lost', 'unknown')),
    -- Zero dates, which a session without a strict sql_mode makes of NULL and of nonsense, are below all of these.
    CONSTRAINT outbox_times_check CHECK (due_at > TIMESTAMP'1000-01-01 00:00:00' AND due_at <= TIMESTAMP'9999-12-31 00:00:00'
        AND created_at > TIMESTAMP'1000-01-01 00:00:00' AND unknown_since >= TIMESTAMP'1000-01-01 00:00:00'
        AND done_at >= TIMESTAMP'1000-01-01 00:00:00' AND failed_at >= TIMESTAMP'1000-01-01 00:00:00'
        AND resolved_at >= TIMESTAMP'1000-01-01 00:00:00' AND expires_at > TIMESTAMP'1000-01-01 00:00:00'),
    CONSTRAINT outbox_counters_check CHECK (attempts >= 0 AND lapses >= 0 AND replays >= 0)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
    DEFAULT CHARACTER SET = utf8mb4 /*!80017 COLLATE = utf8mb4_0900_bin */ /*M!100600 COLLATE = utf8mb4_nopad_bin */
    COMMENT 'One row is one message: a command or an event that the application wrote in its own transaction, for outboxd to send.';

CREATE TABLE IF NOT EXISTS /*schema.*/outbox_lease (
    lease_id   bigint       NOT NULL COMMENT 'A random number above 0 that the relay chose before it asked.',
    relay      varchar(255) NOT NULL COMMENT 'Whose it is.',
    claimed_at datetime(6)  NOT NULL COMMENT 'When the claim was made.',
    renewed_at datetime(6)  NOT NULL
               COMMENT 'When it was last renewed. Others compare it with what they saw before; nobody compares it with a clock.',
    length     bigint       NOT NULL COMMENT 'How long it may stand still before another relay takes it, in microseconds.',
    ids        mediumtext   CHARACTER SET ascii COLLATE ascii_bin NOT NULL
               COMMENT 'The messages of the claim: a JSON array of their seq, ascending.',
    CONSTRAINT outbox_lease_pkey PRIMARY KEY (lease_id),
    -- What cannot be compared or computed with would stop every reclaim.
    CONSTRAINT outbox_lease_times_check CHECK (claimed_at > TIMESTAMP'1000-01-01 00:00:00'
        AND renewed_at > TIMESTAMP'1000-01-01 00:00:00' AND length BETWEEN 0 AND 86400000000),
    CONSTRAINT outbox_lease_ids_check CHECK (JSON_VALID(ids) AND JSON_TYPE(ids) = 'ARRAY')
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
    DEFAULT CHARACTER SET = utf8mb4 /*!80017 COLLATE = utf8mb4_0900_bin */ /*M!100600 COLLATE = utf8mb4_nopad_bin */
    COMMENT 'One row is one claim: the right of a relay to its messages, as long as it renews it.';

CREATE TABLE IF NOT EXISTS /*schema.*/outbox_attempt (
    attempt_id  bigint       NOT NULL AUTO_INCREMENT COMMENT 'Order of writing.',
    message_id  varchar(36)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'The id of the message.',
    life        integer      NOT NULL COMMENT 'Its replays at that time.',
    attempt     integer      NOT NULL COMMENT 'Its attempts after this one.',
    relay       varchar(255) NOT NULL COMMENT 'Which relay sent it, or lost it.',
    started_at  datetime(6)  NOT NULL COMMENT 'When the send began, or the claim of a lapse.',
    duration    bigint       NOT NULL COMMENT 'From there to its end, in microseconds.',
    outcome     varchar(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'done, retry, fail, unknown or lapse.',
    status      integer      COMMENT 'What was answered in numbers: the status of HTTP, the exit code of a program. NULL: none.',
    error_class varchar(32)  COMMENT 'Short code. NULL: a done or a lapse.',
    error       text         COMMENT 'The same in words. NULL: none.',
    answer      text         COMMENT 'A long answer of the destination, at most 4 KiB. NULL: none.',
    CONSTRAINT outbox_attempt_pkey PRIMARY KEY (attempt_id),
    INDEX outbox_attempt_message (message_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
    DEFAULT CHARACTER SET = utf8mb4 /*!80017 COLLATE = utf8mb4_0900_bin */ /*M!100600 COLLATE = utf8mb4_nopad_bin */
    COMMENT 'Append only: every send that went out and was not done, lapses, and done ones with a long answer. Kept 30 days.';

CREATE TABLE IF NOT EXISTS /*schema.*/outbox_operation (
    id           varchar(37)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT (LOWER(CONCAT(
                     INSERT(INSERT(LPAD(CONVERT(HEX(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000 * 4096
                         + TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) MOD 1000 * 4
                         + CAST(FLOOR(RAND() * 4) AS SIGNED)) USING ascii), 15, '0'), 13, 0, '-7'), 9, 0, '-'),
                     '-8', INSERT(LEFT(CONVERT(SHA2(CONCAT(UUID(), RAND()), 256) USING ascii), 15), 4, 0, '-'))))
                 COMMENT 'May be chosen by who asks.',
    op           varchar(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL
                 COMMENT 'replay, correct, retry_now, cancel, resolve, pause or resume; purge, instance and drill only tell what somebody did.',
    filter       mediumtext   NOT NULL COMMENT 'Which messages, as a JSON object; of a drill what came of it.',
    actor        varchar(255) NOT NULL DEFAULT (SESSION_USER()) COMMENT 'Who asks.',
    note         text         COMMENT 'Why, in the words of a person. NULL: not said.',
    dry_run      boolean      NOT NULL DEFAULT false COMMENT 'Count only, change nothing.',
    requested_at datetime(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)) COMMENT 'When it was asked for.',
    applied_at   datetime(6)  COMMENT 'When it was finished. NULL: not yet.',
    affected     bigint       COMMENT 'How many messages it changed. NULL: not begun.',
    detail       mediumtext   COMMENT 'What was skipped and why. NULL: nothing to tell.',
    progress     mediumtext   COMMENT 'Where it goes on after a crash. NULL: not begun.',
    applier      varchar(255) COMMENT 'The relay that applies it. NULL: none yet.',
    CONSTRAINT outbox_operation_pkey PRIMARY KEY (id),
    INDEX outbox_operation_open (applied_at, requested_at),
    CONSTRAINT outbox_operation_id_check CHECK (id <> '' AND CHAR_LENGTH(id) <= 36 AND id NOT REGEXP '[^A-Za-z0-9_-]'),
    CONSTRAINT outbox_operation_op_check CHECK (op IN ('replay', 'correct', 'retry_now', 'cancel', 'resolve', 'pause', 'resume', 'purge', 'instance', 'drill')),
    CONSTRAINT outbox_operation_filter_check CHECK (JSON_VALID(filter) AND JSON_TYPE(filter) = 'OBJECT'),
    CONSTRAINT outbox_operation_actor_check CHECK (actor <> ''),
    CONSTRAINT outbox_operation_dry_run_check CHECK (dry_run IN (0, 1))
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
    DEFAULT CHARACTER SET = utf8mb4 /*!80017 COLLATE = utf8mb4_0900_bin */ /*M!100600 COLLATE = utf8mb4_nopad_bin */
    COMMENT 'What operators asked for, and what came of it: control surface and audit log. Kept a year.';

-- Corrections are written before their operation, or in its transaction, so there is no foreign key.
CREATE TABLE IF NOT EXISTS /*schema.*/outbox_correction (
    operation_id varchar(37) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'The id of the operation.',
    id           varchar(37) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'The id of the message.',
    payload      longblob    COMMENT 'The new body. NULL: empty.',
    old_payload  longblob    COMMENT 'The body before; where who corrects gives it, the message must still have it. NULL: not applied yet, or it was empty.',
    CONSTRAINT outbox_correction_pkey PRIMARY KEY (operation_id, id),
    CONSTRAINT outbox_correction_id_check CHECK (operation_id <> '' AND CHAR_LENGTH(operation_id) <= 36
        AND id <> '' AND CHAR_LENGTH(id) <= 36)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
    DEFAULT CHARACTER SET = utf8mb4 /*!80017 COLLATE = utf8mb4_0900_bin */ /*M!100600 COLLATE = utf8mb4_nopad_bin */
    COMMENT 'The payloads of correct operations, new and old. Kept a year.';

CREATE TABLE IF NOT EXISTS /*schema.*/outbox_control (
    kind       varchar(32)  NOT NULL COMMENT 'What the fact is: breaker, pause or instance.',
    name       varchar(400) NOT NULL COMMENT 'What it is about; of a breaker destination, or destination/routing_key.',
    owner      varchar(255) NOT NULL DEFAULT '' COMMENT 'The relay that it is about. Empty: all.',
    value      mediumtext
               COMMENT 'The fact; of a breaker a JSON object of state, width, failures and last_error, of the instance one of name, actor and note. NULL: that the row exists says all.',
    epoch      bigint       NOT NULL DEFAULT 0 COMMENT 'Grows each time the owner changes; 0 where there is none.',
    updated_at datetime(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)) COMMENT 'When it was last written.',
    CONSTRAINT outbox_control_pkey PRIMARY KEY (kind, name, owner)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
    DEFAULT CHARACTER SET = utf8mb4 /*!80017 COLLATE = utf8mb4_0900_bin */ /*M!100600 COLLATE = utf8mb4_nopad_bin */
    COMMENT 'Durable facts that relays share, and facts that they show to people.';

CREATE TABLE IF NOT EXISTS /*schema.*/outbox_relay (
    name         varchar(255) NOT NULL COMMENT 'Its name, as in leases and attempts.',
    host         varchar(255) NOT NULL COMMENT 'The machine it runs on.',
    version      varchar(255) NOT NULL COMMENT 'The version of outboxd.',
    config_hash  varchar(255) NOT NULL COMMENT 'Tells whether relays have the same configuration.',
    destinations mediumtext   NOT NULL COMMENT 'The destinations that it serves: a JSON array of their names.',
    instance     varchar(255) NOT NULL DEFAULT '' COMMENT 'The instance that its configuration names. Empty: none.',
    started_at   datetime(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)) COMMENT 'When it started.',
    seen_at      datetime(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)) COMMENT 'When it last said that it is alive.',
    CONSTRAINT outbox_relay_pkey PRIMARY KEY (name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
    DEFAULT CHARACTER SET = utf8mb4 /*!80017 COLLATE = utf8mb4_0900_bin */ /*M!100600 COLLATE = utf8mb4_nopad_bin */
    COMMENT 'Relays that are alive, or were until their seen_at.';

CREATE TABLE IF NOT EXISTS /*schema.*/outbox_version (
    version    integer     NOT NULL COMMENT 'The number of the file.',
    admits     integer     NOT NULL COMMENT 'The oldest relay that may still run: the version of the schema that it was built for.',
    applied_at datetime(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)) COMMENT 'When.',
    CONSTRAINT outbox_version_pkey PRIMARY KEY (version)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
    DEFAULT CHARACTER SET = utf8mb4 /*!80017 COLLATE = utf8mb4_0900_bin */ /*M!100600 COLLATE = utf8mb4_nopad_bin */
    COMMENT 'Migrations that are finished, one row each.';

INSERT INTO /*schema.*/outbox_version (version, admits) VALUES (1, 1) ON DUPLICATE KEY UPDATE version = version;
