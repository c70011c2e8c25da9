# Calls the snippet of Ruby, a file named by the first argument, for each line of the standard input: port, character set,
# order, file of the payload. Says of each order whether it is paid.
load ARGV.shift

HOST, USER, PASSWORD, DATABASE = %w[HOST USER PASSWORD DATABASE].map { |name| ENV.fetch("SHOP_#{name}") }

def open_database(port, charset)
  if ENV["SHOP_DIALECT"] == "postgres"
    require "pg"
    return PG.connect(host: HOST, port: port, user: USER, password: PASSWORD, dbname: DATABASE, sslmode: "disable", client_encoding: charset)
  end
  require "mysql2"
  Mysql2::Client.new(host: HOST, port: port.to_i, username: USER, password: PASSWORD, database: DATABASE, encoding: charset)
end

$stdin.each_line do |line|
  port, charset, order, file = line.split
  begin
    pay_order(open_database(port, charset), order.to_i, File.read(file, encoding: "UTF-8"))
    puts "#{order} paid"
  rescue StandardError => e
    puts "#{order} not paid: #{e.message.lines.first}"
  end
end
