// Package changes counts the changes of a table, so that a cache in a process knows when to expire. Triggers in the
// database count, whatever client writes: Setup installs them on the tables that it is given, and on no other.
//
//	counter, err := changes.New(db)
//	err = counter.Setup(ctx, "books", "authors")
//
//	before, err := counter.Count(ctx, "books", "authors") // ask first, then read what is cached
//	after, err := counter.Count(ctx, "books", "authors")  // the same: what was read is as new as it was
//
// Each committed transaction that has changed a table raises its count: INSERT, UPDATE, DELETE, and on PostgreSQL
// TRUNCATE. One that was rolled back leaves it as it is. By how much it rises isn't specified, and it may rise without
// a change, as with an UPDATE that matches no row on PostgreSQL.
//
// No writer waits for another because of it: the connections of PostgreSQL and MySQL count in rows of their own, and
// Count adds them up. docs/changes.md says what a change costs, and what no trigger sees.
package changes
