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
// is never reused, so rows are never deleted.
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
// give a value. On a 4-byte integer column PostgreSQL refuses the token after
// 2147483647 with its own error, and so it does for a serial id, of which each
// statement uses up a value, whether or not it adds a row. Widen both to bigint,
// and the sequence with them.
//
// # Databases
//
// PostgreSQL and SQLite (3.38 or later), through any driver, fenced by sqlfence
// or not. Every method but Setup is one atomic statement; Issue sends more only
// where the tokens run out.
//
// SQLite has one writer for the whole file. When another holds it, a method
// fails with SQLITE_BUSY unless the connection has a busy_timeout: set one in
// the data source name.
//
// On PostgreSQL, where the default isolation level is REPEATABLE READ or
// SERIALIZABLE, a statement may meet a serialization failure (40001). It has
// changed nothing then and is sent again, until its context ends.
package tokens
