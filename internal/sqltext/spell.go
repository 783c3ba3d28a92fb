package sqltext

import (
	"strings"
	"time"

	"github.com/sqlfence/sqlfence/internal/nonce"
)

// QuoteText writes a text constant as the SQL standard does.
func QuoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Ticks returns d in a unit, rounded away from zero.
func Ticks(d, unit time.Duration) int64 {
	n := int64(d / unit)
	switch rest := d % unit; {
	case rest > 0:
		n++
	case rest < 0:
		n--
	}
	return n
}

// Raise is an expression that fails when it is evaluated, with a text of the parts, which are expressions. Something in
// them has to depend on the row or the time, or the planner evaluates it.
func Raise(d Dialect, parts ...string) string {
	before, between, behind := d.Raising()
	return before + strings.Join(parts, between) + behind
}

// NewMark returns the text that a package's own statement raises with, which no value holds: it
// is another one in each process.
func NewMark(kind string) string { return "sqlfence:" + nonce.New() + ":" + kind + ":" }

// IsRaised reports whether err is what a statement has raised with a mark.
func IsRaised(d Dialect, err error, mark string) bool {
	if err == nil {
		return false
	}
	text, ok := d.Raised(err)
	return ok && strings.Contains(text, mark)
}

// Convert casts to a type by the name that most databases know it by.
func Convert(expression string, t Type) string {
	switch t {
	case Text:
		return "CAST(" + expression + " AS text)"
	case Bigint:
		return "CAST(" + expression + " AS bigint)"
	}
	return expression
}

// Seen is what PostgreSQL's piece {seen name} raises where the statement's snapshot may be older than the
// name that it is about to add.
var Seen = NewMark("unseen")
