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
// The table needs a row that the program writes: a late write that matches no row changes nothing, and may have no
// error.
//
// The tokens, the leases and the refusals are real; the test only chooses the moment of the takeover. A test on SQLite
// can't show how PostgreSQL, MariaDB and MySQL differ in locks, SQL syntax and isolation levels. For a test with a mock
// in place of the driver, [Match] compares the program's statements with the guarded statements.
package fencetest
