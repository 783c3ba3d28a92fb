package mysql

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Guard is what the guard says in MySQL and MariaDB. They read the rows that a statement writes in their newest
// committed version, with a lock, at every isolation level; so a check may stand in WHERE as
// well as in SET. What it says doesn't depend on sql_mode, nor on the session's character set.
var Guard = &guard.Dialect{
	Facts: guard.Facts{
		SetsInOrder: fact.Yes,

		// An empty sql_mode cuts '4x' to 4, and every one rounds 4.6 to 5.
		ReadsNewRow: fact.Yes,

		ReadsWith:    fact.No,
		SkipsLocked:  fact.Yes,
		WritesInWith: fact.No,

		// The rows are sorted first, and their conditions evaluated for that. Without ORDER
		// BY no row is read behind the last one.
		ChecksBeyondLimit: fact.Yes,

		// If a subquery of an UPDATE reads the same table, be it through a view, MariaDB
		// executes it as one of joined tables. Sorted by anything but a column of the first one, such as
		// RAND(), it collects the rows in a temporary table. It evaluates SET after that, with the columns'
		// values of the last row that it read.
		SortsAside: fact.Yes,

		// In WHERE a DATE or DATETIME that is NOT NULL is NULL where it is 0000-00-00.
		FindsDatesByNull: fact.Yes,

		LedgerInRow: fact.Yes,
		SeeksFirst:  fact.No,
		PlansMatch:  fact.No,
		OwnLedgers:  fact.No,
	},
	Texts: guard.Texts{
		// A text would be compared as a floating number.
		Size: guard.Around{Before: "ABS(GREATEST(COALESCE(CAST(", Behind: " AS SIGNED), 0), -9223372036854775807))"},
		// Most collations take "books" for "BOOKS", and all but a few for "books ".
		KeyText:     guard.Around{Before: "CAST(CONVERT(", Behind: " USING utf8mb4) AS BINARY)"},
		ClaimText:   guard.Around{Before: "CONCAT(", Between: ", ':', ", Behind: ")"},
		Equal:       guard.Around{Between: " = "},
		Less:        guard.Around{Between: " < "},
		LessOrEqual: guard.Around{Between: " <= "},
		Greatest:    guard.Around{Before: "GREATEST(", Between: ", ", Behind: ")"},
		Unless:      guard.Around{Before: "NULLIF(", Between: ", ", Behind: ")"},
		Assigns:     guard.Around{Between: " = "},
		// As an integer a higher number would be cut to the highest one, also where storing it is an error.
		Assigned: guard.Around{Before: "CAST(COALESCE((", Between: "), ", Behind: ") AS DECIMAL(65))"},
	},
	Ground: guard.Ground{Cascades: fact.No, Setting: keptSetting},

	// PREPARE, EXECUTE IMMEDIATE and CALL run a text that may be put together in the
	// database, and a block may do so. BINLOG changes rows of tables that it doesn't name, and so do
	// statements of TiDB's.
	Search: guard.Search{
		Words: []string{"prepare", "immediate", "call", "binlog", "session_states", "replayer", "flashback", charset,
			"character_set_results", "names", "charset", sqltext.SeenVariable, "schema", "database"},
		LockWords: []string{"timestamp"},
	},
	MaxInputs: 65535, MaxAdded: 65535, // they are counted in two bytes

	RowNumbers:  []string{"_rowid"}, // another name for a primary key of one integer column
	KeyReturner: "last_insert_id",   // it makes an unsigned integer of what it returns
	RowCounter:  "rownum",           // MariaDB's; without brackets it is a column

	FoundCounter: "found_rows",

	// LedgerFirst stands in the query.
	LedgerCheck: ledgerCheck, LedgerFirst: ledgerCheck, LedgerTail: func(guard.Writer) {},
	ClaimsCheck: claimsCheck, ClaimsFirst: claimsCheck, ClaimsTail: func(guard.Writer) {},
	ProveDelete: proveDelete,
	SpellsKey:   spellsKey,
}

// keptSetting returns the name of a variable at token i, if it is one that is to be kept.
func keptSetting(t *lex.Scanned, i int32) string {
	name := strings.Trim(t.TokenText(i), "@`'\"")
	if t.Tokens[i].Kind == lex.Variable && lex.EqualFold(name, sqltext.SeenVariable) {
		return sqltext.SeenVariable
	}
	return ""
}

