package sqlite

import (
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Guard builds guards for SQLite, where a column of any type holds values of all types.
var Guard = &guard.Dialect{
	Capabilities: guard.Capabilities{
		SetsInOrder:       fact.No,
		ReadsNewRow:       fact.No,
		ReadsWith:         fact.Yes,
		SkipsLocked:       fact.No,
		WritesInWith:      fact.No,
		ChecksBeyondLimit: fact.No,
		SortsAside:        fact.No,
		FindsDatesByNull:  fact.No,
		LedgerInRow:       fact.No,
		SeeksFirst:        fact.Yes,
		PlansMatch:        fact.Yes,
		OwnLedgers:        fact.Yes,
	},
	Texts: guard.Texts{
		// Without the cast a text column would be compared as text.
		Size:        guard.Around{Before: "abs(max(COALESCE(CAST(", After: " AS INTEGER), 0), -9223372036854775807))"},
		ClaimText:   guard.Around{Between: " || ':' || "},
		Equal:       guard.Around{Between: " = "},
		Less:        guard.Around{Between: " < "},
		LessOrEqual: guard.Around{Between: " <= "},
		Greatest:    guard.Around{Before: "max(", Between: ", ", After: ")"},
		Unless:      guard.Around{Before: "NULLIF(", Between: ", ", After: ")"},
		Assigns:     guard.Around{Between: " = "},
		NotInteger:  guard.Around{Before: "typeof(", After: ") NOT IN ('integer', 'null')"},
		// A cast to INTEGER alone would read '9e18' as 9.
		Assigned: guard.Around{Before: "CAST(CAST(COALESCE((", Between: "), ", After: ") AS NUMERIC) AS INTEGER)"},
	},
	Protected: guard.Protected{Cascades: fact.No}, // there are neither functions nor schemas that a statement drops

	// SQLite has no privileges, and a DELETE can't present a token to a trigger.
	Unsealable: "each program with the file can drop its triggers; leave Sealed out, and open the file " +
		"through sqlfence alone",

	// MaxInputs is the default of SQLITE_MAX_VARIABLE_NUMBER. MaxAdded is low because SQLite searches the list of
	// parameter numbers from its beginning for a number that isn't the highest so far.
	MaxInputs: 32766, MaxAdded: 64,

	// A client that writes to these tables can drop a trigger: PRAGMA writable_schema makes the schema's tables
	// writable. The rows of sqlite_dbpage are the pages of the file; modernc.org/sqlite has this virtual table.
	//
	// Source: https://sqlite.org/schematab.html, https://sqlite.org/dbpage.html.
	DefiningTables: []string{"sqlite_schema", "sqlite_master", "sqlite_temp_schema", "sqlite_temp_master",
		"sqlite_dbpage"},

	// RowNumbers are aliases of an INTEGER PRIMARY KEY.
	RowNumbers: []string{"rowid", "oid", "_rowid_"},

	LedgerCheck: ledgerCheck, LedgerFirst: ledgerCheck, LedgerTail: ledgerTail,
	ClaimsCheck: claimsCheck, ClaimsFirst: claimsCheck, ClaimsTail: ledgerTail,
	PresentDelete: func(guard.Writer) {},

	// A short list of claims is quicker than JSON. Lists of other lengths are other statements, which SQLite compiles.
	ClaimsAtOnce: 17, AmongClaims: amongClaims, SpellsKey: spellsKey,
}

// amongClaims writes a condition: the row's claim is a key of the JSON object of the presented claims. SQLite executes
// the subquery once, and makes an index of its rows.
func amongClaims(w guard.Writer, of guard.Lookup) {
	w.RowsText(of)
	w.Write(" IN (SELECT json_each.key FROM json_each(")
	w.Presented(of)
	w.Write("))")
}

// spellsKey writes the condition of [guard.Dialect.SpellsKey]. It compares the column itself with the tokens' keys, by
// the column's affinity and collation; in SQLite no comparison is an error.
func spellsKey(w guard.Writer) {
	row := w.Row()
	w.Write("EXISTS (SELECT 1 FROM json_each(")
	w.Presented(guard.OfTakenKey)
	w.Write(") AS sqlfence_taken WHERE substr(sqlfence_taken.key, -1) = ':' AND " + row.Key +
		" = substr(sqlfence_taken.key, 1, length(sqlfence_taken.key) - 1) " +
		"AND sqlfence_taken.value <> " + row.Claim + ")")
}

// ledgerCheck writes a subquery without a lock: a database file has one writer, so the ledger's token stays the newest
// until the transaction ends. Without a unique index a name may have several rows: the highest counts. The ledger is in
// the written table's schema.
func ledgerCheck(w guard.Writer, token int) {
	const newest = "max(COALESCE(CAST(" + sqltext.LedgerTable + ".token AS INTEGER), 0))"
	w.Write("(SELECT CASE WHEN ")
	w.Compare(guard.Equal, token, newest)
	w.Write(" THEN 1 WHEN count(*) = 0 THEN ")
	w.ThrowCondition(guard.UnknownName, token, "count(*)")
	w.Write(" ELSE ")
	w.ThrowCondition(guard.NotNewest, token, newest)
	w.Write(" END FROM ")
	w.Write(w.Schema())
	w.Write(sqltext.LedgerTable + " WHERE " + sqltext.LedgerTable + ".name = ")
	w.Name(token)
	w.Write(")")
}

// ledgerTail writes a LIMIT with the check, because SQLite evaluates LIMIT first. A negative LIMIT doesn't limit the
// rows.
func ledgerTail(w guard.Writer) {
	w.Write(" LIMIT CASE WHEN ")
	w.CheckLedger()
	w.Write(" THEN -1 END")
}

func claimsCheck(w guard.Writer) {
	w.Write("(SELECT ")
	w.CompareClaims(w.Claimed())
	w.Write(" FROM ")
	w.ClaimedRows()
	w.Write(")")
}
