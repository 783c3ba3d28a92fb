package guard

import "github.com/sqlfence/sqlfence/internal/sql/lex"

// A Verdict is the decision about a statement.
type Verdict string

// The verdicts.
const (
	Pass   Verdict = "pass"   // the statement writes to no registered table, and is sent unchanged
	Guard  Verdict = "guard"  // the statement writes to a registered table, and is sent with a guard
	Refuse Verdict = "refuse" // the statement may write to a registered table in a way that can't be guarded
)

// A Refusal is the error of a statement that can't be guarded.
type Refusal struct {
	Table  int    // index among the registered tables, or -1
	Name   string // name of one of sqlfence's tables, or of a table that matches the pattern Table
	Reason string // what is wrong and what to write instead
	Offset int    // in bytes from the statement's start, or -1

	// Ambiguous: the statement's meaning depends on the session's settings. Known settings, by [Reading], give another
	// plan.
	Ambiguous bool
}

// Error returns the reason.
func (r *Refusal) Error() string { return "rewrite: " + r.Reason }

// A PlanKind modifies a statement's plan. Plan kinds can be combined by |; the zero PlanKind is none.
type PlanKind uint8

// The plan kinds. The first two only matter for tables with the rule Serial or Claim.
const (
	// Versioned: the statement applies only to rows at one version, in tables with a serial column. An INSERT isn't
	// affected.
	Versioned PlanKind = 1 << iota

	// TakesOver: an UPDATE of a table with claims claims its rows, and so does an upsert for rows that it updates. The
	// guard adds 1 to the claim unless the statement assigns the column. A DELETE is refused.
	TakesOver

	// The higher bits hold how the session's settings have string literals read: see [Reading].
	reading

	// PlanKinds is the number of combinations.
	PlanKinds = reading << lex.EscapesBits
)

// Reading returns the plan kind for a session with a known reading of string literals.
func Reading(e lex.Escapes) PlanKind { return PlanKind(e) * reading }

// Escapes returns the reading of string literals in a PlanKind.
func (v PlanKind) Escapes() lex.Escapes { return lex.Escapes(v / reading) }

// A Target is one write to a registered table.
type Target struct {
	Table int // index among the tables that the statement writes to

	// Schema and Name are the table's, normalised, as in the statement. Schema is empty if the statement has none.
	Schema, Name string

	// Keys has the source of the key column's value for each row of an INSERT. An INSERT ... SELECT has one source: all
	// of its rows have the same key. Keys is nil for other writes and for tables without a key.
	Keys []KeyValue

	// AssignsKey reports whether an UPDATE or upsert assigns the key column. The guard only checks the old key. The
	// caller must check that the table has a single token and that the assigned key is the token's, so that the rows
	// stay in the token's scope. NewKeys has the source of each assigned key that isn't in Keys.
	AssignsKey bool
	NewKeys    []KeyValue

	// OneKey reports whether the statement doesn't show the rows' keys. Keys is nil then, and each row's key is
	// compared with the token after the row is stored. The caller must refuse several tokens.
	OneKey bool

	// Free reports whether the write needs no token: it can only add rows to a table with UnfencedInserts, or it adds
	// or claims rows of a table with Claim.
	Free bool

	// Changes reports whether the write changes existing rows: UPDATE, DELETE, or a MERGE with such an arm. It is false
	// for an upsert, because an upsert may insert.
	Changes bool
}

// A KeyValue is the source of a row's key in a statement: the argument called Name or, if no argument has a name, the
// one numbered Ordinal; or else a constant. It is Unknown if the statement doesn't show the key, but the row is new and
// needs no token.
type KeyValue struct {
	Unknown bool
	Name    string // name of the argument, without its prefix; empty if the key is no named argument
	Ordinal int    // number of the argument, from 1; 0 if the key is no numbered argument
	Text    string // the constant, if Name is empty and Ordinal is 0
}

// NoToken stands for the token of a new row that no token covers.
const NoToken = -1

// A Lock names the columns of the lock that a person takes on a row to edit it.
type Lock struct {
	By     string // the holder's ID, an integer or a text; NULL, 0 and '' mean no holder
	Since  string // the time at which the lock was taken
	Expiry string // the time at which it expires; NULL means that it has expired
}

// Claims names a table with the rule Claim, for the rule ClaimOf of another table: writes to the other table present
// claims of the first table's rows. The column Key has a row's key, and the column Claim its newest claim. The names
// are normalised.
type Claims struct {
	Schema string // empty for the search path; on SQLite for the written table's file
	Name   string
	Key    string
	Claim  string
}
