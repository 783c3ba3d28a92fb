package guard

// A Writer writes one rendering of a guarded statement. Its methods take one text each: several would have to be
// allocated, as they go by an interface.
type Writer interface {
	Write(sql string)
	Int(n int64)

	// Name and Value write a token's name and its value: as a constant, or as a placeholder. TypedName and
	// TypedValue write constants of the type that a placeholder has.
	Name(token int)
	Value(token int)
	TypedName(token int)
	TypedValue(token int)

	// Tokens returns the first of the written table's tokens, and the one behind the last.
	Tokens() (lo, hi int)

	// ProvenTokens writes them with commas between them, the highest first, or [ProvenHere], as the arguments of a
	// function that joins texts.
	ProvenTokens()

	// Compare writes the comparison of a stored number with a token's value.
	Compare(c Comparison, token int, stored string)

	// Raise writes an expression that raises a marker with a detail, which is an expression, and RaiseCondition
	// a condition that does: false if the raise should yield NULL.
	Raise(k Kind, token int, detail string)
	RaiseCondition(k Kind, token int, detail string)
	Nonce() string // of the markers

	// Table is the name of the written table, and Schema its schema as a qualifier, or empty.
	Table() string
	Schema() string

	// Ledger is the ledger's table as the guard names it, and LedgerHome the schema, quoted, of the function that asks
	// it; empty for guards that ask by themselves.
	Ledger() string
	LedgerHome() string

	// CheckLedger writes the condition that asks the ledger, and Item the name of the item of WITH that has a
	// token's.
	CheckLedger()
	Item(token int)

	// AsksAlone reports whether no statement stands behind the question.
	AsksAlone() bool

	// Presented writes the tokens' claims, which are the names of a JSON object, and RowsText the text of the written
	// row that is looked up in the object.
	Presented(of Lookup)
	RowsText(of Lookup)

	// Row returns the written row's key column and its claim, which is never NULL, and KeyText the key as
	// [Texts.KeyText]. Spelling writes a token's key as a spelling, or NULL.
	Row() ClaimColumns
	KeyText() string
	Spelling(token int, s Spelling)

	// Claimed returns the columns of the claims where their table is read, ClaimedRows writes the table and
	// the condition for the rows that the tokens name, for a FROM, and CompareClaims the condition over these rows
	// that is true or raises.
	Claimed() ClaimColumns
	ClaimedRows()
	CompareClaims(row ClaimColumns)
}

// A Lookup says what a guard looks up among the claims that a context presents.
type Lookup uint8

// The lookups.
const (
	OfClaim      Lookup = iota // the row's claim, its key and generation as [Texts.ClaimText]
	OfTakenClaim               // the same for a row that is taken over: the object has the keys as well
	OfTakenKey                 // the key of such a row, with a colon behind it
)

// A Spelling is a way to write a key.
type Spelling uint8

// The spellings.
const (
	Number Spelling = iota // a number, without leading zeros and the like
	UUID                   // a UUID in lower case, with its hyphens
	ASCII                  // a text of ASCII characters alone
	Wide                   // a text with others
)

// ClaimColumns are columns of the table that has the claims as expressions: the key as text, and the claim, which
// is never NULL.
type ClaimColumns struct{ Key, Claim string }

// ClaimedTable is what that table is called in the question.
const ClaimedTable = "sqlfence_claimed"
