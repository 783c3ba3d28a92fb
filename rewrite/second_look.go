package rewrite

import "github.com/sqlfence/sqlfence/internal/sql/confirm"

// unconfirmed is why a statement is refused that can't be confirmed.
const unconfirmed = "it can't be confirmed that the guard would be in the right clause; simplify the statement, " +
	"and put names that are keywords in quotes"

// pieceKinds says as what each edit is confirmed. opText isn't looked at, nor is opRepeat:
// it says what the statement said.
var pieceKinds = [...]confirm.Kind{
	opAbort:           confirm.OrAbort,
	opFirst:           confirm.LeadingAssignment,
	opAssign:          confirm.Assignment,
	opCheck:           confirm.Condition,
	opCheckDeleted:    confirm.Condition,
	opAnd:             confirm.AndCondition,
	opWith:            confirm.WithItems,
	opColumn:          confirm.Column,
	opValue:           confirm.RowValue,
	opValueAsking:     confirm.RowValue,
	opRowAssign:       confirm.Assignment,
	opRowAssignAsking: confirm.Assignment,
	opBeforeRow:       confirm.BeforeRowValue,
	opBehindRow:       confirm.BehindRowValue,
	opBeforeAssigned:  confirm.BeforeValue,
	opBehindAssigned:  confirm.BehindValue,
	opStored:          confirm.Returning,
	opGone:            confirm.Returning,
	opTail:            confirm.Tail,
}
