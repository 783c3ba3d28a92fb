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

// refuseOwn refuses a statement whose tokens lo to hi name a table of sqlfence's own.
func (r *reader) refuseOwn(lo, hi int) bool {
	if table, at := r.mentionOwn(lo, hi); table >= 0 {
		return r.refuse(table, at, ownReason)
	}
	return true
}

// selectsIntoOwn refuses PostgreSQL's SELECT ... INTO name behind token lo, which
// creates a table, where that is one of sqlfence's own.
//
//	INTO [TEMPORARY | TEMP | UNLOGGED] [TABLE] name
func (r *reader) selectsIntoOwn(lo int) bool {
	if r.dialect != Postgres {
		return true
	}
	begin := r.i
	defer func() { r.i = begin }()
	for i := lo; i < r.stop; i++ {
		if !r.isWord(r.toks[i], "into") {
			continue
		}
		r.i = i + 1
		for r.isWord(r.tok(), "local", "global", "temp", "temporary", "unlogged", "table") {
			r.i++
		}
		if n, ok := r.name(); ok && isOwnTable(n.name) {
			return r.refuseOwn(n.first, r.i)
		}
	}
	return true
}
