// Package fencetest lets a test show how a program behaves after it has lost its lock. Each test has a separate
// database: a new SQLite file with a ledger and leases.
//
//	const books = "CREATE TABLE books (id integer PRIMARY KEY, price integer); INSERT INTO books VALUES (1, 10)"
//	db := fencetest.Open(t, books, sqlfence.WithTable("books"))
//	ctx := db.Hold(t.Context(), "books")
//	db.Before("UPDATE books", func() { db.Hold(t.Context(), "books") }) // another takes over
//	if err := raisePrices(ctx, db.DB); !errors.Is(err, sqlfence.ErrStale) {
//		t.Error(err)
//	}
//
// The table needs a row: a late write that finds none changes nothing, and may have no error.
//
// The tokens, the leases and the refusals are real: nothing is simulated but the moment. It can't show the differences
// of PostgreSQL, MariaDB and MySQL: kinds of locks, SQL syntax, isolation levels. With a mock in the place of the
// driver, [Match] compares texts.
package fencetest
