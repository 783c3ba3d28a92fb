// Package lease grants leases: locks that expire. Each lease comes with a fencing token, so that the database
// can refuse the writes of a holder that was paused past the end of its lease. The leases are in the table
// fencing_leases of the database that holds the data.
//
//	leases, err := lease.New(db)
//	err = leases.Setup(ctx) // creates the tables; or use the files of package schema
//	err = leases.Do(ctx, "books", func(ctx context.Context) error {
//		_, err := db.ExecContext(ctx, "UPDATE books SET price = $1 WHERE id = $2", 30, 1)
//		return err // ErrStale if another process has taken over
//	})
//
// [Leases.Do] waits for the lease, extends it while the function runs, and releases it. [Leases.Tx] also runs
// the function in a transaction that commits only under the newest token. An [Election] holds a lease for the
// whole process.
//
// The key of a lease is the name of its tokens. With the lease of "books", the process may write to the tables
// that the name "books" guards; with the lease of "books/42", to row 42 of a table with [sqlfence.Key].
//
// # Guarantees
//
//   - Two leases of one key are never live at the same time. A lease is live while expires_at is later than
//     now, by the clock of the database server.
//   - Each lease has a higher token than all earlier leases of its key. The first token is 1 (see package
//     tokens for failovers and durability).
//   - A lease that has ended never becomes live again.
//   - The holder counts by the monotonic clock of its process, from before it sent the request. So the lease
//     ends for its holder before another process can take the lease.
//
// # Losing a lease
//
// A lease is lost if the holder can't extend the lease in time. The context of the work then ends with a
// [*LostError] as its cause. A LostError is both [ErrLeaseLost] and [sqlfence.ErrStale], and a write that the
// database refuses for its token is ErrStale. database/sql itself returns context.Canceled or sql.ErrTxDone
// after the loss, so check the cause of the context as well:
//
//	if errors.Is(err, sqlfence.ErrStale) || errors.Is(context.Cause(ctx), sqlfence.ErrStale) {
//		return // another holder has taken over, or may have: stop working
//	}
//
// # Limits
//
// The lease alone stops no write. The token does, if the table is registered with sqlfence or the transaction
// is held (see [tokens.Store.Hold]). Effects outside of the database, such as mails, need a [Margin].
//
// Taking a lease waits for open transactions that wrote under the previous token to a table with
// [sqlfence.Ledger]. The TTL starts when the lease is granted. Extending a lease never waits for these
// transactions.
//
// Waiters of one Leases are served in the order of their calls. Waiters of different processes are served in
// no order.
//
// The package works on PostgreSQL, SQLite, MySQL and MariaDB, with any driver; db needs no fence.
// docs/leases.md describes each database, the statements sent, and the tables.
package lease
