-- psql --no-psqlrc --set order=42 --set payload='{"id":42}' --file order_paid.sql postgres://shop@db/shop
--   - BEGIN and COMMIT: without them psql commits each statement by itself.
--   - ON_ERROR_STOP: without it psql goes on after an error, and ends with 0.
--   - \encoding: the payload is UTF-8, whatever PGCLIENTENCODING or the locale says.
--   - :'payload' quotes its value, '' and backslashes in it too. Never put a value between quotes yourself.
\set ON_ERROR_STOP on
\encoding UTF8
BEGIN;
UPDATE shop_order SET paid = true WHERE id = :'order';
INSERT INTO outbox (aggregatetype, aggregateid, type, payload) VALUES ('orders', :'order', 'order_paid', :'payload');
COMMIT;
