// Package sqlfence makes the database refuse writes that carry an outdated
// fencing token. It wraps the database/sql drivers of PostgreSQL, SQLite,
// MariaDB and MySQL.
//
// A service takes a lock or a lease, works, and writes. If it is paused past the
// end of its lease, another one takes over and writes; then the first wakes up
// and overwrites that. No lock service can prevent it: only the database can, by
// comparing numbers. A lock hands out a token, a number that grows with every
// new holder; a write carries the token of its holder; and a write with a lower
// number than one seen before is refused.
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
// The statement is rewritten on its way to the driver, so that comparing and
// writing are one atomic statement. It makes no difference whether the
// application wrote it or an ORM did. Package tokens issues tokens, and adopts those
// of another service (an etcd revision, a Consul LockIndex).
//
// # What it promises
//
//   - Rows: once a write with a token has committed on a row of a [RowFence]
//     table, no write with a lower token changes or deletes that row, at any
//     isolation level, after any pause, reconnect or retry.
//   - Ledger: on the [Ledger] tables that a name guards only writes with the newest
//     token issued or adopted for it commit. A lower one is [ErrStale], a higher one
//     [ErrNotIssued].
//   - Its own tables: fencing_tokens, fencing_leases and rowlocks, in any schema, are
//     written and defined by sqlfence's packages alone. Any other statement that does
//     so, or that puts another table or view in their place, is refused, except under
//     [Bypass]. This holds in every fenced database, also if
//     no table is registered.
//   - All or nothing: a statement that reaches a single row with a newer token
//     changes no row at all. No row is skipped silently.
//   - Closed by default: a statement that touches a registered table, or may
//     touch it, and can't be guarded is not sent to the database. The error says
//     why and what to write instead.
//   - No token, no write: a write on a registered table without a token is
//     refused, unless the table is [Optional], its mode is [Observe], or the
//     context has a [Bypass] with a reason, or the database [WithBypass].
//   - One round trip: a guarded statement outside a transaction costs as many
//     round trips as the plain one, also when the answer is "stale" rather than
//     "no such row". Before its first guarded write a connection asks its server once, in a round trip or two.
//   - Known servers only: a connection's server has to prove that it raises the error that guards
//     refuse with, and one that only speaks the protocol of PostgreSQL or MySQL is refused by its
//     name ([UnguardableError], [WithUntestedServer]).
//   - Stale first: a write of a holder that has been replaced is [ErrStale], whatever else
//     is wrong with it: a constraint, a conversion, a missing row. docs/statements.md has
//     the exceptions, such as a new row under [RowFence] alone. Where PostgreSQL fails a
//     write outside of a transaction before the guard is asked, it is asked in
//     another round trip.
//   - Transparent otherwise: what touches no registered table reaches the driver
//     as it was written. Pooling, isolation levels, column types, prepared
//     statements, cancellation, sql.Conn.Raw and errors are the driver's own, and
//     errors.As still finds its error type. What fails because its context has
//     ended with an [ErrStale] as its [context.Cause] is that error.
//
// [Serial] and [WithSerial] guard against the other way to lose an update: two callers
// read the same row, both write it, and the second write undoes the first. The version
// of a row never falls, and with [Required] no row is written unless the context carries
// the version that was read ([ErrNoSerial]).
//
// Equal tokens pass: a holder may write as often as it likes. [SingleUse] changes
// that for a table. No clock takes part in any of this, neither the
// application's nor the database's: only the order of the tokens counts.
//
// # Transactions
//
// The context of BeginTx holds for the transaction: its tokens for each statement with a context
// that carries none at all, and its editor ([WithEditor]) for each with a context that has none. So
// existing code that calls Tx.Exec, Tx.Query, Tx.Prepare or Tx.Stmt, which database/sql runs with
// an empty context, is fenced by one change, at BeginTx. A statement's own tokens win: with one of
// them, none of the transaction's is used, also for other tables. It ends with Commit and Rollback.
// A serial ([WithSerial]) and [Bypass] have to be given to each statement, and a transaction that
// was begun by a statement, BEGIN, keeps nothing.
//
// # Programs without contexts
//
// Where code writes without a context, [WithTokens] gives the database a source of tokens,
// which is asked for what the contexts lack. Package lease's Election is one, for a process
// that writes as long as it leads. All writes of a transaction have the same token of a
// source, or are refused.
//
// # What it can't promise
//
// It guards the statements that pass through it, by their text. It can't guard
//
//   - code that opens the database without sqlfence: another service, a
//     migration tool, a person at a prompt. A table is protected if
//     every program that writes to it uses sqlfence, or if it is [Sealed];
//   - SQL that the database runs on its own: in stored functions and procedures,
//     triggers, rules and cascades, or behind an updatable view. A guarded
//     statement may invoke them, and their writes are not compared. Statements that
//     only create them pass: CREATE VIEW, CREATE FUNCTION;
//   - SQL that is hidden from it otherwise: EXECUTE of a statement that was prepared
//     under [Bypass]; a text handed to a function that runs it, such as dblink_exec; a
//     CALL of a procedure that spells the table's name with escapes or passes it as
//     an argument. (PostgreSQL's DO is read, and refused if it names a registered table
//     or can put a statement together at run time.) And in SQLite a second ATTACH of the
//     same file, for a table that is registered with its schema;
//   - a table's rows by another name. In PostgreSQL a partition, a parent and a
//     child of a table hold rows of each other; register each of them that is
//     written to (see [WithTable]). A statement that makes such a table from a
//     registered one is refused. In SQLite the shadow tables of a virtual table, such as
//     FTS5's books_content, are tables of their own;
//   - calls of the driver's own connection. sql.Conn.Raw gives a fenced connection, and [BaseConn]
//     returns the base driver's; the [Observer] gets an event. Nor can it guard a statement that
//     was prepared under a name on that connection and is executed by this name, or the calls that
//     the application's own pgx.QueryRewriter makes on the connection that pgx passes to it;
//   - by [RowFence] alone, against a token that was never issued. The row can't know: any higher
//     number passes, is stored, and refuses every honest holder from then on;
//   - by [RowFence] alone, a row that was deleted. Its token is gone with it, and an INSERT or
//     upsert with an older one brings it back. RowFence together with [Ledger] refuses the token
//     that was never issued and the older one;
//   - reads. A SELECT by a holder that has lost its resource still returns data;
//     only its writes are refused;
//   - anything outside this database: files, queues, mails.
//
// [Verify] reports what of this it finds in the database's catalogue, and registered
// tables and columns that don't exist; [WithVerify] refuses connections to such a database.
//
// The ledger is the table fencing_tokens that the connection finds under this name.
// A statement that would shadow it with another table is refused if its text names
// that table. Other ways to shadow it aren't refused:
//
//   - SET search_path, MySQL's USE, ALTER SCHEMA ... RENAME, DROP SCHEMA, IMPORT FOREIGN SCHEMA;
//   - SQL in stored functions and in the strings that they execute;
//   - if no table is registered, the text that a pgx.QueryRewriter returns and, in
//     SQLite, writes to sqlite_schema;
//   - in SQLite, attaching a database before the main one has a ledger.
//
// To raise its error a guard calls PostgreSQL's built-in functions, so casts and
// operators that a database defines have no effect on it. In SQLite it calls
// json_extract; an application must not replace that by a function of its own.
//
// A ledger guards tables of its own database only. On SQLite that means the same
// file: fencing_tokens has to be in the database file of the guarded table, not
// in an attached one.
package sqlfence
