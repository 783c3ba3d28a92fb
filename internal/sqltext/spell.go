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

// Throw is an expression that throws an error when evaluated, with a text of the parts, which are expressions. A part
// must depend on the row or the time; otherwise the planner may evaluate the expression, and the error comes always.
func Throw(d Dialect, parts ...string) string {
	before, between, behind := d.Throwing()
	return before + strings.Join(parts, between) + behind
}

// NewMarker returns a text for the errors that a package's own statement throws. No stored value contains the text,
// because it differs in each process.
func NewMarker(kind string) string { return "sqlfence:" + nonce.New() + ":" + kind + ":" }

// IsThrown reports whether err is an error that a statement has thrown with the text mark.
func IsThrown(d Dialect, err error, mark string) bool {
	if err == nil {
		return false
	}
	text, ok := d.Thrown(err)
	return ok && strings.Contains(text, mark)
}

// Convert casts to a type by the name that the type has in most databases.
func Convert(expression string, t Type) string {
	switch t {
	case Text:
		return "CAST(" + expression + " AS text)"
	case Bigint:
		return "CAST(" + expression + " AS bigint)"
	}
	return expression
}

// OldSnapshot is the error text of PostgreSQL's fragment {seen name} if the name is new, and the statement's snapshot
// may be older than the last [tokens.Store.Repair].
var OldSnapshot = NewMarker("unseen")
