// Node, pg. Connection: new Pool({ host: 'db', database: 'shop', user, password }).
//   - One client from BEGIN to COMMIT: pool.query would take another connection, and be outside of the transaction.
//   - payload is a Buffer, and convert_from makes text of it: its bytes stay what they are, whatever the session says.
//   - JSON.stringify knows no number above 2^53: keep 12345678901234567890 as a string, or write the digits yourself.
//   - Only the columns that you set: an explicit null in id, due_at, headers and the like is refused.
async function payOrder(pool, order, payload) {
  const client = await pool.connect();
  const gone = () => {}; // without a listener, a connection that breaks here ends the whole process
  client.on('error', gone);
  try {
    await client.query('BEGIN');
    await client.query('UPDATE shop_order SET paid = true WHERE id = $1', [order]);
    await client.query(
      `INSERT INTO outbox (aggregatetype, aggregateid, type, payload)
       VALUES ('orders', $1, 'order_paid', convert_from($2, 'UTF8'))`,
      [String(order), payload],
    );
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(gone);
    throw error;
  } finally {
    client.off('error', gone);
    client.release();
  }
}

module.exports = { payOrder };
