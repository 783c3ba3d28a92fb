// books.js URL TOKEN: a program with node-postgres, which changes three books in a transaction.
const { Client } = require('pg')

const [url, token] = process.argv.slice(2)

async function main() {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('BEGIN')
    if (token) {
      // sqlfence {
      await client.query("SELECT set_config('sqlfence.tokens', concat($1::text, ' ', txid_current()), true)", [token])
      // sqlfence }
    }
    await client.query('UPDATE books SET price = $1 WHERE id = $2', [30, 1])
    await client.query('INSERT INTO books (id, title, price) VALUES ($1, $2, $3)', [3, 'three', 33])
    await client.query('DELETE FROM books WHERE id = $1', [2])
    await client.query('COMMIT')
    console.log('ok')
  } catch (e) {
    console.log(e.code) // refusal
  }
  await client.end()
}

main()
