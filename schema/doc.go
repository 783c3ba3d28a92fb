// Package schema has the database objects that sqlfence needs, as migrations: sqlfence's tables as versioned SQL files,
// and the fence column and the seals of the application's tables.
//
// [Files] has the files, which goose, golang-migrate, atlas and bun run unchanged. The files contain exactly the
// statements of the Setup methods of the packages tokens, lease and rowlock, so an application needs either the files
// or the methods. [AddFence] adds the fence column of [sqlfence.RowFence] to a table that programs are writing to, and
// [AddFenceSQL] returns the statements for a migration. [Seal] seals the tables that are registered with
// [sqlfence.Sealed]; [SealSQL] and [SealPlan] return the statements of Seal. [Unseal] removes the seals.
//
// # Limits
//
// Package schema is no migration tool: it keeps no versions, and has no down migrations. Don't drop the ledger: a new
// ledger begins again at token 1, below the tokens stored in the rows. If a fence column is dropped, its stored tokens
// are lost.
//
// Package schema doesn't find the tables that an application should fence. Package verify, not this package, checks
// whether a database fits the registrations.
package schema
