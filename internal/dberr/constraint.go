package dberr

import (
	"reflect"
	"strings"
)

// IsConstraint reports whether err says that a constraint was violated, in any database.
func IsConstraint(err error) bool {
	if strings.HasPrefix(SQLState(err), "23") {
		return true
	}
	code, ok := SQLiteCode(err)
	return ok && code&sqlitePrimary == sqliteConstraint
}

// Constraint returns the name of the constraint that PostgreSQL says was violated; empty for another
// error. The drivers have it in a field of their own, apart from the texts that a user may have written.
func Constraint(err error) string {
	for _, e := range chain(err, nil) {
		v := reflect.Indirect(reflect.ValueOf(e))
		if v.Kind() != reflect.Struct || SQLState(e) == "" {
			continue
		}
		for _, field := range []string{"ConstraintName", "Constraint"} { // pgx, lib/pq
			if name := v.FieldByName(field); name.IsValid() && name.Kind() == reflect.String {
				return name.String()
			}
		}
	}
	return ""
}
