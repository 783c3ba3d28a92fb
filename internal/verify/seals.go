package verify

import (
	"cmp"
	"strings"

	"github.com/sqlfence/sqlfence/internal/seal"
)

// A seals is what a table has of the triggers that refuse writes without a token.
type seals struct {
	problem string // what isn't as it has to be; empty for nothing
	remedy  string // empty for another Seal
	shape   string // what isn't as Seal would create it now
	others  []otherTrigger
}

// sealed returns what the triggers of the table's seal depend on.
func (t target) sealed() *seal.Table {
	return &seal.Table{Name: t.Name, Fence: t.Fence, Resource: t.Resource, Key: t.Key, Serial: t.Serial, Ledger: t.Ledger, SingleUse: t.SingleUse}
}

// differs says by the first difference of two definitions that there is one.
func differs(what, wants, is string) string {
	at := 0
	for at < min(len(wants), len(is)) && wants[at] == is[at] {
		at++
	}
	return what + " has `" + around(is, at) + "`, where Seal would write `" + around(wants, at) + "`"
}

// around returns the part of a definition in which it begins to differ from another one.
func around(definition string, at int) string {
	const before, behind = 30, 150
	part := definition[max(0, at-before):min(len(definition), at+behind)]
	return strings.Join(strings.Fields(strings.ToValidUTF8(part, "")), " ")
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
	if len(l.targets) == 0 {
		return nil
	}
	found, err := l.db.seals(l, l.targets)
	if err != nil {
		return err
	}
	for _, t := range l.targets {
		s, has := found[t.rel.id]
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
		case has && s.shape != "":
			l.add(t.Table, Finding{Severity: Warning, Code: "seal-shape",
				Problem: "The seal of table " + name + " isn't what Seal would create now (it is that of other rules or of an older version, or was changed): " + s.shape + ".", Remedy: sealAgain})
		case t.Sealed && !has:
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
