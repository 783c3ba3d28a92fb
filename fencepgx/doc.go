// Package fencepgx guards the statements of a pgx pool, without database/sql. The options, rules, errors and events are
// those of package sqlfence.
//
//	pool, err := pgxpool.New(ctx, dsn)
//	db, err := fencepgx.New(pool, sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
//	_, err = db.Exec(sqlfence.WithFence(ctx, token), "UPDATE books SET price = $1 WHERE id = $2", 12, 7)
//
// A [DB] has the methods of a *pgxpool.Pool, and its transactions are a [pgx.Tx]; so code that sqlc generates for
// pgx/v5 accepts a DB and its transactions. Statements on the pool itself aren't guarded.
package fencepgx
