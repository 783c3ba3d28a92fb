package rules

import (
	"errors"
	"fmt"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
	"slices"
)

// checkTables adds the tables to an index, and returns all faults of their registrations, joined; nil if none.
func checkTables(tables []render.Registered, index *index) error {
	var faults []error
	for i := range tables {
		t := &tables[i]
		faults = append(faults, defectsOf(t)...)
		if index.overlaps(t) {
			faults = append(faults, fmt.Errorf("table %q is registered twice, or with and without its schema", t.Name))
		}
		index.add(i, t)
	}
	return errors.Join(faults...)
}

// defectsOf returns the faults in a table's registration, apart from conflicts with other tables.
func defectsOf(t *render.Registered) (faults []error) {
	if t.Name == "" {
		return []error{errors.New("a table has no name")}
	}
	failIf := func(fault bool, format string, args ...any) {
		if fault {
			faults = append(faults, fmt.Errorf("table %q"+format, append([]any{t.Name}, args...)...))
		}
	}
	fail := func(fault string) { failIf(true, fault) }
	if t.Exempt {
		failIf(t.Pattern || t.Fenced() || t.Tokenless(), " is exempt, so it has no other rule and is one table")
		return faults
	}
	failIf(render.IsOwnTable(t.Name), " belongs to sqlfence's packages and is always guarded; leave it out")
	failIf(!t.Fenced() && (!t.Tokenless() || t.Key != ""), " has neither a fence column nor a ledger")
	failIf(t.Sealed && (t.FenceColumn == "" && t.Claim == "" || t.UnfencedInserts),
		": a sealed table needs a fence column or a claim, and none of its writes goes without a token")
	failIf(t.FenceColumn != "" && t.FenceColumn == t.Key, ": the column %q can't be both fence and key", t.Key)
	switch {
	case t.Claim == "":
	case t.Key == "" || t.Key == t.Claim:
		fail(": Claim needs a Key, which is another column")
	case t.FenceColumn != "" || t.Ledger || t.SingleUse:
		fail(": Claim compares tokens with the row's own generation, so it goes with no fence column, " +
			"ledger or SingleUse")
	case t.Serial != "" || t.SerialRequired || t.Locks():
		fail(": Claim goes with no serial and no lock; register the generation alone")
	case t.UnfencedInserts:
		fail(": new rows of a table with Claim need no token, so UnfencedInserts says nothing")
	}
	switch {
	case !t.ClaimsOther():
	case !isComplete(&t.ClaimOf):
		fail(": ClaimOf needs the table with the claims, its key and its claim")
	case !t.Ledger || t.FenceColumn != "" || t.SingleUse || t.Sealed || t.Claim != "":
		fail(": ClaimOf compares tokens with the claims of another table, so it goes with no fence column, " +
			"claim, SingleUse or seal")
	}
	failIf(t.Serial != "" && (t.Serial == t.FenceColumn || t.Serial == t.Key),
		": the column %q can't be both the serial and the fence or key", t.Serial)
	column := sharedColumn(t)
	failIf(column != "", ": the lock's column %q is used twice, or by another rule as well", column)
	return faults
}

// sharedColumn returns a column of the EditLock rule that the registration also gives another role, or an empty string.
func sharedColumn(t *render.Registered) string {
	var seen []string
	for _, column := range t.Columns() {
		seen = append(seen, *column)
	}
	for _, c := range [...]string{t.Lock.By, t.Lock.Since, t.Lock.Expiry} {
		if c != "" && slices.Contains(seen[slices.Index(seen, c)+1:], c) {
			return c
		}
	}
	return ""
}
