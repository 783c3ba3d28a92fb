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
// The first token of a name is 1, and no token is given out twice. A call of
// Issue that starts after another one has returned, in this process or in any
// other, gets a higher token. Tokens may be skipped: the token of a call that
// failed or was cancelled may have been taken and lost. A token never falls and
// is never reused, so rows are never deleted. Names are brought into Unicode's
// normalization form C, so that two spellings of one text are one name.
//
// # Failover and restore
//
// A standby that is promoted may not have got the tokens that were issued last, nor has
// a backup. On PostgreSQL the tokens rise all the same, because each timeline of the
// server, which a promotion or the end of a restore begins, has 10,000,000,000 for
// itself: on timeline 3 a token is above 20,000,000,000. This holds
//
//   - for a name that has not been given so many tokens that it has reached the numbers of
//     the next timeline, which takes 115 days of 1,000 a second; see [Store.Repair] for
//     what to do after a failover then;
//   - for tokens that Issue and package lease give. Those of another service are as
//     durable as that service, and they may lie above the numbers of the timelines to
//     come;
//   - where the server tells its timeline. Some managed services keep the functions
//     (pg_walfile_name, pg_current_wal_lsn) to themselves: the Store then logs a warning
//     once and does without. Others have them, but begin no timeline when they fail
//     over, because they lose nothing that was committed;
//   - for restores by the server's own recovery. A dump, a snapshot of a disk and a copy of
//     a SQLite file begin no timeline: call [Store.Repair] after restoring one. A
//     new cluster, by pg_upgrade or a dump, begins with timeline 1 again: call it there too.
//
// The range of the tokens ends with timeline 90,000: from the next one on there is no
// token ([sqlfence.ErrTokenLimit]) but in a new cluster, under new names.
//
// # Durability
//
// On PostgreSQL a token is on disk when it is given out, whatever synchronous_commit
// says: where it is off, a statement that gives a token or a lease turns it on for
// itself. fsync = off is beyond that.
//
// On SQLite it is as durable as the connection's PRAGMA synchronous says. With FULL, the
// default, it outlives a loss of power; with NORMAL only if the database has a rollback
// journal: in WAL mode a loss of power can take back the last commits, and the same
// tokens are given again. With OFF it can do so in any mode, and damage the file. A
// process that dies loses nothing in any of them. So open the database that
// tokens are issued on with FULL, or call [Store.Repair] after a loss of power.
//
// # What it is not
//
// A token is not a lock: Issue never refuses because there is a holder, and
// whoever got the newest token has the resource. It waits only for transactions
// that are still open and have written under the guard of the ledger, so that
// their writes come before the new token.
//
// Issue doesn't take part in a transaction of the caller, on purpose: the token
// has to be visible to all before it is used. In an open transaction it would
// block every other Issue of that name until the commit, guard nothing
// meanwhile, and be given out again after a rollback.
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
// Another table of that name is used as it is if it has a unique name, an
// integer token (NULL counts as 0), and no further column that an INSERT must
// give a value. A 4-byte integer column on PostgreSQL holds no token above 2147483647,
// and so none after the first failover: Setup warns of it, and refuses it where no
// token fits any more. A serial id has the same limit, and each statement uses up a value
// of it, whether or not it adds a row. Widen both to bigint, and the sequence with them.
//
// A row with the empty name, which no token has, is added by [Store.Repair].
//
// # Databases
//
// PostgreSQL and SQLite (3.38 or later), through any driver, fenced by sqlfence
// or not. Every method but Setup is one atomic statement, or for Repair and Rotate a
// transaction; Issue sends more only where the tokens run out.
//
// SQLite has one writer for the whole file. When another holds it, a method
// fails with SQLITE_BUSY unless the connection has a busy_timeout: set one in
// the data source name.
//
// On PostgreSQL, where the default isolation level is REPEATABLE READ or
// SERIALIZABLE, a statement may meet a serialization failure (40001). It has
// changed nothing then and is sent again, until its context ends. A name's first token
// takes three statements there.
package tokens
