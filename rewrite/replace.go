package rewrite

import (
	"strings"

	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

// SQLite's REPLACE deletes the rows that are in the way of a new one, by any unique index, and
// with them their tokens. Where one token covers the whole table it may do so if no row
// has a higher one.

// orClause decides about the OR clause of an INSERT.
func (p *planner) orClause(w *read.Write) bool {
	or := ""
	switch {
	case w.Verb == read.Replace || w.Or == read.OrReplace:
		if or = "REPLACE"; p.replaces(w) {
			return true
		}
	case w.Or == read.OrFail || w.Or == read.OrOther:
		or = strings.ToUpper(p.TokenText(w.OrAt))
	}
	return or == "" || p.refuseTarget(w.At, "OR "+or+" may delete other rows or keep part of a failed statement; write INSERT ... ON CONFLICT")
}

// replaces reports whether a REPLACE can be guarded, and notes that it is one: there is
// one token for all rows, and no rule keeps something else in them.
func (p *planner) replaces(w *read.Write) bool {
	t := p.target.rules
	if t.Key != "" || t.Serial != "" || t.locks() {
		return false
	}
	p.to().replaces = true
	if t.FenceColumn == "" {
		return true
	}
	shadowed := false
	for i := range p.Parts {
		shadowed = shadowed || p.Parts[i].Kind == read.NamePart && p.Parts[i].Name == t.Name
	}
	return !t.SingleUse && !shadowed && len(w.Conflicts) == 0 && w.Insertion.Source != read.Defaults
}

// comparesAll reports whether the target's token has to be compared with those of all rows.
func (p *planner) comparesAll() bool { return p.to().replaces && p.target.rules.FenceColumn != "" }

// noneHigher writes the condition that is true if no row of the table has a higher token than
// the statement's, or raises. It asks for the higher ones alone, so that an index on
// the column serves.
func (w *writer) noneHigher() {
	if !w.compared() {
		w.bool(true)
		return
	}
	before, behind := w.dialect.integer()
	w.write("(SELECT CASE WHEN count(*) = 0 THEN ")
	w.bool(true)
	w.write(" ELSE ")
	w.raiseCondition(markerStale, w.lo, "max(", before, w.rules.fence, behind, ")")
	w.write(" END")
	w.fromHigher()
	w.write(")")
}

// fromHigher writes the FROM and WHERE of the rows with a higher token.
func (w *writer) fromHigher() {
	before, between, behind := w.dialect.higher()
	w.write(" FROM ", w.target.schema, w.rules.name, " WHERE ", before, w.rules.fence, between)
	w.field(w.lo, fieldValue)
	w.write(behind)
}

// highest writes the highest token of the statement's and of those of all rows.
func (w *writer) highest() {
	before, between, behind := w.dialect.greatest()
	asInteger, end := w.dialect.integer()
	w.write(before)
	w.field(w.lo, fieldValue)
	w.write(between, "COALESCE((SELECT max(", asInteger, w.rules.fence, end, ")")
	w.fromHigher()
	w.write("), 0)", behind)
}
