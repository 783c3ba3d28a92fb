package dberr

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/basedriver"
)

// IsConstraint reports whether err says that a constraint was violated, in any database.
func IsConstraint(err error) bool {
	if state := SQLState(err); state != "" {
		return strings.HasPrefix(state, "23")
	}
	code, ok := SQLiteCode(err)
	return ok && code&sqlitePrimary == sqliteConstraint
}

// Constraint returns the name of the constraint that PostgreSQL says was violated; empty for another
// error.
func Constraint(err error) string {
	for _, e := range chain(err, nil) {
		if SQLState(e) == "" {
			continue
		}
		if name := basedriver.ConstraintName(e); name != "" {
			return name
		}
	}
	return ""
}
