// Package sqlfence makes the database refuse writes that carry an outdated
// fencing token. It wraps the database/sql drivers of PostgreSQL, SQLite,
// MariaDB and MySQL.
//
// A service takes a lease, is paused past its end, and overwrites what its successor has
// written. No lock service can prevent that: only the database can, by comparing numbers.
// Each new holder gets a higher one, its token; its writes carry the token; and a write with
// a lower one than was seen before is refused.
//
//	db, err := sqlfence.Open("pgx", dsn,
//		sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
//	store, err := tokens.New(db)
//	token, err := store.Issue(ctx, "books")
//
//	ctx = sqlfence.WithFence(ctx, token)
//	_, err = db.ExecContext(ctx, "UPDATE books SET price = $1 WHERE id = $2", 30, 1)
//	if errors.Is(err, sqlfence.ErrStale) {
//		// A newer holder has taken over; nothing was changed.
//	}
//
// The statement is rewritten on its way to the driver, so that comparing and writing are one
// atomic statement, whether the application wrote it or an ORM. Package lease keeps others
// out and gives a holder its token; package tokens issues tokens, or adopts those of another
// service. [recipes.md] has code for leaders, queues, cron and more.
//
// # What it promises
//
// In full, with the exceptions, in [promises.md]:
//
//   - Rows: once a write with a token has committed on a row of a [RowFence]
//     table, no write with a lower token changes or deletes that row.
//   - Ledger: on the [Ledger] tables that a name guards, only writes with the newest
//     token issued or adopted for it commit; others are [ErrStale] or [ErrNotIssued].
//   - Its own tables: only sqlfence's packages write and define fencing_tokens,
//     fencing_leases, rowlocks and fencing_changes, in every fenced database, except under [Bypass].
//   - All or nothing: a refused statement changes no row, and none is skipped.
//   - Fails closed: a statement that may touch a registered table and can't be
//     guarded isn't sent; the error says why ([statements.md]).
//   - No token, no write, except for [Optional], [Observe], [Bypass] and [WithoutGuards].
//   - One round trip: a guarded statement outside of a transaction takes as many as the
//     plain one, but for a connection's first question to its server ([servers.md]).
//   - Known servers only: others are refused ([servers.md], [WithUntestedServer]).
//   - Stale first: a write of a replaced holder is [ErrStale], whatever else is wrong with
//     it; [statements.md] has the exceptions.
//   - Transparent otherwise: what touches no registered table reaches the driver as it
//     was written, and errors.As still finds the driver's own error.
//
// Equal tokens pass, unless the table is [SingleUse]. No clock takes part, only the order of
// the tokens. [Serial] and [WithSerial] guard against another lost update: of two callers
// that have read the same version of a row, the second one is refused.
//
// # Transactions, and programs without contexts
//
// The context of BeginTx holds for the transaction: its tokens for each statement with a
// context that carries none, and its editor ([WithEditor]) for each without one. So Tx.Exec,
// Tx.Query, Tx.Prepare and Tx.Stmt need no change. A statement with a token of its own uses
// none of the transaction's, also for other tables. A serial and [Bypass] go with each
// statement. A transaction that the text BEGIN has begun keeps nothing.
//
// Where code writes without a context, [WithTokenSource] names a source of tokens, such as an
// Election of package lease. All writes of a transaction have the same token of a source, or
// are refused.
//
// # What it can't promise
//
// It guards the statements that pass through it, by their text. In full in [promises.md]; it
// can't guard
//
//   - code that opens the database without sqlfence, unless the table is [Sealed];
//   - SQL that the database runs by itself: functions, triggers, rules, cascades, views;
//   - SQL that a text hides, such as EXECUTE of what was prepared under [Bypass] on MySQL;
//   - a table's rows by another name: register partitions, parents and children ([WithTable]);
//   - calls of the driver's own connection, through sql.Conn.Raw and [BaseConn];
//   - by [RowFence] alone, against a token that was never issued, and rows that were deleted
//     and are inserted again: add [Ledger];
//   - reads, and anything outside of this database: files, queues, mails;
//   - against what puts another table in the ledger's place unseen, such as SET search_path
//     ([WithSchema] names its schema), or on SQLite another json_extract.
//
// Package verify looks for these in the database's catalogue. Its option OnConnect refuses connections
// to a database with faults.
//
// [recipes.md]: https://github.com/sqlfence/sqlfence/blob/main/docs/recipes.md
// [promises.md]: https://github.com/sqlfence/sqlfence/blob/main/docs/promises.md
// [statements.md]: https://github.com/sqlfence/sqlfence/blob/main/docs/statements.md
// [servers.md]: https://github.com/sqlfence/sqlfence/blob/main/docs/servers.md
package sqlfence
