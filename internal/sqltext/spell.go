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
