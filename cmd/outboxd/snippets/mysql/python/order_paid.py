# Python, DB-API: PyMySQL and mysqlclient. Connection: pymysql.connect(host="db", database="shop", charset="utf8mb4", ...).
#   - autocommit has to be off, as it is by default: else each statement is a transaction of its own.
#   - payload is bytes, not str: they stay what they are, whatever charset the connection has.
#   - Only the columns that you set: an explicit NULL in id, due_at, headers and the like is refused.
def pay_order(connection, order: int, payload: bytes):
    try:
        cursor = connection.cursor()
        cursor.execute("UPDATE shop_order SET paid = true WHERE id = %s", (order,))
        cursor.execute(
            "INSERT INTO outbox (aggregatetype, aggregateid, type, payload) VALUES ('orders', %s, 'order_paid', %s)",
            (str(order), payload),
        )
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
