package rewrite

import "slices"

// The tables that sqlfence's packages keep, in any schema. Whoever else wrote to
// one, or put another one before it, could make an outdated token pass.
var ownTables = [...]string{ledgerTable, "fencing_leases", "rowlocks"}

// isOwnTable reports whether a table, by its normalised name, is one of these.
func isOwnTable(table string) bool { return slices.Contains(ownTables[:], table) }

// ownReason is why a statement that concerns a table of sqlfence's own is refused.
const ownReason = "only sqlfence's packages write to this table or define one of its name; " +
	"use package tokens, lease or rowlock, or run it under Bypass"
