package postgres

import (
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/fact"
)

// Errors classifies the errors of PostgreSQL.
var Errors = &dberr.Classifier{
	Remote:        fact.Yes,
	CommitsAfter:  fact.No,
	HidesRollback: fact.No,
	Unlocks:       fact.Yes,
	BytesAreText:  fact.No, // bytes may become \x3432, depending on column and driver
	CountsRows:    fact.Yes,
	CountsArgs:    fact.Yes,
	TimeType:      "timestamptz",

	IsResponse:  isResponse,
	KeepsTx:     dberr.Never[error],
	EndsTx:      dberr.Nowhere,
	IsOpen:      dberr.Never[error],
	LeftNothing: leftNothing,
	ChoosesKey:  dberr.Never[string],
}

func isResponse(err error) bool {
	code := dberr.SQLState(err)
	return code != "" && code != dberr.ProtocolViolation && !dberr.IsSessionEnd(err)
}

// leftNothing reports whether a failed statement has changed nothing, so that its transaction can continue: if there
// was a savepoint, or outside of a transaction if the error has a code of the server. An error without a code may be
// the driver's, about an unreadable response.
func leftNothing(f dberr.Failure) bool {
	return f.Saved || !f.InTx && dberr.SQLState(f.Err) != ""
}
