# Ruby, mysql2: inside START TRANSACTION and COMMIT.
#   - Mysql2::Client.new(host: "db", database: "shop", encoding: "utf8mb4"): a legacy encoding there does no harm to the payload.
#   - The same client for both statements, and tables of InnoDB: MyISAM rolls nothing back.
#   - payload.b: of any other string mysql2 converts the characters to the connection's encoding.
#   - Only the columns that you set: an explicit nil in id, due_at, headers and the like is refused.
def pay_order(client, order, payload)
  client.query("START TRANSACTION")
  client.prepare("UPDATE shop_order SET paid = true WHERE id = ?").execute(order)
  client.prepare("INSERT INTO outbox (aggregatetype, aggregateid, type, payload) VALUES ('orders', ?, 'order_paid', ?)")
        .execute(order.to_s, payload.b)
  client.query("COMMIT")
rescue Exception
  client.query("ROLLBACK") rescue nil
  raise
end
