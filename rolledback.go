package sqlfence

import (
	"fmt"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

// followRollback notes that the server has rolled back the transaction that a statement, which
// failed with err, stood in, and goes on without one.
func (s *connState) followRollback(err error) {
	if err != nil && s.inTx && s.settings.profile.goesOnAfterRollback() && dberr.IsRolledBack(err) {
		s.rolledBack = err
	}
}

// checkRollback refuses a guarded write behind such an error in a transaction of BeginTx: it would
// be committed by itself, without what stands before it.
func (s *connState) checkRollback() error {
	if s.rolledBack == nil {
		return nil
	}
	return &rolledBackTx{s.rolledBack}
}

// rolledBackTx is the error of what follows in a transaction that the server has rolled back.
type rolledBackTx struct{ err error }

func (e *rolledBackTx) Error() string {
	return fmt.Sprintf("sqlfence: the server has rolled back the transaction; roll it back and run it again: %v", e.err)
}
func (e *rolledBackTx) Unwrap() error { return e.err }

// Temporary returns true: see [Retry].
func (e *rolledBackTx) Temporary() bool { return true }
