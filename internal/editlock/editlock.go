// Package editlock defines which user IDs in a row mean that no user holds the row's lock: for package rowlock, which
// takes the locks of rows, and for the rule sqlfence.EditLock, which refuses a write while another user holds the lock.
//
// These IDs are NULL, the empty text, and zero however it is written. So an ID means the same in a column of integers
// and in a column of texts.
package editlock

import (
	"strconv"
	"strings"
)

// IsNoHolder reports whether an ID, as text, means no holder. It also reports true for texts that only some databases
// read as zero, such as "0x0": no user may have such an ID.
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

// NoHolder returns an SQL condition, never NULL: the column names no holder. text is an expression for the column's
// value as text, and empty is the constant for the empty text. builtIn is the schema prefix of the database's functions
// and operators, as in sqltext.Capabilities. Any value that isn't certainly zero names a user, so the lock counts as
// held: "-", "0-0", more than 16 zeros in a row, and "0x0". Only for "0x0" does [IsNoHolder] say that there is no
// holder.
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
