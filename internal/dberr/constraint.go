package dberr

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/basedriver"
)

// IsConstraint reports whether err is a constraint violation, in any database.
func IsConstraint(err error) bool {
	if state := SQLState(err); state != "" {
		return strings.HasPrefix(state, "23")
	}
	code, ok := SQLiteCode(err)
	return ok && code&sqlitePrimary == sqliteConstraint
}

// Constraint returns the name of the violated constraint in PostgreSQL; empty for other errors.
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
