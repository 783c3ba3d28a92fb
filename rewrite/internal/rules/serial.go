package rules

import (
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// A serial is the rule Serial, a row version: INSERT sets 1, and every UPDATE adds 1 unless the UPDATE itself assigns a
// higher number to the column. NULL counts as 0. In a plan for WithSerial, the guard throws an error for a row with a
// version other than the caller's.
type serial struct{}

// versions records that the target's rows are compared with the caller's row version, if the caller presents one by
// WithSerial. It refuses a write that is only a part of its statement, because the caller doesn't learn how many rows
// the write reached.
func (p writing) versions(w *read.Write) bool {
	if !p.versioned || p.target.rules.Serial == "" {
		return true
	}
	switch {
	case p.explained:
		return p.refuseTarget(w.At, advise.SerialOfExplain)
	case w.Depth > 0:
		return p.refuseTarget(w.At, advise.SerialInWith)
	}
	if first := p.Writes[0].At; first < w.At && p.Dialect.Guard.WritesInWith.Is() {
		return p.refuseTarget(first, advise.SerialWithCTE)
	}
	p.target.versioned, p.plan.Versioned = true, true
	return true
}

// namesNoSerial refuses a statement under WithSerial with a condition that reads the row version, or that skips locked
// rows: if no row met such a condition, the row would seem to be deleted.
func (p writing) namesNoSerial(s lex.Range) bool {
	if !p.target.versioned {
		return true
	}
	for i := s.Lo; i < s.Hi; i++ {
		if k := p.Tokens[i].Kind; k != lex.Word && k != lex.Quoted {
			continue
		}
		column, ok := p.Name(int(i))
		switch {
		case column == "skip" && p.Word(i+1, "locked") && p.Dialect.Guard.SkipsLocked.Is():
			return p.refuseTarget(i, advise.SerialSkipsLocked)
		case !ok || column != p.target.rules.Serial || p.isOfAnother(i, s.Lo):
		default:
			return p.refuseTarget(i, advise.SerialInCondition)
		}
	}
	return true
}

// isOfAnother reports whether the name of another table precedes a column, at a token of the expression that begins at
// lo.
func (p writing) isOfAnother(token, lo int32) bool {
	if token <= lo+1 || !p.Tokens[token-1].Is('.') {
		return false
	}
	of, ok := p.Name(int(token) - 2)
	return ok && p.Dialect.Quote(of) != p.target.qualifier
}

// versionedUpsert plans an INSERT with an ON CONFLICT DO UPDATE under WithSerial. The caller has read the row, so the
// guard throws an error if the statement inserts it: the guard adds a RETURNING, which sees the stored version.
func (p writing) versionedUpsert(w *read.Write) bool {
	switch {
	case !p.target.versioned:
		return true
	case !p.Dialect.CountsRows:
		// If a statement returns rows, drivers count its rows in different ways.
		return p.refuseTarget(w.ConflictsAt,
			advise.SerialOfUpsert)
	case p.insertion.names.Has(render.RuleSerial):
		return p.refuseTarget(w.ConflictsAt, advise.UpsertNamesSerial)
	case p.insertion.returned:
		return p.refuseTarget(w.ConflictsAt, advise.UpsertHidesKeys)
	case w.Returning > 0:
		return p.refuseTarget(w.Returning, advise.UpsertReturns)
	}
	p.insert(p.After(w.ConflictsEnd), render.OpGone, 0, "")
	return true
}

// assigned guards an item of a SET list that assigns the serial.
func (serial) assigned(p writing, a *read.Assignment, _ bool) bool {
	column := p.target.rules.Serial
	if p.target.versioned && p.Assigns(*a, column) {
		return p.refuseTarget(a.Lo, advise.AssignsSerial)
	}
	return p.assignsNumber(a, column, "serial", "leave the column out: it rises by itself")
}

func (serial) inserted(p inserting, column string, _ int32, _ int) bool {
	if column == p.target.rules.Serial {
		p.insertion.names |= render.SetOf(render.RuleSerial)
	}
	return true
}

func (serial) adds(t *render.Registered) added { return added{"serial", t.Quoted.Serial, "1"} }

// inWhere returns true for a DELETE under WithSerial. The guard of an UPDATE compares the row version where it assigns
// the next one.
func (serial) inWhere(_ *render.Registered, how rowWrite) bool { return how.versioned && !how.updates }

func (serial) inSet(_ *render.Registered, how rowWrite) bool { return !how.setsNumber }
