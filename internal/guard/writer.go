package guard

// A Writer writes the SQL of one guarded statement. Write takes only one string, because a list of strings would be
// allocated for each call through an interface.
type Writer interface {
	Write(sql string)
	Int(n int64)

	// Name and Value write a token's name and its value: as a constant, or as a placeholder. TypedName and TypedValue
	// write a constant with a cast to the type that a placeholder would have.
	Name(token int)
	Value(token int)
	TypedName(token int)
	TypedValue(token int)

	// Tokens returns the index range of the written table's tokens: lo is included, hi isn't.
	Tokens() (lo, hi int)

	// PresentedTokens writes the table's tokens, the highest first, or [ComparedHere], as the arguments of a function
	// that joins texts.
	PresentedTokens()

	// Compare writes the comparison of a stored number with a token's value.
	Compare(c Comparison, token int, stored string)

	// Throw writes an expression that throws an error with a marker and the value of the expression detail ([Marker]).
	// ThrowCondition writes a condition that does the same, and is false if Throw's expression should yield NULL.
	Throw(k Kind, token int, detail string)
	ThrowCondition(k Kind, token int, detail string)
	Nonce() string // the nonce of the markers

	// Table returns the name of the written table, and Schema its schema as a qualifier, or empty.
	Table() string
	Schema() string

	// Ledger returns the ledger's table as the guard names it. FunctionSchema returns the schema of the function that
	// checks the ledger, as a qualifier, or empty.
	Ledger() string
	FunctionSchema() string

	// CheckLedger writes the condition that checks the ledger. Item writes the name of the WITH item that has a token's
	// newest value.
	CheckLedger()
	Item(token int)

	// QueryOnly reports whether the text is only the query of a guard, without a statement.
	QueryOnly() bool

	// Presented writes a JSON object with a name for each token's claim, in the form of the Lookup. RowsText writes the
	// written row's claim in this form. The claim is current if the object has this name.
	Presented(of Lookup)
	RowsText(of Lookup)

	// Row returns the written row's key column and its claim, which is never NULL, and KeyText the key as
	// [sqltext.Capabilities].KeyText. Spelling writes a token's key in a spelling, or NULL if it has no such spelling.
	Row() ClaimColumns
	KeyText() string
	Spelling(token int, s Spelling)

	// Claimed returns the columns of the claims in their table. ClaimedRows writes, for a FROM, the table and the
	// condition for the rows that the tokens name. CompareClaims writes the condition over these rows that is true or
	// throws an error.
	Claimed() ClaimColumns
	ClaimedRows()
	CompareClaims(row ClaimColumns)
}

// A Lookup is the kind of text that a guard looks up among a context's claims.
type Lookup uint8

// The lookups.
const (
	OfClaim      Lookup = iota // the row's key and claim as [Texts.ClaimText]
	OfTakenClaim               // the same for a row that is being claimed; the JSON object has its key as well
	OfTakenKey                 // the key of a row that is claimed, followed by a colon
)

// A Spelling is a way to write a key.
type Spelling uint8

// The spellings.
const (
	Number Spelling = iota // a number, without leading zeros and the like
	UUID                   // a UUID in lower case, with its hyphens
	ASCII                  // a text of ASCII characters alone
	Wide                   // a text with other characters
)

// ClaimColumns are expressions for columns of the table that has the claims: the key as text, and the claim, which is
// never NULL.
type ClaimColumns struct{ Key, Claim string }

// ClaimedTable is the alias of the table with the claims in the guard's query.
const ClaimedTable = "sqlfence_claimed"
