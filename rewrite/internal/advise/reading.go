package advise

// These codes are reasons why a part of a statement can't be read. ExpectedAlias, TooDeep, and the codes from
// OtherLanguage on refuse any statement; the other codes refuse a statement if the part names a registered table.
const (
	Readable               Code = ""
	TooDeep                Code = "it is nested too deeply to be read"
	ExpectedAlias          Code = "expected an alias here"
	ExpectedAssignment     Code = "expected an assignment here"
	ExpectedCondition      Code = "expected a condition here"
	ExpectedColumn         Code = "expected a column's name here"
	ExpectedValues         Code = "expected VALUES here"
	ExpectedRow            Code = "expected a row of values here"
	ExpectedConflictAction Code = "expected DO NOTHING or DO UPDATE SET here"
	ExpectedWhen           Code = "expected WHEN here"
	ExpectedMatched        Code = "expected MATCHED here"
	ExpectedThen           Code = "expected THEN here"
	ExpectedArmAction      Code = "expected UPDATE SET, DELETE, INSERT or DO NOTHING here"
	NeverReached           Code = "this WHEN is never reached, as one of its kind before it has no " +
		"condition; leave it out"
	DefaultsAfterColumns Code = "DEFAULT VALUES after a list of columns can't be read"
	NotRows              Code = "rows from this can't be guarded; write INSERT ... VALUES or INSERT ... SELECT"
	BadWith              Code = "this WITH can't be read"
	UnclearTable         Code = "which table this column is of can't be seen; write it as table.column"
	DeletesHistory       Code = "no guard can check the old versions that DELETE HISTORY deletes; run it under Bypass"
	WritesPortion        Code = "FOR PORTION OF also inserts rows, which no guard can check; select the rows by " +
		"their keys and periods, write them by UPDATE and INSERT, or run it under Bypass"
	Unexpected    Code = "this part of the statement can't be read"
	OtherLanguage Code = "code of another language than PL/pgSQL, or in more than one string, can't be read"
	EscapedCode   Code = "code in a string with escapes can't be read; write it between $$ and $$"

	// RunsOtherLanguage is OtherLanguage of a statement that runs the code.
	RunsOtherLanguage = OtherLanguage + "; send its statements one by one, or run it under Bypass"
)
