package tokens

import (
	"database/sql"
	"strconv"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// dialects are the databases that a [Store] can keep the ledger in.
var dialects = dialectopt.For(&postgres, &sqlite)

// A dialect has the statements that a [Store] sends to a database. Each statement is atomic by itself.
// A list may be empty.
type dialect struct {
	sqltext.Dialect
	names sqlfence.Dialect // how the names of tables and columns are read

	issue   sqltext.Floored // name, count: the last token; no row if the count doesn't fit under the limit
	floor   sqltext.Floored // the number that all tokens to come are above
	reached sqltext.Floored // name: the last of its tokens, or where they begin; never NULL
	adopt   string          // name, token: the higher of the token and the stored one
	current string          // name: the stored token
	ensure  string          // JSON array of names: adds those that are missing

	columns string          // the ledger's columns: name, type, whether an INSERT must give a value; no rows without the table
	narrow  string          // the type of a column token that is too small for later timelines; empty if there is none
	probe   sqltext.Floored // fails if issue would, and changes nothing

	// The function that guards ask the ledger by: what installs it or brings it up to date,
	// and a query that has a row if guards can call it. Empty where there is none.
	installFunction, findFunction string

	// Within a transaction.
	level    *sql.TxOptions            // each statement sees what was committed before it
	begin    []string                  // what comes first
	lock     []string                  // keeps others from raising tokens
	turn     []string                  // name: waits for those who write under its guard
	lockRows func(table string) string // keeps others from writing to a table; nil where there is one writer only
	start    sqltext.Floored           // floor: where names start that have no token yet
	raise    string                    // floor: raises the names that have one
	retire   string                    // name, token: of it and of the names of its rows
}

// create is what doc.go shows.
const create = sqltext.CreateLedger

// pieces are what the statements of all dialects know besides.
var pieces = sqltext.Pieces{"max": sqltext.Raw(strconv.FormatInt(sqlfence.MaxToken, 10))}

// render writes a statement whose placeholders are written by hand.
func render(d sqltext.Dialect, text string) string {
	text, _ = sqltext.Render(d, text, pieces)
	return text
}

// floored writes a statement that names {floor}.
func floored(d sqltext.Dialect, text string, more sqltext.Pieces) sqltext.Floored {
	return sqltext.NewFloored(d, text, more, pieces)
}
