package guard

import "github.com/sqlfence/sqlfence/internal/sql/lex"

// A Verdict says what to do with a statement.
type Verdict string

// The verdicts.
const (
	Pass   Verdict = "pass"   // it writes to no registered table; it is sent as it is
	Guard  Verdict = "guard"  // it writes to one; it is sent with its guard
	Refuse Verdict = "refuse" // it writes or may write to one in a way that can't be guarded
)

// A Refusal says why a statement can't be guarded. It is an error.
type Refusal struct {
	Table  int    // index among the registered tables, or -1
	Name   string // of the table where Table alone doesn't say it: of sqlfence's own, or covered by the pattern Table
	Reason string // what is wrong and what to write instead
	Offset int    // in bytes from the statement's start, or -1

	// Ambiguous: it is read in several ways by settings of the session. Where these are known, the plan for them,
	// by [Reading], is another one.
	Ambiguous bool
}

// Error returns the reason.
func (r *Refusal) Error() string { return "rewrite: " + r.Reason }

// A Variant says what a statement is planned for besides. Variants can be combined by |; the zero
// Variant is none.
type Variant uint8

// The variants. The first two differ for tables with the rule alone.
const (
	// Versioned: it is to be applied only to rows at one version, of tables with a serial column. An
	// INSERT isn't concerned.
	Versioned Variant = 1 << iota

	// TakesOver: an UPDATE of a table with claims takes its rows over, also if it doesn't assign
	// the column: then the guard adds 1 to it. So does an upsert where it updates. A DELETE is refused.
	TakesOver

	// The bits from here on are how the session's settings have the text read: see [Reading].
	reading

	// Variants is how many combinations there are.
	Variants = reading << lex.EscapesBits
)

// Reading returns the variant for a session that is known to have backslashes escape there.
func Reading(e lex.Escapes) Variant { return Variant(e) * reading }

// Escapes returns how the text is read.
func (v Variant) Escapes() lex.Escapes { return lex.Escapes(v / reading) }

// A Target is one write to a registered table.
type Target struct {
	Table int // index among those that the statement writes to

	// Schema and Name are those of the table, normalised, as the statement has them; Schema is empty without one.
	Schema, Name string

	// Keys has the source of the value of the table's key column: one for each row of an INSERT,
	// and one for each SELECT, as all of its rows have the same key. Nil for other writes and for
	// tables without a key.
	Keys []KeyValue

	// AssignsKey reports whether an UPDATE or upsert assigns the key column. Its rows
	// stay in their token's scope only if the table has a single token and the assigned
	// key is that token's, which the caller has to check; the guard checks the old key.
	// NewKeys has the source of each assigned value that isn't a row's of Keys.
	AssignsKey bool
	NewKeys    []KeyValue

	// OneKey reports whether the rows' keys don't show, so that Keys is nil, and each row's is
	// compared with the token once it is stored. The caller has to refuse several tokens.
	OneKey bool

	// Free reports whether the write needs no token: it can only add rows, to a table with
	// new rows without tokens, or it adds rows or takes them over, of a table with claims.
	Free bool

	// Changes reports whether the write changes existing rows: UPDATE, DELETE, or a
	// MERGE with such an arm. It is false for an upsert, which may insert.
	Changes bool
}

// A KeyValue is the source of a row's key in a statement: the argument called Name or, if no
// argument has a name, the one numbered Ordinal; or else a constant. It is Unknown if the statement
// doesn't show the key, for a new row that needs no token.
type KeyValue struct {
	Unknown bool
	Name    string // of a named argument, without its prefix; "" for none
	Ordinal int    // 1-based; 0 for none
	Text    string // of a constant, where Name is "" and Ordinal is 0
}

// NoToken stands for the token of a new row that none covers.
const NoToken = -1

// A Lock names the columns of the lock that a person takes on a row to edit it.
type Lock struct {
	By     string // the holder's ID, an integer or a text; NULL, 0 and '' mean no holder
	Since  string // the time at which the lock was taken
	Expiry string // the time at which it expires; NULL means that it has expired
}

// Claims are those of a table's rows, which the tokens of another table's writes are compared with, as
// those of a ledger are with the newest ones issued: the key is the name of each, and the claim its
// newest value. The names are normalised.
type Claims struct {
	Schema string // empty for where the session finds the table; on SQLite for the written table's file
	Name   string
	Key    string
	Claim  string
}
