# Python, DB-API: psycopg 2 and 3. Connection: psycopg2.connect(host="db", dbname="shop", ...).
#   - autocommit has to be off, as it is by default: else each statement is a transaction of its own.
#   - payload is bytes, and convert_from makes text of them: they stay what they are, whatever client_encoding is.
#   - Only the columns that you set: an explicit NULL in id, due_at, headers and the like is refused.
def pay_order(connection, order: int, payload: bytes):
    try:
        cursor = connection.cursor()
        cursor.execute("UPDATE shop_order SET paid = true WHERE id = %s", (order,))
        cursor.execute(
            "INSERT INTO outbox (aggregatetype, aggregateid, type, payload)"
            " VALUES ('orders', %s, 'order_paid', convert_from(%s, 'UTF8'))",
            (str(order), payload),
        )
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
