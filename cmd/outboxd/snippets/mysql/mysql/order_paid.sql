-- mysql --init-command="SET @order = 42, @payload = X'$(printf %s '{"id":42}' | od -An -v -tx1 | tr -d ' \n')'" shop < order_paid.sql
--   - START TRANSACTION and COMMIT: without them the client commits each statement by itself.
--   - Not with --force: the client would go on after an error, and COMMIT.
--   - Hexadecimal digits: no quotes to mind, and the bytes stay what they are, whatever charset the session has.
START TRANSACTION;
UPDATE shop_order SET paid = true WHERE id = @order;
INSERT INTO outbox (aggregatetype, aggregateid, type, payload) VALUES ('orders', @order, 'order_paid', @payload);
COMMIT;
