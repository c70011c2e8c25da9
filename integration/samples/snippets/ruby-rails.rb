# Calls the snippet of Rails, a file named by the first argument, for each line of the standard input: port, character set,
# order, file of the payload. Says of each order whether it is paid.
require "active_record"

def connect(port, charset)
  postgres = ENV["SHOP_DIALECT"] == "postgres"
  ActiveRecord::Base.establish_connection(
    adapter: postgres ? "postgresql" : "mysql2", host: ENV["SHOP_HOST"], port: port.to_i, database: ENV["SHOP_DATABASE"],
    username: ENV["SHOP_USER"], password: ENV["SHOP_PASSWORD"], encoding: charset, **(postgres ? { sslmode: "disable" } : {})
  )
end

load ARGV.shift
$stdin.each_line do |line|
  port, charset, order, file = line.split
  begin
    connect(port, charset)
    OutboxMessage.new(type: "order_paid") # which single-table inheritance refuses
    pay_order(order.to_i, File.read(file, encoding: ENV["SHOP_DIALECT"] == "postgres" ? "UTF-8" : "BINARY"))
    puts "#{order} paid"
  rescue StandardError => e
    puts "#{order} not paid: #{e.message.lines.first}"
  end
end
