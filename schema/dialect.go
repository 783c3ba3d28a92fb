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

	// find is a query for an existing column of the fence's name. scan reads its type from the row, with an addition
	// such as GENERATED. fits reports whether such a column can be a fence column. typ is the type of a new one.
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
