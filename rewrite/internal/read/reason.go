package read

// A Reason is why a part of a statement can't be read.
type Reason uint8

// The reasons. ExpectedAlias and TooDeep stand for any table; the others say that a
// write to the target can't be understood.
const (
	Readable Reason = iota
	TooDeep
	ExpectedAlias
	ExpectedAssignment
	ExpectedCondition
	ExpectedColumn
	ExpectedValues
	ExpectedRow
	ExpectedConflictAction
	ExpectedWhen
	ExpectedMatched
	ExpectedThen
	ExpectedArmAction
	NeverReached
	DefaultsAfterColumns
	NotRows
	BadWith
	Unexpected
	UnclearTable
	DeletesHistory
	WritesPortion

	// These are of a DO.
	OtherLanguage
	EscapedCode
)

// String returns the reason as a sentence without its full stop.
func (r Reason) String() string { return reasons[r] }

var reasons = [...]string{
	Readable:               "it can be read",
	TooDeep:                "it is nested too deeply to be read",
	ExpectedAlias:          "expected an alias here",
	ExpectedAssignment:     "expected an assignment here",
	ExpectedCondition:      "expected a condition here",
	ExpectedColumn:         "expected a column's name here",
	ExpectedValues:         "expected VALUES here",
	ExpectedRow:            "expected a row of values here",
	ExpectedConflictAction: "expected DO NOTHING or DO UPDATE SET here",
	ExpectedWhen:           "expected WHEN here",
	ExpectedMatched:        "expected MATCHED here",
	ExpectedThen:           "expected THEN here",
	ExpectedArmAction:      "expected UPDATE SET, DELETE, INSERT or DO NOTHING here",
	NeverReached:           "this WHEN is never reached, as one of its kind before it has no condition; leave it out",
	DefaultsAfterColumns:   "DEFAULT VALUES after a list of columns can't be read",
	NotRows:                "rows from this can't be guarded; write INSERT ... VALUES or INSERT ... SELECT",
	BadWith:                "this WITH can't be read",
	UnclearTable:           "which table this column is of can't be seen; write it as table.column",
	DeletesHistory:         "no guard can check the old versions that DELETE HISTORY deletes; run it under Bypass",
	WritesPortion: "FOR PORTION OF also inserts rows, which no guard can check; select the rows by their keys and " +
		"periods, write them by UPDATE and INSERT, or run it under Bypass",
	Unexpected:    "this part of the statement can't be read",
	OtherLanguage: "code of another language than PL/pgSQL, or in more than one string, can't be read",
	EscapedCode:   "code in a string with escapes can't be read; write it between $$ and $$",
}
