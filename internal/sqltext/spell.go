package sqltext

import (
	"strings"
	"time"

	"github.com/sqlfence/sqlfence/internal/nonce"
)

// quoteText writes a text constant as the SQL standard does.
func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// ticks returns d in a unit, rounded away from zero.
func ticks(d, unit time.Duration) int64 {
	n := int64(d / unit)
	switch rest := d % unit; {
	case rest > 0:
		n++
	case rest < 0:
		n--
	}
	return n
}

func raise(d Dialect, parts []string) string {
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

// convert casts to a type by the name that most databases know it by.
func convert(expression string, t Type) string {
	switch t {
	case Text:
		return "CAST(" + expression + " AS text)"
	case Bigint:
		return "CAST(" + expression + " AS bigint)"
	}
	return expression
}
