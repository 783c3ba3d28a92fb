// books.js URL TOKEN: a program with Knex, which changes three books in a transaction.
const knex = require('knex')

const [url, token] = process.argv.slice(2)

async function main() {
  const db = knex({ client: 'pg', connection: url })
  try {
    await db.transaction(async (tx) => {
      if (token) {
        // sqlfence {
        await tx.raw("SELECT set_config('sqlfence.tokens', concat(?::text, ' ', txid_current()), true)", [token])
        // sqlfence }
      }
      await tx('books').where({ id: 1 }).update({ price: 30 })
      await tx('books').insert({ id: 3, title: 'three', price: 33 })
      await tx('books').where({ id: 2 }).delete()
    })
    console.log('ok')
  } catch (e) {
    console.log(e.code) // refusal
  }
  await db.destroy()
}

main()
