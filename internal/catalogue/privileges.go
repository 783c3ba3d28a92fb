package catalogue

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/setuperr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// checkPrivileges checks that the role has the privileges that the guards of its writes need.
func checkPrivileges(l *look) {
	lacking := make(map[*relation]bool) // ledgers
	for _, t := range l.targets {
		if !t.rel.writes && !t.rel.deletes {
			continue
		}
		l.checkColumnPrivileges(t)
		if t.ClaimOf != "" {
			l.checkClaimPrivileges(t)
		}
		if ledger := l.ledgerOf(t); t.Ledger && ledger != nil && !lacking[ledger] {
			lacking[ledger] = l.checkLedgerPrivileges(t.Table, ledger)
		}
	}
}

// checkColumnPrivileges checks the privileges on the columns that the table's guards read or write.
func (l *look) checkColumnPrivileges(t target) {
	inserts := slices.ContainsFunc(t.rel.columns, func(c column) bool { return c.inserts })
	updates := slices.ContainsFunc(t.rel.columns, func(c column) bool { return c.updates })
	mayInsert, mayUpdate, mayDelete := inserts, updates, t.rel.deletes // where the guard isn't in the way
	var grants []string
	for _, u := range l.uses(t) {
		c, ok := t.rel.column(l.db, u.name)
		if !ok {
			continue
		}
		quoted, written := " ("+l.db.Quote(c.name)+")", u.role == "fence" || u.role == "serial"
		if !c.reads {
			grants = append(grants, "SELECT"+quoted)
			mayUpdate, mayDelete = false, false
		}
		if written && inserts && !c.inserts {
			grants = append(grants, "INSERT"+quoted)
			mayInsert = false
		}
		if written && updates && !c.updates {
			grants = append(grants, "UPDATE"+quoted)
			mayUpdate = false
		}
	}
	if len(grants) > 0 {
		level := Fault
		if mayInsert || mayUpdate || mayDelete {
			level = Warning
		}
		l.lacks(t.Table, level, l.name(t.rel), l.quoted(t.rel), grants)
	}
}

// checkClaimPrivileges checks that the role may lock rows of the table that t.ClaimOf names, as the guards of writes to
// t do. The check of that table itself reports a missing privilege to read it.
func (l *look) checkClaimPrivileges(t target) {
	for _, of := range l.targets {
		if of.Registered != t.ClaimOf || of.Claim == "" || l.db.Capabilities().LockPrivilege == "" {
			continue
		}
		if c, ok := of.rel.column(l.db, of.Claim); ok && !c.updates {
			l.lacks(t.Table, Fault, l.name(of.rel), l.quoted(of.rel),
				[]string{l.db.Capabilities().LockPrivilege + " (" + l.db.Quote(c.name) + ")"})
		}
	}
}

func (l *look) checkLedgerPrivileges(t *Table, ledger *relation) bool {
	var grants []string
	for _, c := range ledger.columns {
		if !c.reads && (c.name == "name" || c.name == "token") {
			grants = []string{"SELECT"}
		}
	}
	lock := l.db.Capabilities().LockPrivilege
	if token, ok := ledger.column(l.db, "token"); ok && !token.updates && !l.db.ownLedgers() && lock != "" {
		grants = append(grants, lock)
	}
	if len(grants) > 0 {
		l.lacks(t, Fault, sqltext.LedgerTable, l.quoted(ledger), grants)
	}
	return len(grants) > 0
}

// lacks adds a finding about missing privileges. It is a fault if no write that the role has privileges for can
// succeed.
func (l *look) lacks(t *Table, level slog.Level, name, quoted string, grants []string) {
	stops := "some guarded writes need"
	if level == Fault {
		stops = "every guarded write needs"
	}
	l.add(t, Finding{
		Level: level,
		Code:  "missing-privilege",
		Problem: fmt.Sprintf("This role lacks privileges on table %s that %s: %s.", name, stops,
			strings.ReplaceAll(strings.Join(grants, ", "), `"`, "")),
		SQL: "GRANT " + strings.Join(grants, ", ") + " ON TABLE " + quoted + " TO " +
			cmp.Or(l.settings[ownRole], setuperr.Role),
	})
}

// ownRole is the key of the session's role among the settings, as SQL.
const ownRole = "the session's role"
