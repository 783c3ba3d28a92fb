package render

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

const LedgerTable = sqltext.LedgerTable

type ledger struct{ assignsNothing }

func (ledger) refuses(w *writer) bool { return w.compared() }

// check writes the ledger's check before the checks of the rows.
func (ledger) check(w *writer) {
	if w.Dialect.Capabilities().LocksFirst.Is() {
		w.bool(true)
		return
	}
	if w.rules.ClaimsOther() {
		w.Dialect.Guard.ClaimsFirst(w.forGuard())
		return
	}
	for i := w.lo; i < w.hi; i++ {
		if i > w.lo {
			w.write(" AND ")
		}
		w.Dialect.Guard.LedgerFirst(w.forGuard(), i)
	}
}

// aroundRow writes the SQL before or after a value of a row to insert.
func (w *writer) aroundRow(e *Fragment) {
	asks := w.refuses(e.Rules & SetOf(RuleLedger))
	compares := w.refuses(e.Rules & SetOf(RuleKey))
	switch {
	case !asks && !compares:
		return
	case e.Op == OpAfterRow:
		w.write(" END")
		return
	}
	w.write("CASE WHEN ")
	if asks {
		w.check(SetOf(RuleLedger))
	}
	if asks && compares {
		w.write(" AND ")
	}
	if compares {
		token := w.rowsToken(e)
		w.byKeyOf(token, token+1, func(int) { w.bool(true) },
			func() { w.throwCondition(guard.OutOfScope, token, w.shownKey()) })
	}
	w.write(" THEN ")
}

// checkBefore writes the head of a CASE that checks the ledger before the CASE returns a value.
func (w *writer) checkBefore() {
	w.write("CASE WHEN ")
	w.check(SetOf(RuleLedger))
	w.write(" THEN ")
}

