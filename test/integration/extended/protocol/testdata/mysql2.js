const mysql = require('mysql2/promise')

const { ISSUE, ENSURE } = process.env

// {page}

async function main() {
  const connection = await mysql.createConnection(process.argv[2])
  const refused = async (what, write) => {
    try {
      await write()
      console.log(`${what}: done`)
    } catch (error) {
      console.log(`${what}: ${refusal(error) ?? 'None'}`)
    }
  }
  const token = await takeToken(connection)
  console.log('token', token)
  await connection.beginTransaction()
  await setPrice(connection, 1, 30, token)
  await connection.commit()
  console.log('set')
  await refused('without a token', () => connection.query('UPDATE books SET price = 1 WHERE id = 1'))
  await refused('with an older one', () => setPrice(connection, 1, 1, token - 1))
  await refused('with a higher one', () => setPrice(connection, 1, 1, token + 1))
  await refused('removed without a token', () => connection.query('DELETE FROM books WHERE id = 2'))
  await refused('removed with an older one', () => remove(connection, 2, token - 1))
  await remove(connection, 2, token)
  console.log('removed')
  await refused('something else', () => connection.query('SELECT nothing'))
  await connection.end()
}

main()
