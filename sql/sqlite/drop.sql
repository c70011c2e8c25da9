-- Removes all that the migrations of outboxd made, and every message with it. Nothing else is touched, and the file stays in
-- WAL mode. sqlite3 -bail FILE < drop.sql

BEGIN IMMEDIATE;
DROP TABLE IF EXISTS outbox;
DROP TABLE IF EXISTS outbox_lease;
DROP TABLE IF EXISTS outbox_attempt;
DROP TABLE IF EXISTS outbox_operation;
DROP TABLE IF EXISTS outbox_correction;
DROP TABLE IF EXISTS outbox_control;
DROP TABLE IF EXISTS outbox_relay;
DROP TABLE IF EXISTS outbox_version;
COMMIT;
