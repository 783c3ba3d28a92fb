// Package lease grants leases: locks that expire, each with a fencing token. With the token, the database refuses the
// writes of a holder that was paused past the end of its lease. The leases are in the table fencing_leases of the
// database that holds the data.
//
//	leases, err := lease.New(db)
//	err = leases.Setup(ctx) // creates the tables; or use the files of package schema
//	err = leases.Do(ctx, "books", func(ctx context.Context) error {
//		_, err := db.ExecContext(ctx, "UPDATE books SET price = $1 WHERE id = $2", 30, 1)
//		return err // ErrStale if another process has taken over
//	})
//
// The key of a lease is the name of its tokens. [Leases.Tx] runs a function in a transaction under a lease. An
// [Election] holds a lease for the whole process.
//
// # Guarantees
//
//   - Two leases of one key are never live at the same time. A lease is live while expires_at is later than now, by
//     the database server's clock, and never becomes live again.
//   - Each lease has a higher token than all earlier leases of its key. The first token is 1 (see package tokens).
//   - The holder counts by its own monotonic clock, from before it sent the request. So the lease ends for its holder
//     before another process can take it.
//
// # Losing a lease
//
// A lease is lost if the holder can't extend it in time. The context of the work then ends with a [*LostError] as its
// cause, which is ErrLeaseLost and [sqlfence.ErrStale]. database/sql itself returns context.Canceled or sql.ErrTxDone
// then, so check the cause as well:
//
//	if errors.Is(err, sqlfence.ErrStale) || errors.Is(context.Cause(ctx), sqlfence.ErrStale) {
//		return // another holder has taken over, or may have: stop working
//	}
//
// # Limits
//
// The lease alone stops no write. The token does, if the table is registered with sqlfence or the transaction is held
// ([Leases.Tx]). Effects outside of the database, such as mails, need a [Margin].
//
// Taking a lease waits for open transactions that wrote under the previous token to a table with [sqlfence.Ledger];
// the TTL starts afterwards. Waiters of different processes are served in no order.
//
// The package works on PostgreSQL, SQLite, MySQL and MariaDB, with any driver; db needs no fence. docs/leases.md
// describes each database.
package lease
