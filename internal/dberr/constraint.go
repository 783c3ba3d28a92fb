package dberr

import "strings"

// IsConstraint reports whether err says that a constraint was violated, in any database.
func IsConstraint(err error) bool {
	if strings.HasPrefix(SQLState(err), "23") {
		return true
	}
	code, ok := SQLiteCode(err)
	return ok && code&sqlitePrimary == sqliteConstraint
}
