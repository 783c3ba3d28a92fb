# books.rb URL TOKEN: a program with Rails' ActiveRecord, which changes three books in a transaction.
require "active_record"

url, token = ARGV
ActiveRecord::Base.establish_connection(url)

class Book < ActiveRecord::Base
  self.ignored_columns = ["fence_token"]
end

begin
  Book.transaction do
    if token != ""
      # sqlfence {
      Book.connection.select_value(Book.sanitize_sql(
        ["SELECT set_config('sqlfence.tokens', concat(?, ' ', txid_current()), true)", token]))
      # sqlfence }
    end
    Book.find(1).update!(price: 30)
    Book.create!(id: 3, title: "three", price: 33)
    Book.find(2).destroy!
  end
  puts "ok"
rescue ActiveRecord::StatementInvalid => e
  puts e.cause.result.error_field(PG::PG_DIAG_SQLSTATE) # refusal
end
