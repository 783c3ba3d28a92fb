package schema

import (
	"database/sql"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A dialect holds the statements and rules of one database.
type dialect struct {
	sqltext.Dialect
	names sqlfence.Dialect

	// find is a query for the column. scan reads the column's type from the row, or the fault of a column that isn't a
	// plain column. fits reports whether a column of the type can be a fence column. typ is the type of a new fence
	// column.
	find func(fence) string
	scan func(*sql.Rows) (string, error)
	fits func(typ string) bool
	typ  string

	// steps returns the statements that add the column. If the database allows it, the statements retry up to tries
	// times.
	steps   func(f fence, tries int) steps
	backoff time.Duration // the pause after the first attempt that other sessions have blocked

	// explain adds advice to an error of the steps. It is nil if the database needs no advice.
	explain func(error) error
}

var dialects = dialectopt.For(&postgres, &sqlite, &mysql)

func scanText(rows *sql.Rows) (text string, err error) {
	return text, rows.Scan(&text)
}
