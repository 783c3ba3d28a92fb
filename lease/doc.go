// Package lease grants leases that come with fencing tokens, on the database
// that is already there. A lease is a lock that ends by itself: the table
// fencing_leases says who holds what, and package tokens' table fencing_tokens
// keeps the counter of each key.
//
//	leases, err := lease.New(db)
//	err = leases.Setup(ctx)                  // once, or by your own migration
//	err = leases.Do(ctx, "books", func(ctx context.Context) error {
//		_, err := db.ExecContext(ctx, "UPDATE books SET price = $1 WHERE id = $2", 30, 1)
//		return err                           // ErrStale if somebody has taken over
//	})
//
// The key is the name of its tokens: the lease of "books" fences the writes on
// the tables whose token is called "books", and that of "books/42" the row 42 of
// a table with such keys (see [sqlfence.Resource], [sqlfence.Key]).
//
// # What it promises
//
// A lease is live if, and only if, expires_at > now by the clock of the database
// server; there is no tolerance. No two live leases have the same key. Each lease
// has a higher token than every one before it on its key, whether that was
// released or expired; the first is 1. That holds across failovers and restores too, as
// package tokens says, and so does what it says of durability: a lease that was granted
// or extended outlives a crash of the server. Counters are never removed or reset. A
// lease that has ended is never brought back to life. The clocks of the clients
// decide nothing, except that a holder considers its own lease lost by its own
// monotonic clock, which is always before the server does.
//
// # What it is not
//
// A lease alone doesn't protect anything: a holder may be stopped, miss the end
// of its lease, and write when it wakes. That is what the token is for, and the
// tables have to be registered with sqlfence to have it checked.
//
// There is no order among those who wait in different processes. Within one they
// are served in the order in which they came.
//
// If the server's clock is set back, leases live longer by that; if it is set
// forward, they end early: then two holders may believe to have one key, and the
// fence refuses the older one's writes.
//
// # The ledger and transactions under way
//
// Taking a lease raises the ledger's token, so it waits for transactions that are
// still open and have written under an older token by the guard of
// [sqlfence.Ledger]: their writes come before the new token. Until then the lease
// is free, and its ttl hasn't begun. Extending and looking up touch
// fencing_leases only: a heartbeat doesn't wait for a fenced write.
//
// # The table
//
// [Leases.Setup] creates, on PostgreSQL,
//
//	CREATE TABLE IF NOT EXISTS fencing_leases (
//		key         text        NOT NULL PRIMARY KEY,
//		lock_id     text        UNIQUE,
//		holder      text        NOT NULL,
//		session     bigint,
//		token       bigint      NOT NULL,
//		acquired_at timestamptz NOT NULL,
//		expires_at  timestamptz NOT NULL
//	)
//
// and on SQLite, with times in milliseconds since 1970,
//
//	CREATE TABLE IF NOT EXISTS fencing_leases (
//		key         text    NOT NULL PRIMARY KEY,
//		lock_id     text    UNIQUE,
//		holder      text    NOT NULL,
//		token       bigint  NOT NULL,
//		acquired_at integer NOT NULL,
//		expires_at  integer NOT NULL
//	)
//
// A released lease has no lock_id. Rows stay, so that taking a lease is an update
// in place; [Leases.Sweep] removes those of leases that have ended.
//
// # Databases
//
// PostgreSQL and SQLite (3.38 or later), through any driver, fenced by sqlfence
// or not: its own tables need no registering. SQLite's clock is that of the
// machine, which all who share the file have in common.
//
// SQLite has one writer for the whole file. When another holds it, a method fails
// with SQLITE_BUSY unless the connection has a busy_timeout: set one in the data
// source name. A process that is stopped in the middle of a write holds off all
// others until it goes on or dies.
package lease
