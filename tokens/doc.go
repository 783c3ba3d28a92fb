// Package tokens issues fencing tokens. The table fencing_tokens, the ledger, keeps the newest token of each name in
// the database that holds the data.
//
//	store, err := tokens.New(db)
//	err = store.Setup(ctx)                  // creates the ledger; or use the files of package schema
//	token, err := store.Issue(ctx, "books") // higher than all earlier tokens of the name
//	ctx = sqlfence.WithFence(ctx, token)
//
// Pass the tokens of another lock service, such as etcd or Consul, to [Store.Adopt] instead.
//
// # Guarantees
//
//   - The first token of a name is 1, and each later token is higher. Tokens may be skipped.
//   - A call of Issue that starts after another call has returned, in any process, returns a higher token.
//   - On PostgreSQL, tokens also rise across failovers and restores by the server's own recovery: on timeline n, every
//     token is above (n - 1) * 10^10. Otherwise call [Store.Repair] after a failover that may have lost commits
//     (docs/tokens.md).
//   - The token is on disk when Issue returns, on PostgreSQL even with synchronous_commit = off, if the database's
//     settings make commits durable (SQLite: PRAGMA synchronous = FULL, the default).
//
// # Limits
//
// A token is not a lock: Issue never refuses a caller. It waits only for open transactions that wrote under the
// previous token.
//
// Issue doesn't take part in the caller's transaction, because other processes must see the token before it is used.
// Begin transactions with [database/sql.DB.BeginTx], not by executing BEGIN on the pool, which could roll back a token.
//
// Methods also return the errors of their context and of the database. The package works on PostgreSQL, SQLite (3.38 or
// later), MariaDB (10.6 or later) and MySQL (8.0 or later, InnoDB), with any driver; db needs no fence. Set a
// busy_timeout on SQLite. Names are stored in Unicode normalization form C.
package tokens
