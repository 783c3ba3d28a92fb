// Package sqlfence makes a database refuse writes that carry a stale fencing token. It wraps the database/sql drivers
// of PostgreSQL, SQLite, MariaDB and MySQL.
//
// The holder of a lease can be paused beyond the lease's end, and then overwrite its successor's writes. No lock
// service can prevent this, but the database can: each new holder gets a higher token, each write presents its holder's
// token, and the database refuses tokens below the newest.
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
// The driver inserts the comparison into each statement that writes to a registered table, so that comparing and
// writing are atomic. Package tokens issues tokens, package lease grants leases. [recipes.md] has code for leaders,
// queues and cron jobs.
//
// # What it promises
//
// [promises.md] has all promises and exceptions. In brief:
//
//   - [RowFence]: after a write with a token has committed, no write with a lower token changes or deletes the row.
//   - [Ledger]: only writes with the newest issued or adopted token commit.
//   - A refused statement changes nothing. A stale token is [ErrStale] even if the write has other errors.
//   - A write isn't sent if it carries no token, can't be guarded, or goes to an untested server.
//   - Only sqlfence's packages write to sqlfence's own tables.
//   - A guarded statement outside of a transaction takes one round trip, except a connection's first.
//   - A statement on no registered table reaches the driver unchanged.
//
// Exceptions are [Optional], [UnfencedInserts], [Observe], [Bypass], [WithoutGuards] and [WithUntestedServer]. Equal
// tokens pass, except with [SingleUse]. sqlfence compares tokens and never clocks. [Serial] prevents lost updates
// without tokens.
//
// # Transactions
//
// A transaction keeps the tokens and the editor ([WithEditor]) of BeginTx's context. A statement uses the transaction's
// tokens only if its own context carries no token, so Tx.Exec and Tx.Query need no change. [WithSerial], [WithTakeover]
// and [Bypass] apply only to statements with that context. A transaction begun by the SQL statement BEGIN keeps
// nothing.
//
// # What it can't promise
//
// sqlfence guards its driver's statements. It can't guard
//
//   - programs that open the database without sqlfence, unless the table is [Sealed];
//   - functions, triggers, rules, cascades and views in the database, and dynamic SQL;
//   - writes through an unregistered partition, parent or child table;
//   - calls on the driver's own connection ([BaseConn]);
//   - with [RowFence] alone: writes with a token that was never issued, and INSERTs of deleted rows;
//   - reads, and effects outside of the database, such as mails;
//   - a ledger that another table shadows, for example after SET search_path (see [WithSchema]).
//
// Package verify reports many of these gaps, and verify.OnConnect refuses connections while a registration is wrong.
//
// [recipes.md]: https://github.com/sqlfence/sqlfence/blob/main/docs/recipes.md
// [promises.md]: https://github.com/sqlfence/sqlfence/blob/main/docs/promises.md
package sqlfence
