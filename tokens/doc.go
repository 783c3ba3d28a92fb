// Package tokens issues fencing tokens and keeps the ledger of the newest one
// for each name: the table fencing_tokens, next to the data that it protects.
//
//	store, err := tokens.New(db)
//	err = store.Setup(ctx)                   // once, or by your own migration
//	token, err := store.Issue(ctx, "books")  // newer than every token before it
//	ctx = sqlfence.WithFence(ctx, token)
//
// A lock service that hands out numbers of its own (an etcd revision, a Consul
// LockIndex) needs no Issue: [Store.Adopt] raises the ledger to its number.
//
// # What it promises
//
// The first token of a name is 1, and no token is issued twice. A call of Issue that
// starts after another one has returned, in this process or in any other, returns a
// higher token. Tokens may be skipped: a call that failed or was cancelled may have
// taken one, which is then lost. The ledger's tokens never fall, and a row goes only
// where a floor keeps its tokens from coming back ([Store.Delete]). Names are brought into
// Unicode's normalization form C, so that two spellings of one text are one name.
//
// # Failover and restore
//
// A standby that is promoted may lack the tokens that were issued last, and so may a
// backup. On PostgreSQL the tokens rise all the same, because each timeline of the
// server has 10,000,000,000 tokens of its own: on timeline 3 every token is above
// 20,000,000,000. A promotion and the end of a restore each begin a timeline. The
// limits of this:
//
//   - A name may use up the tokens of its timeline and reach those of the next, after
//     115 days of 1,000 tokens a second. Call [Store.Repair] after a failover then.
//   - It covers tokens from Issue and from package lease. Tokens of another service are
//     as durable as that service, and may be above those of later timelines.
//   - The database role must be able to read the timeline. Some managed services don't
//     allow it (functions pg_walfile_name and pg_current_wal_lsn); the Store then logs a
//     warning, once, and issues tokens without it. Other services allow it, but begin no
//     timeline at a failover, because they lose no commit.
//   - MySQL and MariaDB have no timelines: call [Store.Repair] after a failover to a replica that
//     may lack commits.
//   - Only the server's own recovery begins a timeline. A dump, a snapshot of a disk and
//     a copy of a SQLite file don't: call [Store.Repair] after restoring one. A new
//     cluster, made by pg_upgrade or from a dump, begins with timeline 1 again: call
//     Repair there, too.
//
// The range of tokens ends with timeline 90,000. On a later timeline Issue returns
// [sqlfence.ErrTokenLimit]; a new cluster with new names is the way out.
//
// # Durability
//
// On PostgreSQL a token is on disk when Issue returns it, even where synchronous_commit
// is off: statements that issue a token or a lease turn it on for themselves. With
// fsync = off nothing is certain.
//
// On SQLite the connection's PRAGMA synchronous decides. With FULL, the default, a token
// survives a power failure. With NORMAL it does so in rollback-journal mode; in WAL mode
// a power failure can undo the last commits, and Issue then returns the same tokens
// again. With OFF that can happen in any mode, and the file can be damaged. A process
// that dies loses nothing under any of these settings. So issue tokens on connections
// with FULL, or call [Store.Repair] after a power failure.
//
// On MySQL and MariaDB innodb_flush_log_at_trx_commit decides, and sync_binlog where the server
// recovers from its log of changes. With 1, the defaults, a token is on disk when Issue returns it.
//
// # What it is not
//
// A token is not a lock: Issue never refuses because there is a holder, and the holder of the
// newest token has the resource. Issue waits only for open transactions that have written under the
// ledger's guard, so that their writes come before the new token.
//
// Issue takes no part in a transaction of the caller, on purpose: others must see the
// token before it is used. In an open transaction it would block every other Issue of
// that name until the commit, guard nothing in the meantime, and be issued again after
// a rollback. So give the Store no pool with a connection in which the text BEGIN has begun a
// transaction that is still open, as db.Exec("BEGIN") leaves one: Issue can't tell there that its
// token isn't committed. pgx drops such a connection; lib/pq and the drivers of SQLite and MySQL
// hand it out. [database/sql.DB.BeginTx], or a [database/sql.Conn] that is closed behind the COMMIT
// or ROLLBACK, keeps it to itself.
//
// # The table
//
// [Store.Setup] creates
//
//	CREATE TABLE IF NOT EXISTS fencing_tokens (
//		name  text   NOT NULL PRIMARY KEY,
//		token bigint NOT NULL
//	)
//
// and on MySQL and MariaDB, where a text would be compared by its collation, and "books "
// be the same as "Books",
//
//	CREATE TABLE IF NOT EXISTS fencing_tokens (
//		name  varbinary(512) NOT NULL PRIMARY KEY,
//		token bigint         NOT NULL
//	) ENGINE=InnoDB
//
// An existing table of that name is used as it is if it has a unique column name, an
// integer column token (NULL counts as 0), and no other column for which an INSERT must
// give a value. On PostgreSQL, a column token of type integer has no room for a token
// above 2147483647, which the first failover brings: Setup logs a warning, and
// returns an error once no token fits. A column of type serial has the same limit, and each
// statement uses up one of its values, whether it adds a row or not. Change both to
// bigint, and the sequence as well.
//
// [Store.Repair] adds a row with an empty name, which no token has. [Store.RecordIssuers] adds columns for who has
// taken each token last, and when, which the database fills in.
//
// # Databases
//
// PostgreSQL, SQLite (3.38 or later), MariaDB (10.6 or later) and MySQL (8.0 or later), with any
// driver, fenced by sqlfence or not.
// Repair and Rotate are one transaction each, List and ListIssued a statement for each 1,000 names, and every other
// method but Setup and RecordIssuers one atomic statement; Issue sends more only when the tokens run out. On MySQL and
// MariaDB other methods are transactions, too, except Issue and Adopt for a name that is in the ledger, in a session
// that commits by itself (autocommit = 1).
//
// On MySQL and MariaDB the table has to be of the engine InnoDB, with names of type
// varbinary(512) or longer and tokens of type bigint; Setup refuses others. The row with
// an empty name is there from the first name on. A statement waits for another's lock as
// long as innodb_lock_wait_timeout says, and then fails with error 1205, which is temporary.
//
// SQLite has one writer for the whole file. While another connection writes, a method
// fails with SQLITE_BUSY unless the connection has a busy_timeout: set one in the data
// source name.
//
// Where PostgreSQL's default isolation level is REPEATABLE READ or SERIALIZABLE, a
// statement may meet a serialization failure (40001). It has changed nothing then, and
// is sent again after a short pause, until its context ends. The first token of a name
// takes three statements there.
package tokens
