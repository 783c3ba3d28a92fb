package postgres

import (
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/fact"
)

// Answers are how PostgreSQL answers.
var Answers = &dberr.Answers{
	Remote:       fact.Yes,
	CommitsAfter: fact.No,
	Unlocks:      fact.Yes,
	BytesAreText: fact.No, // they may become \x3432, by column and driver
	CountsRows:   fact.Yes,
	CountsArgs:   fact.Yes,
	TimeType:     "timestamptz",

	Answered:    answered,
	KeepsTx:     dberr.Never[error],
	EndsTx:      dberr.Nowhere,
	LeftNothing: leftNothing,
	ChoosesKey:  dberr.Never[string],
}

func answered(err error) bool {
	code := dberr.SQLState(err)
	return code != "" && code != dberr.ProtocolViolation && !dberr.IsSessionEnd(err)
}

// leftNothing: without a savepoint a failed statement has left nothing if the server says so;
// an error without a code may be the driver's, about an answer that it can't read.
func leftNothing(f dberr.Failure) bool {
	return f.Saved || !f.InTx && dberr.SQLState(f.Err) != ""
}
