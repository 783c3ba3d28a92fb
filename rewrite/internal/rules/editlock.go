package rules

import "github.com/sqlfence/sqlfence/rewrite/internal/render"

// An editLock is the rule EditLock: it lets only the user who holds a row's lock write the row.
type editLock struct {
	addsNothing
	setsNothing
}

// inWhere returns true unless the statement assigns the row version: then the check of the row version comes first and
// includes the lock.
func (editLock) inWhere(_ *render.Registered, how rowWrite) bool { return !how.setsNumber }
