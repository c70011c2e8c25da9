-- The shop's own tables; the outbox comes by `outboxd migrate up`. For PostgreSQL, MySQL and MariaDB alike.
CREATE TABLE orders (
    number         bigint PRIMARY KEY,
    amount         bigint NOT NULL CHECK (amount > 0),
    status         varchar(10) NOT NULL DEFAULT 'new', -- new, paid, declined or failed
    charge         varchar(255),                       -- the provider's reference, once it is paid
    charge_message char(36) NOT NULL UNIQUE,           -- the id of its charge_order in the outbox
    charge_life    int NOT NULL DEFAULT 0              -- the life of that message that was heard of last
);

-- The messages that the shop has worked on: a second one with the same key changes nothing.
CREATE TABLE processed_message (
    id           varchar(64) PRIMARY KEY,
    processed_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP
);
