# Ruby, pg. Connection: PG.connect(host: "db", dbname: "shop").
#   - Both statements on the connection that the block of transaction is given: it commits, or rolls back at an exception.
#   - payload.b with format 1 goes as bytes, and convert_from makes text of them; of another string pg converts the characters.
#   - Only the columns that you set: an explicit nil in id, due_at, headers and the like is refused.
def pay_order(connection, order, payload)
  connection.transaction do |transaction|
    transaction.exec_params("UPDATE shop_order SET paid = true WHERE id = $1", [order])
    transaction.exec_params(<<~SQL, [order, { value: payload.b, format: 1 }])
      INSERT INTO outbox (aggregatetype, aggregateid, type, payload) VALUES ('orders', $1, 'order_paid', convert_from($2, 'UTF8'))
    SQL
  end
end
