package verify

import (
	"fmt"
	"slices"
	"strings"

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
				Remedy:   l.ledgerRemedy(),
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
	l.checkSeveralLedgers()
	return nil
}

// checkSeveralLedgers looks for ledgers that guards don't ask, and other processes may. An option that names the
// schema says that all processes have the same.
func (l *look) checkSeveralLedgers() {
	others := l.otherLedgers()
	if len(l.ledgers) == 0 || len(others) == 0 || l.opts.Schema != "" {
		return
	}
	schema, path := l.db.SchemaWords()
	l.add(nil, Finding{
		Severity: Warning,
		Code:     "several-ledgers",
		Problem: fmt.Sprintf("Guards ask the ledger in %s %s, which this session finds %s, and there is another one in %s: the tokens of one say nothing to the other, so that "+
			"a stale write passes of a process whose sessions find another than its successor's.", schema, l.ledgers[0].schema, path, strings.Join(others, ", ")),
		Remedy: "Name the one " + schema + " by sqlfence.WithSchema in all processes, raise its tokens to the highest of all by tokens.Store.Repair, and drop the others; leave those of other applications alone.",
	})
}

// otherLedgers returns the schemas of ledgers that guards don't ask: where those that a session sees may well be
// other applications', only such as have a registered table.
func (l *look) otherLedgers() (schemas []string) {
	for _, ledger := range l.others {
		registered := func(t target) bool { return t.rel.schema == ledger.schema }
		if l.db.OneApplication() || slices.ContainsFunc(l.targets, registered) {
			schemas = append(schemas, ledger.schema)
		}
	}
	return schemas
}

// ledgerRemedy is what to do where guards find no ledger.
func (l *look) ledgerRemedy() string {
	if others := l.otherLedgers(); len(others) > 0 {
		schema, path := l.db.SchemaWords()
		return fmt.Sprintf("There is one in %s %s: name it by sqlfence.WithSchema, or have it found %s. A second one would let stale writes pass.", schema, strings.Join(others, ", "), path)
	}
	return "Call tokens.Store.Setup, or create it."
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
	return l.spell(l.opts.Schema, sqltext.LedgerTable)
}

func (l *look) createLedger(t target) string {
	if l.db.keepsLedgers() && !t.rel.visible {
		return "" // Setup makes the one of the main schema
	}
	if len(l.otherLedgers()) > 0 {
		return ""
	}
	return l.db.placed(l.opts.Schema, l.db.CreateLedger())
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
	if why == "" {
		return l.checkKept(t, ledger)
	}
	return nil
}

// checkKept looks at the triggers that keep the ledger's tokens and names, and at the function that guards ask
// it by.
func (l *look) checkKept(t *Table, ledger *relation) error {
	problem, err := l.db.unkept(l, ledger)
	if problem != "" {
		remedy := "Call tokens.Store.Setup as a role that may create the triggers."
		if l.db.keepsLedgers() && !ledger.visible {
			remedy = "Call tokens.Store.Setup on a database that is opened by that file itself."
		}
		l.add(t, Finding{
			Severity: Warning,
			Code:     "unkept-ledger",
			Problem:  fmt.Sprintf("Every client that may write table %s can lower a token or lose a name there: %s.", l.name(ledger), problem),
			Remedy:   remedy,
		})
	}
	if err != nil {
		return err
	}
	function, err := l.db.otherFunction(l, ledger)
	if function != "" {
		l.add(t, Finding{
			Severity: Warning,
			Code:     "ledger-function",
			Problem: fmt.Sprintf("The function %s isn't what Setup of this version creates, or belongs to a role without the powers of the owner of table %s: guards do without it, "+
				"and those of another version may believe it.", l.spell(ledger.schema, function), l.name(ledger)),
			Remedy: "Call tokens.Store.Setup as a role with the powers of the table's owner; drop a function of another role, or with other parameters, before.",
		})
	}
	return err
}

// wrongTriggers says which of the triggers are missing or have another text; empty for none.
func wrongTriggers(triggers []sqltext.Trigger, rows [][]string) string {
	found := pairs(rows)
	var wrong []string
	for _, t := range triggers {
		if _, there := found[t.Name]; !there {
			wrong = append(wrong, "the trigger "+t.Name+" is missing")
		} else if t.Differs(found) {
			wrong = append(wrong, "the trigger "+t.Name+" isn't what Setup creates")
		}
	}
	return strings.Join(wrong, ", ")
}
