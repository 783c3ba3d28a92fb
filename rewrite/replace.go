package rewrite

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

// maxReplaced is how many rows one REPLACE may have: each adds a question to the text.
const maxReplaced = 100

// replaces plans what a REPLACE deletes. It comes before the rows are planned.
func (p inserting) replaces(w *read.Write) bool {
	u, t := p.dialect.unique, p.target.rules
	if !replaces(w) || p.mayReplace() {
		return true
	}
	if u == nil || t.FenceColumn == "" || t.Serial != "" || t.Locks() || t.Sealed {
		return p.refuseReplace(w, "OR REPLACE may delete other rows or keep part of a failed statement")
	}
	const cant = "which rows OR REPLACE deletes can't be told "
	ins, schema := &w.Insertion, w.Target.Schema
	switch {
	case ins.Source != read.Values || len(ins.Arms) != 1 || len(ins.Columns) == 0:
		return p.refuseReplace(w, cant+"without a list of columns and VALUES")
	case len(ins.Arms[0].Rows) > maxReplaced:
		return p.refuseReplace(w, cant+"of so many rows; write at most 100 at once")
	case p.HasWith || len(w.Conflicts) > 0 || schema == u.Hidden:
		return p.refuseReplace(w, cant+"with WITH, with ON CONFLICT or in the schema temp")
	}
	if schema == "" {
		schema = u.Home
	}
	r := &replacement{table: session.Name{Schema: schema, Table: w.Target.Name}}
	if !p.givenColumns(w, r) {
		return false
	}
	for _, row := range ins.Arms[0].Rows {
		values := make([]given, len(r.columns))
		for n := range values {
			values[n] = p.given(p.Item(row, n))
		}
		r.rows = append(r.rows, values)
	}
	p.apart = true
	p.replacement = r
	return true
}

func (p inserting) refuseReplace(w *read.Write, why string) bool {
	var columns []string
	for _, c := range w.Insertion.Columns {
		if name, ok := p.Name(int(c.Lo)); ok && name != p.target.rules.Key {
			columns = append(columns, name)
		}
	}
	return p.refuseTarget(w.At, why+"; write INSERT ... "+p.dialect.upsert(columns))
}

// givenColumns reads the columns of a REPLACE. By a row number it could delete a row that no key of the table's names.
func (p inserting) givenColumns(w *read.Write, r *replacement) bool {
	for _, c := range w.Insertion.Columns {
		name, ok := p.Name(int(c.Lo))
		switch {
		case !ok || c.Hi-c.Lo != 1:
			return p.refuseTarget(c.Lo, read.Unexpected.String())
		case slices.Contains(p.dialect.guard.RowNumbers, name):
			return p.refuseTarget(c.Lo, "OR REPLACE with "+name+" may delete the row of that number; name the key "+
				"column instead")
		case slices.Contains(r.columns, name):
			return p.refuseTarget(c.Lo, twice)
		}
		r.columns = append(r.columns, name)
	}
	return true
}

// given reads a value of a row that is to be compared besides.
func (p inserting) given(item lex.Span) given {
	g := given{at: p.Offset(item.Lo)}
	if item.Empty() || !p.isPlain(item) && !p.isNegative(item) {
		return g
	}
	g.text = p.Source(item)
	p.EachBare(item, func(_ int32, number int) { g.bare = number })
	return g
}
