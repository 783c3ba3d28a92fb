package verify

import (
	"fmt"
	"slices"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// MissingLedger is the code of a ledger that isn't there: package tokens makes it.
const MissingLedger = "missing-ledger"

// checkLedger looks for the ledger of the tables that are compared with it.
func checkLedger(l *look) error {
	for i := range l.targets {
		t := l.targets[i]
		if !t.Ledger {
			continue
		}
		ledger := l.ledgerOf(t)
		if ledger == nil {
			l.add(t.Table, Finding{
				Severity: Fault,
				Code:     MissingLedger,
				Problem:  fmt.Sprintf("There is no table %s for the writes of table %s, or this role can't see it: all are refused.", l.ledgerName(t), l.name(t.rel)),
				Remedy:   "Call tokens.Store.Setup, or create it.",
				SQL:      l.createLedger(t),
			})
			continue
		}
		if seen := func(x target) bool { return x.Ledger && l.ledgerOf(x) == ledger }; slices.ContainsFunc(l.targets[:i], seen) {
			continue
		}
		if err := l.checkFit(t.Table, ledger); err != nil {
			return err
		}
	}
	return nil
}

// ledgerOf returns the ledger that the guards of a table ask; nil if there is none.
func (l *look) ledgerOf(t target) *relation {
	for _, ledger := range l.ledgers {
		if !l.db.keepsLedgers() || l.db.same(ledger.schema) == l.db.same(t.rel.schema) {
			return ledger
		}
	}
	return nil
}

func (l *look) ledgerName(t target) string {
	if l.db.keepsLedgers() && !t.rel.visible {
		return l.spell(t.rel.schema, sqltext.LedgerTable)
	}
	return sqltext.LedgerTable
}

func (l *look) createLedger(t target) string {
	if l.db.keepsLedgers() && !t.rel.visible {
		return "" // Setup makes the one of the main schema
	}
	return l.db.CreateLedger()
}

// checkFit looks at the table of the ledger. It reports one fault, of the first table that asks it.
func (l *look) checkFit(t *Table, ledger *relation) error {
	why := ""
	name, hasName := ledger.column(l.db, "name")
	token, hasToken := ledger.column(l.db, "token")
	switch {
	case !hasName:
		why = "it has no column name"
	case !hasToken:
		why = "it has no column token"
	case name.loose:
		why = "names in it that aren't the same count as equal"
	case l.db.mark(token).severity == Fault:
		why = "its column token is of the type " + token.shown + ", and has to be bigint"
	}
	if why == "" {
		var err error
		if why, err = l.db.unfit(l, ledger); err != nil {
			return err
		}
	}
	if why != "" {
		l.add(t, Finding{
			Severity: Fault,
			Code:     "ledger-shape",
			Problem:  fmt.Sprintf("The table %s can't be the ledger: %s.", l.name(ledger), why),
			Remedy:   "Repair the table, as docs/migrations.md has it, and keep its rows: tokens would begin again at 1.",
		})
	}
	if j := l.db.mark(token); why == "" && j.severity == Warning {
		l.add(t, Finding{Severity: Warning, Code: "ledger-type", Remedy: "Make it bigint.",
			Problem: fmt.Sprintf("The column token of table %s is of the type %s: %s.", l.name(ledger), token.shown, j.problem)})
	}
	return nil
}
