// books.js URL TOKEN: a program with Prisma, which changes three books in a transaction.
const { PrismaPg } = require('@prisma/adapter-pg')
const { PrismaClient } = require(process.cwd() + '/client') // generated from prisma.schema

const [url, token] = process.argv.slice(2)
const schema = /-csearch_path=(.*)/.exec(process.env.PGOPTIONS)[1]

async function main() {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }, { schema }), errorFormat: 'minimal' })
  try {
    await prisma.$transaction(async (tx) => {
      if (token) {
        // sqlfence {
        await tx.$queryRaw`SELECT set_config('sqlfence.tokens', concat(${token}::text, ' ', txid_current()), true)`
        // sqlfence }
      }
      await tx.book.update({ where: { id: 1 }, data: { price: 30 } })
      await tx.book.create({ data: { id: 3, title: 'three', price: 33 } })
      await tx.book.delete({ where: { id: 2 } })
    })
    console.log('ok')
  } catch (e) {
    console.log(e.meta.driverAdapterError.cause.originalCode) // refusal
  }
  await prisma.$disconnect()
}

main()
