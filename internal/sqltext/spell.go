package sqltext

import (
	"strings"
	"time"
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
