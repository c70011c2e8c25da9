// Node, mysql2/promise. Connection: mysql.createPool({ host: 'db', database: 'shop', user, password, charset: 'utf8mb4' }).
//   - One connection from beginTransaction to commit: pool.query would take another one, and be outside of the transaction.
//   - payload is a Buffer: its bytes stay what they are, whatever charset the connection has.
//   - JSON.stringify knows no number above 2^53: keep 12345678901234567890 as a string, or write the digits yourself.
//   - Only the columns that you set: an explicit null in id, due_at, headers and the like is refused.
async function payOrder(pool, order, payload) {
  const connection = await pool.getConnection();
  try {
    await connection.beginTransaction();
    await connection.query('UPDATE shop_order SET paid = true WHERE id = ?', [order]);
    await connection.query(
      "INSERT INTO outbox (aggregatetype, aggregateid, type, payload) VALUES ('orders', ?, 'order_paid', ?)",
      [String(order), payload],
    );
    await connection.commit();
  } catch (error) {
    await connection.rollback().catch(() => {});
    throw error;
  } finally {
    connection.release();
  }
}

module.exports = { payOrder };