// spellsKey goes by the type of the key, as in a strict sql_mode it is an error to compare a column with what can't be
// read. COERCIBILITY is 5 for all but texts. These are compared by the column's collation, but for what a column of
// another character set may not have; that is compared by the collations that take the most texts for equal.
// Numbers and UUIDs have a plain spelling, and a key of another type, such as a time, may be any.
func spellsKey(w guard.Writer) {
	row := w.Row()
	collated := " = CONVERT(" + row.Key + " USING utf8mb4) COLLATE utf8mb4_"
	lo, hi := w.Tokens()
	taken := func(names func(token int)) {
		for i := lo; i < hi; i++ {
			if i > lo {
				w.Write(" OR ")
			}
			names(i)
			w.Write(row.Claim + " <> ")
			w.Value(i)
		}
	}
	as := func(s guard.Spelling, before, behind string) func(token int) {
		return func(token int) {
			w.Write(before)
			w.Spelling(token, s)
			w.Write(behind + " AND ")
		}
	}
	w.Write("CASE WHEN COERCIBILITY(" + row.Key + ") < 5 THEN ")
	taken(func(token int) {
		w.Write("(CONCAT(" + row.Key + ") = ")
		w.Spelling(token, guard.ASCII)
		w.Write(" OR CHARSET(" + row.Key + ") <> 'binary' AND (")
		w.Spelling(token, guard.Wide)
		w.Write(collated + "bin OR RIGHT(COLLATION(" + row.Key + "), 4) <> '_bin' AND (")
		w.Spelling(token, guard.Wide)
		w.Write(collated + "general_ci OR ")
		w.Spelling(token, guard.Wide)
		w.Write(collated + "unicode_ci))) AND ")
	})
	text := "CONCAT(" + row.Key + ")"
	w.Write(" WHEN " + text + " REGEXP '^-?[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?$' THEN ")
	taken(as(guard.Number, row.Key+" = ", ""))
	w.Write(" WHEN " + text + " REGEXP '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN ")
	taken(as(guard.UUID, text+" = ", ""))
	w.Write(" ELSE " + row.Key + " IS NOT NULL AND (")
	taken(func(int) {})
	w.Write(") END")
}

// proveDelete: a variable is the session's. NOW is when the statement began, also to its
// triggers. Of IS NOT NULL MySQL evaluates nothing that can't be NULL, which CONCAT can only be in a strict
// sql_mode.
func proveDelete(w guard.Writer) {
	w.Write("LENGTH(@" + sqltext.DeleteProofVariable + " := CONCAT(")
	w.Write(Text.Text(w.Table() + ":"))
	w.Write(", NOW(6), ")
	w.Write(Text.Text(":"))
	w.Write(", ")
	w.ProvenTokens()
	w.Write(")) > 0")
}

// ledgerCheck locks the ledger's row, which reads its newest committed version whatever the
// isolation level, and holds off the next token until this transaction ends. Without a unique index
// a name may have several rows: the highest counts. As a table without one of its own it is asked
// once, and before the first row: also where no row is met.
func ledgerCheck(w guard.Writer, token int) {
	const newest = "COALESCE(MAX(CAST(" + sqltext.LedgerTable + ".token AS SIGNED)), 0)"
	w.Write("(SELECT newest FROM (SELECT (SELECT CASE WHEN ")
	w.Compare(guard.Equal, token, newest)
	w.Write(" THEN TRUE WHEN COUNT(*) = 0 THEN ")
	w.RaiseCondition(guard.UnknownName, token, "COUNT(*)")
	w.Write(" ELSE ")
	w.RaiseCondition(guard.NotNewest, token, newest)
	w.Write(" END FROM ")
	w.Write(w.Ledger())
	w.Write(" WHERE " + sqltext.LedgerTable + ".name = ")
	w.Name(token)
	w.Write(" LOCK IN SHARE MODE) AS newest) AS sqlfence_newest)")
}

// claimsCheck locks the rows and is asked once, as ledgerCheck.
func claimsCheck(w guard.Writer) {
	w.Write("(SELECT newest FROM (SELECT (SELECT ")
	w.CompareClaims(w.Claimed())
	w.Write(" FROM ")
	w.ClaimedRows()
	w.Write(" LOCK IN SHARE MODE) AS newest) AS sqlfence_newest)")
}
