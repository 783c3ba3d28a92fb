package schema

import (
	"database/sql"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A dialect is what one database needs to be told.
type dialect struct {
	sqltext.Dialect
	names sqlfence.Dialect

	// find is a query for the column. From its row, scan reads the type, and the fault of a column
	// that isn't a plain one. fits says which may be fence columns, and typ is what a new one gets.
	find func(fence) string
	scan func(*sql.Rows) (string, error)
	fits func(typ string) bool
	typ  string

	// steps add the column, trying as often as it says by themselves, if they can.
	steps func(f fence, tries int) steps
	pause time.Duration // after the first time that others were in the way

	// explain says what to do about an error of the steps; nil for nothing.
	explain func(error) error
}

var dialects = dialectopt.For(&postgres, &sqlite, &mysql)

func scanText(rows *sql.Rows) (text string, err error) {
	return text, rows.Scan(&text)
}
