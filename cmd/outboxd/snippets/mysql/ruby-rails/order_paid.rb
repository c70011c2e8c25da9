class ShopOrder < ActiveRecord::Base
  self.table_name = "shop_order"
end

# Ruby on Rails, ActiveRecord.
#   - inheritance_column: a column of the name type means single-table inheritance, and new or find end in SubclassNotFound.
#   - insert! writes the columns that it is given and no other; save would write nil, which is refused, or change rows.
#   - payload goes as binary, which Rails knows from the column: its bytes stay what they are, whatever encoding database.yml has.
class OutboxMessage < ActiveRecord::Base
  self.table_name = "outbox"
  self.inheritance_column = nil
end

#   - Both inside transaction; not in after_commit: a crash before it runs is the very gap that the outbox closes.
def pay_order(order, payload)
  ActiveRecord::Base.transaction do
    ShopOrder.where(id: order).update_all(paid: true)
    OutboxMessage.insert!({ aggregatetype: "orders", aggregateid: order.to_s, type: "order_paid", payload: payload })
  end
end
