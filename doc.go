// Package sqlfence makes a database refuse writes that carry a stale fencing token. It wraps the
// database/sql drivers of PostgreSQL, SQLite, MariaDB and MySQL.
//
// A lease holder can be paused beyond the end of its lease. When the process resumes, it may overwrite
// the writes of its successor. A lock service can't prevent such a write, but the database can: each new
// holder gets a token with a higher number, each write carries the holder's token, and the database refuses
// a write with a lower token than the newest one.
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
// The driver adds the comparison to each statement that writes to a registered table, so that comparing and
// writing are one atomic statement. Package lease grants leases, package tokens issues tokens, and
// [recipes.md] has code for leaders, queues and cron jobs.
//
// # What it promises
//
// [promises.md] has all promises with their exceptions. In brief:
//
//   - After a write with a token has committed on a row of a [RowFence] table, no write with a lower
//     token changes or deletes that row.
//   - On a [Ledger] table, only writes with the newest issued or adopted token commit.
//     Other writes fail with [ErrStale] or [ErrNotIssued].
//   - Only sqlfence's packages write to fencing_tokens, fencing_leases, rowlocks and fencing_changes,
//     except under [Bypass].
//   - A refused statement changes no row.
//   - A statement that may write to a registered table and can't be guarded isn't sent ([statements.md]).
//   - A write without a token is refused, except with [Optional], [UnfencedInserts], [Observe], [Bypass]
//     or [WithoutGuards].
//   - A guarded statement outside of a transaction takes one round trip. A new connection's first guarded
//     statement may need more ([servers.md]).
//   - Guarded writes on an untested server are refused ([WithUntestedServer]).
//   - A write with a stale token fails with [ErrStale], even if the write has other errors; [statements.md]
//     lists the exceptions.
//   - A statement that touches no registered table reaches the driver unchanged.
//
// Writes with equal tokens pass, unless the table is [SingleUse]. sqlfence compares tokens and never clocks.
// [Serial] and [WithSerial] prevent lost updates: if two callers read the same version of a row, only the
// first update succeeds.
//
// # Transactions, and programs without contexts
//
// A transaction keeps the tokens and the editor ([WithEditor]) of the context passed to BeginTx. If the
// context of a statement carries no token, the statement uses the transaction's tokens, so Tx.Exec and
// Tx.Query need no change. If the context of a statement carries any token, the transaction's tokens are
// ignored for that statement. A serial, a takeover and [Bypass] apply to single statements. A transaction
// begun by the SQL statement BEGIN keeps neither tokens nor an editor.
//
// If code writes without a context, [WithTokenSource] supplies the tokens.
//
// # What it can't promise
//
// sqlfence guards the statements that pass through its driver. It can't guard
//
//   - programs that open the database without sqlfence, unless the table is [Sealed];
//   - SQL inside the database: functions, triggers, rules, cascades and views;
//   - dynamic SQL, such as EXECUTE of a statement prepared under [Bypass] on MySQL;
//   - writes through an unregistered partition, parent or child table ([WithTable]);
//   - calls on the driver's own connection, from sql.Conn.Raw and [BaseConn];
//   - with [RowFence] alone: writes with a token that was never issued, and rows inserted again after
//     a DELETE; add [Ledger] for both;
//   - reads, and effects outside of the database, such as files and mails;
//   - a ledger that another table shadows, for example after SET search_path ([WithSchema] prevents this),
//     or a replaced json_extract on SQLite.
//
// Package verify checks the database for these gaps, and its option OnConnect refuses connections to a
// database that has them.
//
// [recipes.md]: https://github.com/sqlfence/sqlfence/blob/main/docs/recipes.md
// [promises.md]: https://github.com/sqlfence/sqlfence/blob/main/docs/promises.md
// [statements.md]: https://github.com/sqlfence/sqlfence/blob/main/docs/statements.md
// [servers.md]: https://github.com/sqlfence/sqlfence/blob/main/docs/servers.md
package sqlfence
