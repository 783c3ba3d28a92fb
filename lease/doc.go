// Package lease grants leases: locks that expire, each with a fencing token. With the token, the database refuses the
// writes of a holder that was paused past the end of its lease. Leases are rows of the table fencing_leases.
//
//	leases, err := lease.New(db)
//	err = leases.Setup(ctx) // creates the tables; or use the files of package schema
//	err = leases.Do(ctx, "books", func(ctx context.Context) error {
//		_, err := db.ExecContext(ctx, "UPDATE books SET price = $1 WHERE id = $2", 30, 1)
//		return err // ErrStale if another process has taken over
//	})
//
// # Guarantees
//
//   - Two leases of one key are never live at the same time, by the database server's clock.
//   - Each lease has a higher token than all earlier leases of its key (see package tokens).
//   - By its own monotonic clock, the holder's lease ends before another process can take it.
//
// # Losing a lease
//
// If the holder can't extend the lease in time, its context ends with a [*LostError] as its cause, which is
// ErrLeaseLost and [sqlfence.ErrStale]. database/sql returns context.Canceled or sql.ErrTxDone then, so check the cause
// as well:
//
//	if errors.Is(err, sqlfence.ErrStale) || errors.Is(context.Cause(ctx), sqlfence.ErrStale) {
//		return // another holder may have taken over: stop working
//	}
//
// # Limits
//
// The lease alone stops no write. The token does, if the table is registered with sqlfence or the transaction is held.
// Other effects, such as mails, need a [Margin].
//
// Taking a lease waits for open transactions that wrote under the previous token to a table with [sqlfence.Ledger].
//
// Methods also return the errors of their context and of the database. The package works on PostgreSQL, SQLite, MySQL
// and MariaDB, with any driver; db needs no fence. docs/leases.md describes each database.
package lease
