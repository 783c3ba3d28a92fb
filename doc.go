// Package sqlfence makes a database refuse writes that carry a stale fencing token. It wraps the
// database/sql drivers of PostgreSQL, SQLite, MariaDB and MySQL.
//
// A lease holder can be paused beyond its lease's end, and then overwrite its successor's writes. A lock service can't
// prevent this, but the database can: each new holder gets a higher token, each write carries a token, and the
// database refuses writes with a lower token than the newest.
//
//	db, err := sqlfence.Open("pgx", dsn,
//		sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
//	store, err := tokens.New(db)
//	token, err := store.Issue(ctx, "books")
//
//	ctx = sqlfence.WithFence(ctx, token)
//	_, err = db.ExecContext(ctx, "UPDATE books SET price = $1 WHERE id = $2", 30, 1)
//	if errors.Is(err, sqlfence.ErrStale) {
//		// Another holder has taken over; the UPDATE changed nothing.
//	}
//
// The driver adds the comparison to each statement that writes to a registered table, so that comparing and writing
// are atomic. Package lease grants leases, package tokens issues tokens. [recipes.md] has code for leaders, queues and
// cron jobs.
//
// # What it promises
//
// In brief ([promises.md] has all promises and exceptions):
//
//   - [RowFence]: after a committed write with a token, no write with a lower token changes or deletes the row.
//   - [Ledger]: only writes with the newest issued or adopted token commit.
//   - A refused statement changes nothing. A stale token is [ErrStale] even if the write has other errors.
//   - A write isn't sent if it can't be guarded or carries no token, or if the server is untested ([statements.md],
//     [Optional], [UnfencedInserts], [WithUntestedServer]).
//   - Only sqlfence's packages write to sqlfence's own tables.
//   - A guarded statement outside of a transaction takes one round trip, except a connection's first.
//   - A statement on no registered table reaches the driver unchanged.
//
// Exceptions are [Observe], [Bypass] and [WithoutGuards]. Equal tokens pass, unless the table is [SingleUse].
// sqlfence compares tokens and never clocks. [Serial] and [WithSerial] prevent lost updates without tokens.
//
// # Transactions
//
// A transaction keeps the tokens and the editor ([WithEditor]) of BeginTx's context. A statement with a context
// without tokens uses the transaction's tokens, so Tx.Exec and Tx.Query need no change. If a statement's context
// carries any token, the transaction's tokens are ignored. A serial, a takeover and [Bypass] apply to single
// statements. A transaction begun by the SQL statement BEGIN keeps nothing.
//
// # What it can't promise
//
// sqlfence guards the statements of its driver. It can't guard
//
//   - programs that open the database without sqlfence, unless the table is [Sealed];
//   - the database's functions, triggers, rules, cascades and views, and dynamic SQL;
//   - writes through an unregistered partition, parent or child table;
//   - calls on the driver's own connection ([BaseConn]);
//   - with [RowFence] alone: writes with a never issued token, and rows inserted again after a DELETE;
//   - reads, and effects outside of the database, such as files and mails;
//   - a ledger that another table shadows, for example after SET search_path (see [WithSchema]), or a replaced
//     json_extract on SQLite.
//
// Package verify checks for these gaps. With verify.OnConnect a database with gaps gets no connection.
//
// [recipes.md]: https://github.com/sqlfence/sqlfence/blob/main/docs/recipes.md
// [promises.md]: https://github.com/sqlfence/sqlfence/blob/main/docs/promises.md
// [statements.md]: https://github.com/sqlfence/sqlfence/blob/main/docs/statements.md
package sqlfence
