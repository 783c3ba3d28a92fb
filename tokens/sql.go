package tokens

import (
	"context"
	"database/sql"
	"strconv"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/own"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

const table = "fencing_tokens"

// create is what doc.go shows.
const create = `CREATE TABLE IF NOT EXISTS fencing_tokens (
	name  text   NOT NULL PRIMARY KEY,
	token bigint NOT NULL
)`

// statements are the texts that the methods send. Each is atomic in itself.
type statements struct {
	issue   sqltext.Floored // name, count: the last token; no row if the count doesn't fit under the limit
	floor   sqltext.Floored // the number that all tokens to come are above
	stands  sqltext.Floored // name: where its tokens have got to, never a NULL
	adopt   string          // name, token: the higher of the token and the stored one
	current string          // name: the stored token
	ensure  string          // JSON array of names: nothing

	// Of transactions.
	begin  []string        // after BEGIN
	lock   string          // keeps others from raising tokens; empty where nobody else can write
	start  sqltext.Floored // floor: where the names start that have no token yet
	raise  string          // floor: the names that have one
	turn   string          // name: waits for those who write under its guard; empty likewise
	retire string          // name, token: of it and of its rows' names

	columns string          // the table's columns: name, type, whether an INSERT must give a value; none without the table
	probe   sqltext.Floored // fails if issue would, and changes nothing
}

// statementsFor returns the statements in a dialect.
func statementsFor(d sqlfence.Dialect) statements {
	if d == sqlfence.Postgres {
		return postgresStatements()
	}
	return sqliteStatements()
}

// limit is the highest token, as a constant.
var limit = strconv.FormatInt(sqlfence.MaxToken, 10)

// sendFloored sends a statement that holds the floor of the tokens.
func (s *Store) sendFloored(ctx context.Context, f sqltext.Floored, send func(text string) error) error {
	found, err := s.timelines.Send(f, send, func(text string) error { return s.exec(ctx, text) })
	if found {
		s.log().Warn("tokens: " + sqltext.Untold)
	}
	return err
}

// queryFloored is query for a statement that holds the floor of the tokens.
func (s *Store) queryFloored(ctx context.Context, f sqltext.Floored, args ...any) (value int64, err error) {
	err = s.sendFloored(ctx, f, func(text string) (err error) {
		value, err = s.query(ctx, text, args...)
		return err
	})
	return value, err
}

// query runs a statement and returns the first value of its first row, 0 for
// NULL, or sql.ErrNoRows.
func (s *Store) query(ctx context.Context, query string, args ...any) (value int64, err error) {
	err = retry(func() error {
		value, err = s.queryOnce(ctx, query, args...)
		return err
	})
	return value, err
}

func (s *Store) queryOnce(ctx context.Context, query string, args ...any) (int64, error) {
	rows, err := s.db.QueryContext(own.Context(ctx, query), query, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	found := rows.Next()
	var value sql.NullInt64
	if found {
		if err := rows.Scan(&value); err != nil {
			return 0, err
		}
	}
	// To the very end: a database may answer with the row first and then fail
	// to commit. QueryRow would leave it to the driver's Close to tell.
	for rows.Next() {
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	if !found {
		return 0, sql.ErrNoRows
	}
	return value.Int64, nil
}

// exec runs a statement that gives no rows.
func (s *Store) exec(ctx context.Context, query string, args ...any) error {
	return retry(func() error {
		_, err := s.db.ExecContext(own.Context(ctx, query), query, args...)
		return err
	})
}

// retry sends a statement again that met a serialization failure: it has changed
// nothing, and someone else got on. Once the context ends the error is another.
func retry(send func() error) error {
	for {
		if err := send(); dberr.SQLState(err) != dberr.SerializationFailure {
			return err
		}
	}
}
