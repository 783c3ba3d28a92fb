package verify

import (
	"cmp"
	"strings"
)

// A seal is what a table has of the triggers that refuse writes without a token.
type seal struct {
	problem string // what isn't as it has to be; empty for nothing
	remedy  string // empty for another Seal
	body    string // of what looks at writes
	others  []otherTrigger
}

// An otherTrigger is a trigger of the application's that a seal doesn't go well with.
type otherTrigger struct {
	problem, remedy string

	// columns is the text that has the columns which it may write; empty if it may write any.
	columns string
}

const sealAgain = "Call schema.Seal again, or sqlfence seal --apply."

// checkSeals compares the seals with what is registered.
func checkSeals(l *look) error {
	of := l.guarded()
	if len(of) == 0 {
		return nil
	}
	seals, err := l.db.seals(l, of)
	if err != nil {
		return err
	}
	for _, t := range l.targets {
		s, has := seals[t.rel.id]
		if has {
			t.rel.sealed = s.problem == ""
		}
		name := l.name(t.rel)
		if t.Sealed {
			l.checkOtherTriggers(t, s.others)
		}
		switch {
		case has && !t.Sealed:
			l.add(t.Table, Finding{Severity: Fault, Code: "sealed-unregistered",
				Problem: "Table " + name + " is sealed, but registered without Sealed: the database refuses its guarded writes.",
				Remedy:  "Register it with Sealed, or call schema.Unseal, or sqlfence unseal --apply."})
		case has && s.problem != "":
			l.add(t.Table, Finding{Severity: Warning, Code: "seal-broken",
				Problem: "The seal of table " + name + " isn't whole: " + s.problem + ".", Remedy: cmp.Or(s.remedy, sealAgain)})
		case has:
			if why := l.misfit(t, s.body); why != "" {
				l.add(t.Table, Finding{Severity: Warning, Code: "seal-shape",
					Problem: "The seal of table " + name + " was made for other rules: " + why + ".", Remedy: sealAgain})
			}
		case t.Sealed:
			l.add(t.Table, Finding{Severity: Warning, Code: "not-sealed",
				Problem: "Table " + name + " is registered with Sealed, but isn't sealed: what doesn't pass through sqlfence isn't refused.",
				Remedy:  "Call schema.Seal, or sqlfence seal --apply."})
		}
	}
	return nil
}

// checkOtherTriggers reports the triggers that make a seal compare in vain, or skip it. Those of the table's
// that were there before are known to Seal; these may have come later.
func (l *look) checkOtherTriggers(t target, all []otherTrigger) {
	for _, b := range all {
		words := newBody(l.db, b.columns).words
		if b.columns == "" || words[l.db.same(t.Fence)] || t.Key != "" && words[l.db.same(t.Key)] {
			l.add(t.Table, Finding{Severity: Warning, Code: "seal-trigger", Problem: b.problem, Remedy: b.remedy})
		}
	}
}

// misfit says in what a seal's trigger differs from the rules of the table; empty for nothing.
func (l *look) misfit(t target, body string) string {
	asks := strings.Contains(body, l.db.sealAsks())
	twice := strings.Contains(body, l.db.sealOnce())
	locks := strings.Contains(body, l.db.sealLocks())
	name, ledger := t.Resource, l.ledgerOf(t)
	if t.Key != "" {
		name += "/"
	}
	switch {
	case t.Fence != "" && !strings.Contains(body, "NEW."+l.db.Quote(t.Fence)):
		return "it doesn't look at the fence column " + quoteIfNeeded(l.db, t.Fence)
	case t.Ledger && !asks:
		return "it doesn't compare with the ledger"
	case !t.Ledger && asks:
		return "it compares with the ledger"
	case t.Ledger && !strings.Contains(body, l.db.sealNames(name)):
		return "it doesn't ask the ledger for the tokens " + l.tokensOf(t)
	case t.Ledger && ledger != nil && !l.db.sealReads(body, ledger.schema):
		return "it compares with another ledger than " + l.spell(ledger.schema, ledger.name)
	case t.By != "" && !locks:
		return "no edit lock can be taken"
	case t.By == "" && locks:
		return "some columns can be written without a token, as those of an edit lock"
	case t.SingleUse != twice && t.SingleUse:
		return "it lets a token write a row twice, which SingleUse forbids"
	case t.SingleUse != twice:
		return "it lets a token write a row once only"
	}
	return ""
}
