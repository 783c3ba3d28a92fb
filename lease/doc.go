// Package lease grants leases that come with fencing tokens, in the database that
// holds the data. A lease is a lock that expires: the table fencing_leases says who
// holds which key until when, and package tokens' table fencing_tokens counts the
// tokens of each key.
//
//	leases, err := lease.New(db)
//	err = leases.Setup(ctx)                  // once, or by your own migration
//	err = leases.Do(ctx, "books", func(ctx context.Context) error {
//		_, err := db.ExecContext(ctx, "UPDATE books SET price = $1 WHERE id = $2", 30, 1)
//		return err                           // ErrStale if another process has taken over
//	})
//
// The key is the name of its tokens: the lease of "books" fences writes to the
// tables guarded by the token named "books", and the lease of "books/42" fences row
// 42 of a table registered with a key (see [sqlfence.Resource], [sqlfence.Key]).
//
// An [Election] holds a lease for a whole process, and gives the token to its writes without
// contexts.
//
// # What it promises
//
// A lease is live if, and only if, expires_at > now by the clock of the database
// server, without tolerance. No two live leases have the same key. Each lease has a
// higher token than every earlier lease of its key, released or expired; the first
// token is 1. Tokens keep rising across failovers and restores, and a lease that was
// granted or extended survives a crash of the server, within the limits that package
// tokens documents. Counters are never removed or reset. A lease that has ended never
// becomes live again. Clients' clocks decide nothing, with one exception: a holder
// considers its lease lost by its own monotonic clock, always before the server does.
//
// # Losing a lease
//
// A loss is one error: [ErrLeaseLost] and [sqlfence.ErrStale], both found in a [*LostError]. A
// write that the database has refused for its token is ErrStale, too. So a holder asks one thing:
//
//	if errors.Is(err, sqlfence.ErrStale) || errors.Is(context.Cause(ctx), sqlfence.ErrStale) {
//		return // another holder has taken over, or may have
//	}
//
// The second half is for package database/sql: the context of a lost lease is cancelled, and
// database/sql looks at it before it calls a driver. Then, and where it ends a transaction or the rows
// of a query by itself, its error is context.Canceled or [sql.ErrTxDone], and only [context.Cause] has
// the reason. What a fenced database is asked itself, [Leases.Do], and the functions of sqlfence's packages
// return the loss, and never context.Canceled in place of it or beside it. That remains the error of a
// caller that has given up.
//
// # What it is not
//
// A lease alone protects nothing: a holder may be paused, miss the end of its lease,
// and write when it wakes up. The token stops that write, provided that the table is
// registered with sqlfence.
//
// Waiters in different processes are served in no particular order. Within one
// [Leases] they are served first come, first served.
//
// If the server's clock is set back, leases live longer by that; if it is set
// forward, they end early: then two processes may both believe they hold the key, and
// the fence refuses the older one's writes.
//
// # The ledger and open transactions
//
// Taking a lease raises the key's token in the ledger, so it waits for open
// transactions that have written to a table guarded by [sqlfence.Ledger] under an
// older token: their writes commit before the new token is issued. Until then the
// lease is free, and its ttl hasn't begun. Extending and looking up touch only
// fencing_leases, so a heartbeat never waits for a fenced write.
//
// # The table
//
// [Leases.Setup] creates, on PostgreSQL,
//
//	CREATE TABLE IF NOT EXISTS fencing_leases (
//		key          text        NOT NULL PRIMARY KEY,
//		lock_id      text        UNIQUE,
//		holder       text        NOT NULL,
//		session      bigint,
//		token        bigint      NOT NULL,
//		acquired_at  timestamptz NOT NULL,
//		expires_at   timestamptz NOT NULL,
//		notify_until timestamptz
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
// on MySQL and MariaDB, with times in microseconds since 1970,
//
//	CREATE TABLE IF NOT EXISTS fencing_leases (
//		`key`       varbinary(512) NOT NULL PRIMARY KEY,
//		lock_id     varbinary(22)  UNIQUE,
//		holder      varbinary(512) NOT NULL,
//		session     bigint,
//		token       bigint         NOT NULL,
//		acquired_at bigint         NOT NULL,
//		expires_at  bigint         NOT NULL,
//		KEY fencing_leases_expires_at (expires_at)
//	) ENGINE=InnoDB
//
// and everywhere an index, so that [Leases.List] doesn't read the rows of all leases that ever
// were:
//
//	CREATE INDEX IF NOT EXISTS fencing_leases_expires_at ON fencing_leases (expires_at)
//
// which has its place in MySQL's table; a table that was made without it gets it by
//
//	CREATE INDEX fencing_leases_expires_at ON fencing_leases (expires_at)
//
// Only those who use [WithListener] need notify_until; releases before that time notify.
// A released lease has no lock_id, and in holder a mark of its release. Rows stay, so that
// taking a lease updates a row in place; [Leases.Sweep] removes the rows of leases that
// have ended.
//
// # Databases
//
// PostgreSQL, SQLite (3.38 or later), MariaDB and MySQL (with InnoDB), through any driver, fenced by sqlfence
// or not: this package's own tables need no registration. SQLite's clock is the
// machine's, which all processes that share the file have in common.
//
// On MySQL and MariaDB taking a lease is a read and a transaction of two statements. A process
// that is stopped in the middle of the transaction keeps the key from all others until the server ends its
// session, by wait_timeout. Extending and releasing are statements without a transaction, except in a
// session with autocommit = 0, another completion_type than NO_CHAIN or binlog_format = STATEMENT, and
// on a server with sysdate-is-now: there the same holds for them. The clock is the server's also where a session has
// set its variable timestamp, but not on a server with sysdate-is-now. No statement is shared, and [Ephemeral]
// sees sessions of one server only: where several servers write to one database, as in a Galera cluster, it is refused
// ([ErrNoSessions]).
//
// SQLite allows one writer for the whole file. While another connection writes, a
// method fails with SQLITE_BUSY unless the connection has a busy_timeout: set one in
// the data source name. A process that is paused in the middle of a write blocks all
// other writers until it continues or dies.
package lease
