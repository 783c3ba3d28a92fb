const { Client } = require('pg')

// {page}

async function main() {
  const client = new Client({ connectionString: process.argv[2] })
  await client.connect()
  const refused = async (what, write) => {
    try {
      await write()
      console.log(`${what}: done`)
    } catch (error) {
      console.log(`${what}: ${refusal(error) ?? 'None'}`)
    }
  }
  const token = await takeToken(client)
  console.log('token', token)
  await client.query('BEGIN')
  await setPrice(client, 1, 30, token)
  await client.query('COMMIT')
  console.log('set')
  await refused('without a token', () => client.query('UPDATE books SET price = 1 WHERE id = 1'))
  await refused('with an older one', () => setPrice(client, 1, 1, token - 1))
  await refused('with a higher one', () => setPrice(client, 1, 1, token + 1))
  await refused('removed without a token', () => client.query('DELETE FROM books WHERE id = 2'))
  await refused('removed with an older one', () => remove(client, 2, token - 1))
  await remove(client, 2, token)
  console.log('removed')
  await refused('something else', () => client.query('SELECT 1/0'))
  await client.end()
}

main()
