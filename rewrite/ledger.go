package rewrite

import "github.com/sqlfence/sqlfence/internal/sqltext"

// A ledger compares the tokens with the newest ones issued, in a table of their own.
type ledger struct{}

const ledgerTable = sqltext.LedgerTable

func (ledger) columns(*Table) []string { return nil }

func (ledger) adds(*Table) (column, value string) { return "", "" }

func (ledger) assigns(*writer) {}

func (ledger) inWhere(*Table, rowWrite) bool { return false }

func (ledger) refuses(w *writer) bool { return w.rules.Ledger && w.compared() }

func (ledger) check(w *writer) {
	for i := w.lo; i < w.hi; i++ {
		if i > w.lo {
			w.write(" AND ")
		}
		w.dialect.ledgerCheck(w, i)
	}
}

// ledgerStatements writes the comparison for all of the tables where it stands in
// WITH: with "WITH" before the statement, or with "" at the head of its own WITH.
//
// The UPDATE changes nothing, as its condition is always true or raises; should it
// be false all the same, the division raises. As a data-modifying WITH it always
// runs, and after the main statement has taken its row locks. The check's FOR SHARE
// reads the newest token whatever the snapshot, and holds off the next one until this
// transaction ends.
func (w *writer) ledgerStatements(with string) {
	separator := with
	for table := range w.plan.Tables {
		w.chooseTable(table)
		for i := w.lo; i < w.hi && precedence[ruleLedger].refuses(w); i++ {
			w.write(separator, " sqlfence_")
			w.b.Int(int64(i))
			w.write(" AS (UPDATE " + ledgerTable + " SET token = token / 0 WHERE name = ")
			w.field(i, fieldName)
			w.write(" AND NOT ")
			w.dialect.ledgerCheck(w, i)
			w.write(")")
			separator = ","
		}
	}
	switch {
	case separator == with: // none of the tables has a token
	case with == "":
		w.write(",")
	default:
		w.write(" ")
	}
}

// raiseAfterLedger raises with a table's marker, after the ledger was asked. Where
// that stands in WHERE, it was.
func (w *writer) raiseAfterLedger(kind string, detail ...string) {
	asks := !w.dialect.ledgerInWhere() && precedence[ruleLedger].refuses(w)
	if asks {
		w.write("CASE WHEN ")
		precedence[ruleLedger].check(w)
		w.write(" THEN ")
	}
	w.raise(kind, w.table, detail...)
	if asks {
		w.write(" END")
	}
}
