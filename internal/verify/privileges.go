package verify

import (
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence/internal/setuperr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// checkPrivileges looks whether the role may do what the guards of its writes do.
func checkPrivileges(l *look) error {
	lacking := make(map[*relation]bool) // ledgers
	for _, t := range l.targets {
		if !t.rel.writes && !t.rel.deletes {
			continue
		}
		var grants []string
		need := func(column string, writes bool) {
			c, ok := t.rel.column(l.db, column)
			if column == "" || !ok {
				return
			}
			name := l.db.Quote(c.name)
			if !c.reads {
				grants = append(grants, "SELECT ("+name+")")
			}
			if writes && t.rel.writes && !c.inserts {
				grants = append(grants, "INSERT ("+name+")")
			}
			if writes && t.rel.writes && !c.updates {
				grants = append(grants, "UPDATE ("+name+")")
			}
		}
		need(t.Fence, true)
		need(t.Serial, true)
		need(t.Claim, false)
		for _, column := range []string{t.Key, t.By, t.Since, t.Expiry} {
			need(column, false)
		}
		if len(grants) > 0 {
			l.lacks(t.Table, l.name(t.rel), l.quoted(t.rel), grants)
		}
		if t.ClaimOf != "" {
			l.checkClaimPrivileges(t)
		}
		if ledger := l.ledgerOf(t); t.Ledger && ledger != nil && !lacking[ledger] {
			lacking[ledger] = l.checkLedgerPrivileges(t.Table, ledger)
		}
	}
	return nil
}

// checkClaimPrivileges looks at the table with the claims: its own writes say what they lack to read.
func (l *look) checkClaimPrivileges(t target) {
	for _, of := range l.targets {
		if of.Registered != t.ClaimOf || of.Claim == "" || l.db.Facts().LockPrivilege == "" {
			continue
		}
		if c, ok := of.rel.column(l.db, of.Claim); ok && !c.updates {
			l.lacks(t.Table, l.name(of.rel), l.quoted(of.rel),
				[]string{l.db.Facts().LockPrivilege + " (" + l.db.Quote(c.name) + ")"})
		}
	}
}

// checkLedgerPrivileges reports whether it has found that some lack.
func (l *look) checkLedgerPrivileges(t *Table, ledger *relation) bool {
	var grants []string
	for _, c := range ledger.columns {
		if !c.reads && (c.name == "name" || c.name == "token") {
			grants = []string{"SELECT"}
		}
	}
	lock := l.db.Facts().LockPrivilege
	if token, ok := ledger.column(l.db, "token"); ok && !token.updates && !l.db.ownLedgers() && lock != "" {
		grants = append(grants, lock)
	}
	if len(grants) > 0 {
		l.lacks(t, sqltext.LedgerTable, l.quoted(ledger), grants)
	}
	return len(grants) > 0
}

func (l *look) lacks(t *Table, name, quoted string, grants []string) {
	l.add(t, Finding{
		Severity: Warning,
		Code:     "missing-privilege",
		Problem: fmt.Sprintf("This role lacks privileges on table %s that guarded writes need: %s.", name,
			strings.ReplaceAll(strings.Join(grants, ", "), `"`, "")),
		SQL: "GRANT " + strings.Join(grants, ", ") + " ON TABLE " + quoted + " TO " + setuperr.Role,
	})
}
