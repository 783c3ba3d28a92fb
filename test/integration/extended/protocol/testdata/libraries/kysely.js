// books.js URL TOKEN: a program with Kysely, which changes three books in a transaction.
const { Pool } = require('pg')
const { Kysely, PostgresDialect, sql } = require('kysely')

const [url, token] = process.argv.slice(2)

async function main() {
  const db = new Kysely({ dialect: new PostgresDialect({ pool: new Pool({ connectionString: url }) }) })
  try {
    await db.transaction().execute(async (tx) => {
      if (token) {
        // sqlfence {
        await sql`SELECT set_config('sqlfence.tokens', concat(${token}::text, ' ', txid_current()), true)`.execute(tx)
        // sqlfence }
      }
      await tx.updateTable('books').set({ price: 30 }).where('id', '=', 1).execute()
      await tx.insertInto('books').values({ id: 3, title: 'three', price: 33 }).execute()
      await tx.deleteFrom('books').where('id', '=', 2).execute()
    })
    console.log('ok')
  } catch (e) {
    console.log(e.code) // refusal
  }
  await db.destroy()
}

main()
