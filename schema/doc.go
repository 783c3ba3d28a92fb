// Package schema is what sqlfence needs in a database, as migrations: its own tables as
// versioned files of SQL, and the fence column and the seals of the application's tables.
//
// [Files] has the files that goose, golang-migrate, atlas and bun run as they are. They
// have, byte for byte, what the Setup methods of the packages tokens, lease and rowlock
// send, so an application needs one of the two. [AddFence] adds the fence column of
// [sqlfence.RowFence] to a table that programs are writing to, and [AddFenceSQL] writes
// the statements for a migration of your own. [Seal] seals the tables that are registered with
// [sqlfence.Sealed], and [SealSQL] and [SealPlan] return the statements for that; [Unseal] takes the
// seals away.
//
// # What it is not
//
// No tool for migrations: it keeps no versions, and has nothing to go back with. Once the
// ledger is dropped, tokens begin again at 1, below the marks in the rows; once a fence
// column is dropped, its marks are gone for good.
//
// It doesn't find out which tables an application should fence, nor whether a database is as
// the registered tables need it.
package schema
