# books.rb URL TOKEN: a program with Sequel's models, which changes three books in a transaction.
require "sequel"

url, token = ARGV
DB = Sequel.connect(url)

class Book < Sequel::Model(DB[:books].select(:id, :title, :price))
  unrestrict_primary_key
end

begin
  DB.transaction do
    if token != ""
      # sqlfence {
      DB.get(Sequel.lit("set_config('sqlfence.tokens', concat(?, ' ', txid_current()), true)", token))
      # sqlfence }
    end
    Book[1].update(price: 30)
    Book.create(id: 3, title: "three", price: 33)
    Book[2].delete
  end
  puts "ok"
rescue Sequel::DatabaseError => e
  puts e.wrapped_exception.result.error_field(PG::PG_DIAG_SQLSTATE) # refusal
end
