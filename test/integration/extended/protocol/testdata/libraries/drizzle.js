// books.js URL TOKEN: a program with Drizzle, which changes three books in a transaction.
const { Pool } = require('pg')
const { eq, sql } = require('drizzle-orm')
const { drizzle } = require('drizzle-orm/node-postgres')
const { bigint, pgTable, text } = require('drizzle-orm/pg-core')

const [url, token] = process.argv.slice(2)
const books = pgTable('books', {
  id: bigint('id', { mode: 'number' }).primaryKey(),
  title: text('title'),
  price: bigint('price', { mode: 'number' }),
})

async function main() {
  const pool = new Pool({ connectionString: url })
  try {
    await drizzle(pool).transaction(async (tx) => {
      if (token) {
        // sqlfence {
        await tx.execute(sql`SELECT set_config('sqlfence.tokens', concat(${token}::text, ' ', txid_current()), true)`)
        // sqlfence }
      }
      await tx.update(books).set({ price: 30 }).where(eq(books.id, 1))
      await tx.insert(books).values({ id: 3, title: 'three', price: 33 })
      await tx.delete(books).where(eq(books.id, 2))
    })
    console.log('ok')
  } catch (e) {
    console.log(e.cause.code) // refusal
  }
  await pool.end()
}

main()
