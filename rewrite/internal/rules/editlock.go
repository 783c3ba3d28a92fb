package rules

import "github.com/sqlfence/sqlfence/rewrite/internal/render"

// An editLock keeps other users than the lock's holder from writing a row.
type editLock struct {
	addsNothing
	setsNothing
}

// inWhere: a serial that the statement assigns is checked first, and its check includes the lock.
func (editLock) inWhere(_ *render.Registered, how rowWrite) bool { return !how.setsNumber }
