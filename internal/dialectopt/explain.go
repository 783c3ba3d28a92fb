package dialectopt

import (
	"context"
	"database/sql"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/lost"
	"github.com/sqlfence/sqlfence/internal/setuperr"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// Queries is a database or a transaction.
type Queries interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Explain returns err as a [sqlfence.SetupError] if err reports that one of tables, or a privilege on it, is missing.
// Otherwise, if ctx ended because the holder lost its lease or lock, it adds this reason, and it applies [Ended]. In a
// transaction db must be the transaction; Explain queries db for the table in other schemas.
func Explain(ctx context.Context, db Queries, err error, tables ...setuperr.Table) error {
	if missing, ok := setuperr.Find(err, asker(ctx, db), tables...); ok {
		return &sqlfence.SetupError{Missing: missing.Name, SQL: missing.SQL, Remedy: missing.Remedy, Err: err}
	}
	return Ended(ctx, lost.Explain(ctx, err))
}

// WarnOfSecond logs a warning if another schema has the table that Setup is about to create, unless WithSchema names
// the schema.
func (o *Options) WarnOfSecond(ctx context.Context, db Queries, t setuperr.Table) {
	if o.Schema != "" {
		return
	}
	if found := t.Elsewhere(asker(ctx, db)); len(found) > 0 {
		o.Log().Warn("sqlfence: setup creates another table "+t.Name+": processes that find different ones don't see "+
			"each other's tokens; name the schema by sqlfence.WithSchema if they are to share one", "others", found)
	}
}

// timeout limits the wait for a connection of a full pool, because the result only improves a message.
const timeout = 2 * time.Second

func asker(ctx context.Context, db Queries) setuperr.Asker {
	return func(query string) (found []string, err error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return Texts(ctx, db, query)
	}
}

// Texts returns the single column of one of sqlfence's own queries.
func Texts(ctx context.Context, db Queries, query string) (all []string, err error) {
	err = EachRow(ctx, db, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		all = append(all, text)
		return err
	}, query)
	return all, err
}

// EachRow sends one of sqlfence's own queries and calls scan for each row. It also reads the end of the rows, because a
// database may return a row and then fail to commit.
func EachRow(
	ctx context.Context, db Queries, scan func(*sql.Rows) error, query string, args ...any,
) error {
	send := func() error { return eachRow(ctx, db, scan, query, args...) }
	if _, inTx := db.(interface{ Rollback() error }); inTx {
		return send()
	}
	return dberr.Reprepared(send)
}

func eachRow(ctx context.Context, db Queries, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := db.QueryContext(trusted.Context(ctx, query), query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
