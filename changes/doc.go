// Package changes counts the changes of a table, so that a program knows when its cache is outdated. Triggers in the
// database count the changes of every client. [Counter.Setup] installs the triggers, only on the named tables.
//
//	counter, err := changes.New(db)
//	err = counter.Setup(ctx, "books", "authors")
//
//	before, err := counter.Count(ctx, "books", "authors") // before reading the data to be cached
//	after, err := counter.Count(ctx, "books", "authors")  // before using the cache: if equal, the data hasn't changed
//
// Each committed transaction that changes a table by INSERT, UPDATE, DELETE, or on PostgreSQL TRUNCATE, increases the
// table's count. A rolled-back transaction doesn't change the count. The size of the increase isn't specified. The
// count may increase without a change: on PostgreSQL, for example, by an UPDATE that matches no row.
//
// Counting makes no writer wait for another writer: on PostgreSQL and MySQL each connection counts in a separate row,
// and Count adds the rows up. docs/changes.md has the cost of a change, and the changes that no trigger sees.
package changes
