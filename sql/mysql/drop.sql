-- Removes all that the migrations of outboxd made, and every message with it. Nothing else is touched. It can be repeated.

DROP TABLE IF EXISTS /*schema.*/outbox;
DROP TABLE IF EXISTS /*schema.*/outbox_lease;
DROP TABLE IF EXISTS /*schema.*/outbox_attempt;
DROP TABLE IF EXISTS /*schema.*/outbox_operation;
DROP TABLE IF EXISTS /*schema.*/outbox_correction;
DROP TABLE IF EXISTS /*schema.*/outbox_control;
DROP TABLE IF EXISTS /*schema.*/outbox_relay;
DROP TABLE IF EXISTS /*schema.*/outbox_version;