// ledgerItems writes the checks of the ledger in WITH, for the tables of a statement's targets. with is "WITH" before
// the statement, or "" at the head of the statement's WITH.
//
// The check is true or throws an error. It stands, negated, in the condition of an UPDATE of the ledger's row, so the
// UPDATE changes nothing; if the check were false nevertheless, the UPDATE would throw an error for a division by zero.
// If the role's row-level security hides all rows, PostgreSQL 17 doesn't evaluate the condition; so SET calls
// [sqltext.LedgerTurns], which fails then, while PostgreSQL plans the statement.
//
// A data-modifying WITH always runs, and it runs after the main statement has taken its row locks. Without ClaimOf the
// check calls [sqltext.LedgerFunction]. This function locks the name until the transaction ends, so that no newer token
// is issued, and then reads the newest token: by a query with a new snapshot or, above READ COMMITTED, FOR SHARE, which
// is a serialization failure if the token has changed since the transaction's snapshot.
//
// PostgreSQL evaluates the last item first. So the items stand in the reverse order of the tokens, and the ledger's
// advisory locks are taken in the order of the tokens' names. An Issue of several tokens takes the locks in the same
// order, so that the statement and the Issue don't deadlock.
//
// If a rule must query the ledger before it throws its own error, the check is a separate WITH item, which PostgreSQL
// evaluates once, when the rule or the UPDATE first reads it.
func (w *writer) ledgerItems(with string, targets []Written) {
	separator := with
	for table := len(w.Plan.Tables) - 1; table >= 0; table-- {
		if !slices.ContainsFunc(targets, func(t Written) bool { return t.Table == table }) {
			continue
		}
		w.chooseTable(table)
		asked := w.checksLedgerFirst()
		for i := w.checksEnd() - 1; i >= w.lo && w.refuses(SetOf(RuleLedger)); i-- {
			if asked {
				w.write(separator, " ")
				w.ledgerItem(i)
				w.write(" AS MATERIALIZED (SELECT ")
				w.checkToken(i)
				w.write(" AS newest)")
				separator = ","
			}
			w.write(separator, " sqlfence_")
			w.b.Int(int64(i))
			w.write(" AS (")
			w.alwaysRun(i, targets)
			w.write("NOT ")
			if asked {
				w.write("(SELECT newest FROM ")
				w.ledgerItem(i)
				w.write(")")
			} else {
				w.checkToken(i)
			}
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

// checksEnd returns the end of the range of tokens, from w.lo, that each need a check. In the ledger each token needs a
// check; for the claims of another table, one check covers all tokens.
func (w *writer) checksEnd() int {
	if w.rules.ClaimsOther() {
		return w.lo + 1
	}
	return w.hi
}

// checkToken writes the check of a token.
func (w *writer) checkToken(token int) {
	if w.rules.ClaimsOther() {
		w.Dialect.Guard.ClaimsCheck(w.forGuard())
		return
	}
	w.Dialect.Guard.LedgerCheck(w.forGuard(), token)
}

// alwaysRun writes the head of a data-modifying WITH item, up to the negated check. With ClaimOf, an INSERT that writes
// rows before the check needs one: an INSERT of no row into the same table, because the planner leaves an UPDATE out if
// row-level security hides all rows. Other statements need one to check the claims even if they find no row.
func (w *writer) alwaysRun(token int, targets []Written) {
	if !w.rules.ClaimsOther() {
		w.write("UPDATE ", w.Dialect.Ledger, " SET token = token")
		w.operator("/")
		w.write("CASE WHEN ", w.Dialect.functionSchema, sqltext.LedgerTurns, "() THEN 0 ELSE 0 END WHERE ")
		w.same("name", token, fieldName)
		w.write(" AND ")
		return
	}
	late := slices.IndexFunc(targets, func(t Written) bool { return t.Late && t.Table == w.table })
	if late >= 0 {
		w.write("INSERT INTO ", targets[late].Prefix, w.rules.Quoted.Name, " SELECT WHERE ")
		return
	}
	claim := w.Dialect.Quote(w.rules.ClaimOf.Claim)
	w.write("UPDATE ", claims{w}.claimsTable(), " SET ", claim, " = "+guard.ClaimedTable+".", claim)
	w.operator("/")
	w.write("0 WHERE ")
}

// checksLedgerFirst reports whether a rule of the table may throw an error only after the ledger's check, or the check
// locks rows that the statement may write.
func (w *writer) checksLedgerFirst() bool {
	return w.rules.ClaimsOther() || w.rules.SerialRequired || w.refuses(SetOf(RuleSerial, RuleEditLock)) ||
		w.table < len(w.Assigns) && w.Assigns[w.table]
}

// ledgerItem writes the name of the WITH item that has the check of a token.
func (w *writer) ledgerItem(token int) {
	w.write(ledgerItem)
	w.b.Int(int64(token))
}

// throwAfterLedger writes an expression that checks the ledger, and then throws an error with the table's number and
// the details in its marker. If the ledger's check stands in WHERE, it has already run.
//
// The query of the ledger reads column, so that it depends on the row. Otherwise PostgreSQL would evaluate the query
// whenever a row has changed while the statement waited for the row, even if no error is thrown, and would hold the
// ledger's advisory lock while waiting for other rows.
func (w *writer) throwAfterLedger(kind guard.Kind, column string, detail ...string) {
	if w.Dialect.LedgerInWhere() || !w.refuses(SetOf(RuleLedger)) {
		w.throw(kind, w.table, detail...)
		return
	}
	w.write("CASE WHEN ")
	for i := w.lo; i < w.checksEnd(); i++ {
		if i > w.lo {
			w.write(" AND ")
		}
		w.write("(SELECT COALESCE(newest, ", w.target.Qualifier, ".", column, " IS NULL) FROM ")
		w.ledgerItem(i)
		w.write(")")
	}
	w.write(" THEN ")
	w.throw(kind, w.table, detail...)
	w.write(" END")
}

// tail writes the clause after a query that checks the ledger, or the claims of another table.
func (w *writer) tail() {
	switch {
	case !w.refuses(SetOf(RuleLedger)):
	case w.rules.ClaimsOther():
		w.Dialect.Guard.ClaimsTail(w.forGuard())
	default:
		w.Dialect.Guard.LedgerTail(w.forGuard())
	}
}
