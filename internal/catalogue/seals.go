package catalogue

import (
	"cmp"
	"strings"

	"github.com/sqlfence/sqlfence/internal/seal"
)

// A seals holds a table's triggers that refuse writes without a token.
type seals struct {
	problem string // the defect; empty if there is none
	remedy  string // the remedy; empty if calling Seal again is the remedy
	shape   string // the first difference from the seal that Seal would create now
	late    []text // triggers of the application that fire after the seal's
	names   []string
}

func (t target) sealed() *seal.Table {
	return &seal.Table{Name: t.Name, Column: t.column(), Claim: t.Claim != "",
		Resource: t.Resource, Key: t.Key, Serial: t.Serial,
		Ledger: t.Ledger, SingleUse: t.SingleUse, FromTransaction: t.FromTransaction}
}

func (l *look) sealOf(t target) (s seals, has bool) {
	if l.db.seal == nil {
		return s, false
	}
	return l.db.seal(l, t)
}

func (t target) column() string { return cmp.Or(t.FenceColumn, t.Claim) }

// differs describes the first difference between two definitions.
func differs(what, wants, is string) string {
	at := 0
	for at < min(len(wants), len(is)) && wants[at] == is[at] {
		at++
	}
	return what + " has `" + around(is, at) + "`, where Seal would write `" + around(wants, at) + "`"
}

// around returns the part of a definition near the offset at, where the difference begins.
func around(definition string, at int) string {
	const before, behind = 30, 150
	part := definition[max(0, at-before):min(len(definition), at+behind)]
	return strings.Join(strings.Fields(strings.ToValidUTF8(part, "")), " ")
}

// checkSeals compares the seals with the registrations.
func checkSeals(l *look) {
	for _, t := range l.targets {
		s, has := l.sealOf(t)
		t.rel.sealed = has && s.problem == ""
		if t.Sealed {
			l.checkLate(t, &s)
		}
		name := l.name(t.rel)
		f := Finding{Level: Warning, Code: "wrong-seal", Remedy: s.remedy}
		switch {
		case has && !t.Sealed:
			f.Level = Fault
			f.Problem = "Table " + name + " is sealed, but registered without Sealed: the database refuses " +
				"its guarded writes."
			f.Remedy = "Register it with Sealed, or call schema.Unseal, or run sqlfence unseal --apply."
		case has && s.problem != "":
			f.Problem = "The seal of table " + name + " isn't whole: " + s.problem + "."
		case has && s.shape != "" && !l.opts.Recognise: // the shape depends on the registered rules
			f.Problem = "The seal of table " + name + " isn't what Seal would create now (it is that of other " +
				"rules or of an older version, or was changed): " + s.shape + "."
		case t.Sealed && !has:
			f.Problem = "Table " + name + " is registered with Sealed, but isn't sealed: what doesn't pass " +
				"through sqlfence isn't refused."
			f.Remedy = "Call schema.Seal, or run sqlfence seal --apply."
		default:
			continue
		}
		l.add(t.Table, f)
	}
}

// checkLate reports triggers that fire after a seal's trigger and may write the stored token or the key, because they
// defeat the seal's comparison. They were created after the seal (on MySQL), so after another call of Seal the seal's
// triggers fire last.
func (l *look) checkLate(t target, s *seals) {
	for i, late := range s.late {
		words := late.names()
		if late.read && !words[l.db.same(t.column())] && (t.Key == "" || !words[l.db.same(t.Key)]) {
			continue
		}
		l.add(t.Table, Finding{Level: Warning, Code: "wrong-seal",
			Problem: "The trigger " + s.names[i] + " fires after the seal's: it may change the fence column or " +
				"the row's key after they were compared.",
			Remedy: Remedies["wrong-seal"] + " Then the seal's triggers fire after it."})
	}
}
