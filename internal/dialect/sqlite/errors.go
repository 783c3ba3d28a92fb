package sqlite

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/fact"
)

// Errors are how SQLite answers.
var Errors = &dberr.Classifier{
	Remote:        fact.No,
	CommitsAfter:  fact.Yes,
	HidesRollback: fact.Yes,
	Unlocks:       fact.No,
	BytesAreText:  fact.Yes,
	CountsRows:    fact.No,
	CountsArgs:    fact.No,
	TimeType:      "integer",

	IsResponse:  isResponse,
	KeepsTx:     dberr.Never[error], // of a busy file the application may try again
	EndsTx:      dberr.Nowhere,
	IsOpen:      isOpen,
	LeftNothing: leftNothing,
	ChoosesKey:  dberr.Never[string],
}

func isResponse(err error) bool {
	_, ok := dberr.SQLiteCode(err)
	return ok
}

// isOpen: OR ROLLBACK, RAISE, a full disk and an interrupted statement may each end the transaction, so an error
// doesn't show whether it is open. BEGIN has no other reason to fail with a general error.
func isOpen(begin error) bool {
	code, ok := dberr.SQLiteCode(begin)
	return ok && code == dberr.SQLiteGeneral
}

// leftNothing reports whether a failed statement has changed nothing, so that its transaction can continue. OR FAIL may
// leave rows changed, and OR ROLLBACK rolls the transaction back, even if a table's declaration contains them; so may
// the RAISE of a trigger.
func leftNothing(f dberr.Failure) bool {
	if f.ByGuard {
		return true
	}
	query := strings.ToLower(f.Query)
	return dberr.LeftNothing(f.Err, f.Aborts) && !strings.Contains(query, "fail") &&
		!strings.Contains(query, "rollback")
}
