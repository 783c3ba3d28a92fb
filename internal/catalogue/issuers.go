package catalogue

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// checkIssuers looks whether a ledger with the columns for who takes tokens, and when, gets them filled in. Columns
// of another type are the application's own.
func (l *look) checkIssuers(t *Table, ledger *relation) {
	issuers, lacks := l.db.Facts().Issuers, []string(nil)
	for _, own := range issuers.Columns {
		c, _ := ledger.column(l.db, own.Name)
		if !strings.HasPrefix(strings.ToLower(c.shown), own.Type) {
			lacks = append(lacks, own.Name)
		}
	}
	const remedy = "Call tokens.Store.RecordIssuers, or run sqlfence init --issuers --apply."
	if len(lacks) > 0 {
		fires := func(t sqltext.Trigger) bool { return ledger.triggers[t.Name] != "" }
		if slices.ContainsFunc(issuers.Triggers, fires) {
			l.wrongLedger(t, Fault, remedy, "Triggers record in table %s who takes tokens, and it has lost the column %s "+
				"for that: no token can be taken.", l.name(ledger), strings.Join(lacks, ", "))
		}
		return
	}
	wrong := append(ledger.faults["unrecorded"], ledger.differing(issuers.Triggers, "RecordIssuers")...)
	if len(wrong) > 0 && (len(ledger.triggers) > 0 || !ledger.hidesTriggers) {
		l.wrongLedger(t, Warning, remedy, "Table %s says who has taken tokens, and when, and isn't kept up to date in "+
			"that: %s.", l.name(ledger), strings.Join(wrong, ", "))
	}
}
