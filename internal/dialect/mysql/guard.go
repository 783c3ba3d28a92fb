package mysql

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Guard builds guards for MySQL and MariaDB. At every isolation level a write reads the newest committed version of
// its rows, with a lock; so a check may stand in WHERE as well as in SET. A guard works under every sql_mode and
// character set.
var Guard = &guard.Dialect{
	Capabilities: guard.Capabilities{
		SetsInOrder: fact.Yes,

		// An empty sql_mode cuts '4x' to 4, and every sql_mode rounds 4.6 to 5.
		ReadsNewRow: fact.Yes,

		ReadsWith:    fact.No,
		SkipsLocked:  fact.Yes,
		WritesInWith: fact.No,

		// Sorting evaluates the conditions of all rows. Without ORDER BY no row after the last of LIMIT is read.
		ChecksBeyondLimit: fact.Yes,

		// If a subquery of an UPDATE reads the updated table, even through a view, MariaDB executes a multi-table
		// UPDATE. To sort by anything but a column of the first table, such as RAND(), MariaDB collects the rows in a
		// temporary table, and then evaluates SET, with the guard, for the column values of the row read last, which is
		// another row.
		SortsAside: fact.Yes,

		// In WHERE the value 0000-00-00 of a DATE or DATETIME column that is NOT NULL is NULL.
		FindsDatesByNull: fact.Yes,

		LedgerInRow: fact.Yes,
		SeeksFirst:  fact.No,
		PlansMatch:  fact.No,
		OwnLedgers:  fact.No,
	},
	Texts: guard.Texts{
		// Without the cast a text would be compared as a floating-point number.
		Size: guard.Around{Before: "ABS(GREATEST(COALESCE(CAST(", After: " AS SIGNED), 0), -9223372036854775807))"},

		ClaimText:   guard.Around{Before: "CONCAT(", Between: ", ':', ", After: ")"},
		Equal:       guard.Around{Between: " = "},
		Less:        guard.Around{Between: " < "},
		LessOrEqual: guard.Around{Between: " <= "},
		Greatest:    guard.Around{Before: "GREATEST(", Between: ", ", After: ")"},
		Unless:      guard.Around{Before: "NULLIF(", Between: ", ", After: ")"},
		Assigns:     guard.Around{Between: " = "},
		// A cast to an integer would change a number beyond the highest integer to the highest integer, although the
		// server may refuse to store the number.
		Assigned: guard.Around{Before: "CAST(COALESCE((", Between: "), ", After: ") AS DECIMAL(65))"},
	},
	Protected: guard.Protected{Cascades: fact.No, Setting: protectedSetting},

	// PREPARE, EXECUTE IMMEDIATE, CALL and blocks may run dynamic SQL, and BINLOG and statements of TiDB change rows of
	// tables that they don't name. So a statement with one of these words is parsed, whatever tables it names.
	Search: guard.Search{
		Words: []string{"prepare", "immediate", "call", "binlog", "session_states", "replayer", "flashback", charset,
			"character_set_results", "names", "charset", sqltext.ComparedVariable, "schema", "database"},
		LockWords: []string{"timestamp"},
	},
	MaxInputs: 65535, MaxAdded: 65535, // the protocol counts them in two bytes

	RowNumbers:  []string{"_rowid"}, // another name for a primary key of one integer column
	KeyReturner: "last_insert_id",   // last_insert_id(x) returns x as an unsigned integer
	RowCounter:  "rownum",           // MariaDB's; without brackets it is a column

	FoundCounter: "found_rows",

	// LedgerFirst is a condition of the query.
	LedgerCheck: ledgerCheck, LedgerFirst: ledgerCheck, LedgerTail: func(guard.Writer) {},
	LockLedger: lockLedger, LockClaims: lockClaims,
	ClaimsCheck: claimsCheck, ClaimsFirst: claimsCheck, ClaimsTail: func(guard.Writer) {},
	PresentDelete: presentDelete,
	SpellsKey:     spellsKey,
}

// protectedSetting returns the variable's name if token i is a variable that statements must not change.
func protectedSetting(t *lex.Scanned, i int32) string {
	if t.Tokens[i].Kind == lex.Variable &&
		lex.EqualFold(strings.Trim(t.TokenText(i), "@`'\""), sqltext.ComparedVariable) {
		return sqltext.ComparedVariable
	}
	return ""
}

// spellsKey writes the condition of [guard.Dialect.SpellsKey]. It depends on the key's type, because under a strict
// sql_mode it is an error to compare a column with a text that can't be converted to the column's type. COERCIBILITY is
// 5 for all types but texts. ASCII texts are compared by the column's collation. Other texts, which the column's
// character set may lack, are compared by the collations that take the most texts for equal. Numbers and UUIDs are
// compared in their plain spelling. A key of another type, such as a time, counts as equal to each token's key, so that
// no stale token passes.
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

// presentDelete writes an assignment that stores the presented tokens in a session variable. The variable outlives the
// statement, so its value contains NOW, the statement's start; triggers accept it only in a statement with this start.
// The condition is LENGTH() > 0, because MySQL may leave CONCAT() IS NOT NULL out as always true.
func presentDelete(w guard.Writer) {
	w.Write("LENGTH(@" + sqltext.DeleteTokenVariable + " := CONCAT(")
	w.Write(Text.Text(w.Table() + ":"))
	w.Write(", NOW(6), ")
	w.Write(Text.Text(":"))
	w.Write(", ")
	w.PresentedTokens()
	w.Write(")) > 0")
}

// ledgerCheck locks the ledger's row, which reads its newest committed version whatever the isolation level, and holds
// off the next token until this transaction ends. The derived table reads no other table, so it is evaluated once,
// before the first row, even if no row matches.
func ledgerCheck(w guard.Writer, token int) {
	w.Write(checkOnce)
	newest(w, token)
	w.Write(checkedOnce)
}

const (
	checkOnce   = "(SELECT newest FROM (SELECT ("
	checkedOnce = " LOCK IN SHARE MODE) AS newest) AS sqlfence_newest)"
)

// newest writes a query that compares a token with the ledger. Without a unique index a name may have several rows: the
// highest counts.
func newest(w guard.Writer, token int) {
	const newest = "COALESCE(MAX(CAST(" + sqltext.LedgerTable + ".token AS SIGNED)), 0)"
	w.Write("SELECT CASE WHEN ")
	w.Compare(guard.Equal, token, newest)
	w.Write(" THEN TRUE WHEN COUNT(*) = 0 THEN ")
	w.ThrowCondition(guard.UnknownName, token, "COUNT(*)")
	w.Write(" ELSE ")
	w.ThrowCondition(guard.NotNewest, token, newest)
	w.Write(" END FROM ")
	w.Write(w.Ledger())
	w.Write(" WHERE " + sqltext.LedgerTable + ".name = ")
	w.Name(token)
}

// claimsCheck locks the rows and is evaluated once, as ledgerCheck.
func claimsCheck(w guard.Writer) {
	w.Write(checkOnce)
	claims(w)
	w.Write(checkedOnce)
}

// claims writes a query that compares the tokens with the rows that have the claims.
func claims(w guard.Writer) {
	w.Write("SELECT ")
	w.CompareClaims(w.Claimed())
	w.Write(" FROM ")
	w.ClaimedRows()
}

// rowLock has a LIMIT, because TiDB executes nothing of a query without one under sql_select_limit = 0.
const rowLock = " LIMIT 1 FOR UPDATE"

func lockLedger(w guard.Writer, token int) {
	newest(w, token)
	w.Write(rowLock)
}

func lockClaims(w guard.Writer) {
	claims(w)
	w.Write(rowLock)
}
