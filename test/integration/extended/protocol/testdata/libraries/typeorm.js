// books.js URL TOKEN: a program with TypeORM, which changes three books in a transaction.
const { DataSource, EntitySchema } = require('typeorm')

const [url, token] = process.argv.slice(2)
const Book = new EntitySchema({
  name: 'Book',
  tableName: 'books',
  columns: {
    id: { type: 'bigint', primary: true },
    title: { type: 'varchar' },
    price: { type: 'bigint' },
  },
})

async function main() {
  const source = await new DataSource({ type: 'postgres', url, entities: [Book] }).initialize()
  try {
    await source.transaction(async (manager) => {
      if (token) {
        // sqlfence {
        await manager.query("SELECT set_config('sqlfence.tokens', concat($1::text, ' ', txid_current()), true)", [token])
        // sqlfence }
      }
      const books = manager.getRepository(Book)
      const book = await books.findOneBy({ id: 1 })
      book.price = 30
      await books.save(book)
      await books.insert({ id: 3, title: 'three', price: 33 })
      await books.remove(await books.findOneBy({ id: 2 }))
    })
    console.log('ok')
  } catch (e) {
    console.log(e.driverError.code) // refusal
  }
  await source.destroy()
}

main()
