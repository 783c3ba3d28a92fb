// Package editlock defines which IDs mean that a row's lock has no holder: for package rowlock,
// which takes the locks of rows, and for the rule sqlfence.EditLock, which refuses the writes of
// users who don't hold them.
//
// No holder is NULL, the empty text, and zero however it is written: a user ID may be kept in a
// column of integers or in one of texts, and means the same in both.
package editlock

import (
	"strconv"
	"strings"
)

// IsNoHolder reports whether an ID, as text, means no holder. That includes texts that only some
// databases read as zero, such as "0x0": a user may not have such an ID.
func IsNoHolder(id string) bool {
	id = strings.TrimSpace(id)
	if id == "" {
		return true
	}
	if number, err := strconv.ParseFloat(id, 64); err == nil {
		return number == 0
	}
	integer, err := strconv.ParseInt(id, 0, 64) // "0x0", "0b0", "0_0"
	return err == nil && integer == 0
}

// NoHolder is the rule in SQL: a condition, never NULL, that column names no holder; text is an
// expression for its value as text, and empty is the empty text. builtIn stands before functions and operators of the
// database's, where an application may have others of their names. A value that isn't certainly a
// zero names a user, and the lock counts as held: "-", "0-0", more than 16 zeros in a row, and
// "0x0", though [IsNoHolder] refuses that for an ID.
func NoHolder(column, text, empty, builtIn string) string {
	short := "trim(" + text + ")"
	for range 4 { // halve each row of zeros
		short = builtIn + "replace(" + short + ", '00', '0')"
	}
	in, end := " IN (", "))"
	if builtIn != "" {
		in, end = " OPERATOR("+builtIn+"=) ANY (ARRAY[", "]))"
	}
	return "(" + column + " IS NULL OR " + short + in + empty + ", " + zeros + end
}

const zeros = "'0', '0.', '.0', '0.0', '-0', '-0.', '-.0', '-0.0', '+0', '+0.', '+.0', '+0.0'"
