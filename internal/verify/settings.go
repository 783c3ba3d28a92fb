package verify

import (
	"fmt"
	"slices"
	"strings"
)

// checkSettings looks at the settings that guards and tokens depend on.
func checkSettings(l *look) error {
	if len(l.tables) == 0 {
		return nil
	}
	settings, err := l.db.settings(l)
	if err != nil {
		return err
	}
	l.db.checkSession(l, settings)
	if l.opts.Peers {
		for i := range l.tables {
			if t := &l.tables[i]; t.Ledger {
				l.add(t, Finding{
					Severity: Fault,
					Code:     "several-servers",
					Problem:  "Other servers write to this database, and the ledger's lock is one server's: writes of table " + t.Registered + " are refused.",
					Remedy:   "Compare the token in the row, with RowFence alone; docs/galera.md says why.",
				})
			}
		}
	}
	return nil
}

// asksLedger reports whether a table is compared with the ledger.
func (l *look) asksLedger() bool {
	return slices.ContainsFunc(l.tables, func(t Table) bool { return t.Ledger })
}

// durability notes a setting by which a crash loses what was committed: that of the server, or as a Note that of
// the whole machine alone.
func (l *look) durability(severity Severity, setting, remedy, sql string) {
	what := "server"
	if severity == Note {
		what = "machine"
	}
	l.add(nil, Finding{
		Severity: severity,
		Code:     "durability",
		Problem:  "The setting " + setting + " lets a crash of the " + what + " lose what was committed before it: writes, and the marks with them.",
		Remedy:   remedy,
		SQL:      sql,
	})
}

// idle notes that a transaction may stay open for ever.
func (l *look) idle(setting, sql string) {
	l.add(nil, Finding{
		Code:    "idle-in-transaction",
		Problem: "The setting " + setting + " is 0: a transaction that a paused program leaves open after a write under the ledger holds off the next token for as long.",
		Remedy:  "Set it to the time that a transaction may idle.",
		SQL:     sql,
	})
}

// checkWriters notes who else may write to the tables, or past their seals.
func checkWriters(l *look) error {
	of := l.guarded()
	if len(of) == 0 {
		return nil
	}
	writers, err := l.db.writers(l, of)
	if err != nil {
		return err
	}
	var unsealers map[string][]string
	var how string
	if slices.ContainsFunc(of, func(rel *relation) bool { return rel.sealed }) {
		if unsealers, how, err = l.db.unsealers(l, of); err != nil {
			return err
		}
	}
	for _, t := range l.targets {
		switch past, others := unsealers[t.rel.id], writers[t.rel.id]; {
		case t.rel.sealed && len(past) > 0:
			l.add(t.Table, Finding{
				Code:    "seal-privileges",
				Problem: fmt.Sprintf("Table %s is sealed, but %s may write past the seal: %s.", l.name(t.rel), firstOf(past), how),
				Remedy:  "Take these privileges away from those who only write, and leave them to the role that migrates.",
			})
		case !t.rel.sealed && len(others) > 0:
			l.add(t.Table, Finding{
				Code:    "other-writers",
				Problem: fmt.Sprintf("Table %s can also be written by %s: what doesn't pass through sqlfence carries no token.", l.name(t.rel), firstOf(others)),
				Remedy:  "Take the privileges away from who doesn't need them, or seal the table.",
			})
		}
	}
	return nil
}

// firstOf names the first of many roles.
func firstOf(roles []string) string {
	const shown = 5
	list := strings.Join(roles[:min(len(roles), shown)], ", ")
	if more := len(roles) - shown; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}
