package harness

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"testing"
)

// A Reader is a database, a connection or a transaction.
type Reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Jobs returns the rows of the table jobs in the order of their keys, each as format makes a text of its key, its state and
// its attempt, which may be NULL.
func Jobs(t testing.TB, db Reader, format string) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT id, state, attempt FROM jobs ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var state string
		var attempt sql.NullInt64
		if err := rows.Scan(&id, &state, &attempt); err != nil {
			t.Fatal(err)
		}
		number := "NULL"
		if attempt.Valid {
			number = strconv.FormatInt(attempt.Int64, 10)
		}
		all = append(all, fmt.Sprintf(format, id, state, number))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
