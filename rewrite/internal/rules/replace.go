package rules

import (
	"cmp"
	"slices"

	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// maxReplaced is the highest number of rows of one REPLACE: each row adds a query to the text.
const maxReplaced = 100

// replaces plans which rows a REPLACE deletes, and must run before the rows are planned.
func (p inserting) replaces(w *read.Write) bool {
	if !replaces(w) || p.mayReplace() {
		return true
	}
	if why := p.againstReplace(w); why != advise.Readable {
		return p.refuseReplace(w, why)
	}
	schema := cmp.Or(w.Target.Schema, p.Dialect.Unique.DefaultSchema)
	r := &render.Replacement{Table: session.Name{Schema: schema, Table: w.Target.Name}}
	if !p.replacedColumns(w, r) {
		return false
	}
	for _, row := range w.Insertion.Arms[0].Rows {
		values := make([]render.ColumnValue, len(r.Columns))
		for n := range values {
			values[n] = p.replacedValue(p.Item(row, n))
		}
		r.Rows = append(r.Rows, values)
	}
	p.apart = true
	p.replacement = r
	return true
}

// againstReplace returns why a REPLACE can't be guarded; advise.Readable if it can be.
func (p inserting) againstReplace(w *read.Write) advise.Code {
	u, t, ins := p.Dialect.Unique, p.target.rules, &w.Insertion
	switch {
	case u == nil || t.FenceColumn == "" || t.Serial != "" || t.Locks() || t.Sealed:
		return advise.ReplaceDeletes
	case ins.Source != read.Values || len(ins.Arms) != 1 || len(ins.Columns) == 0:
		return advise.ReplaceNotListed
	case len(ins.Arms[0].Rows) > maxReplaced:
		return advise.ReplaceOfMany
	case p.HasWith || len(w.Conflicts) > 0 || w.Target.Schema == u.SearchedFirst:
		return advise.ReplaceWithClauses
	}
	return advise.Readable
}

func (p inserting) refuseReplace(w *read.Write, why advise.Code) bool {
	var columns []string
	for _, c := range w.Insertion.Columns {
		if name, ok := p.Name(int(c.Lo)); ok && name != p.target.rules.Key {
			columns = append(columns, name)
		}
	}
	return p.refuseTarget(w.At, why, p.Dialect.Upsert(columns))
}

// replacedColumns reads the columns of a REPLACE. It refuses a column for the row number, because REPLACE could delete
// a row by its number, which isn't among the table's unique keys.
func (p inserting) replacedColumns(w *read.Write, r *render.Replacement) bool {
	for _, c := range w.Insertion.Columns {
		name, ok := p.Name(int(c.Lo))
		switch {
		case !ok || c.Hi-c.Lo != 1:
			return p.refuseTarget(c.Lo, advise.Unexpected)
		case slices.Contains(p.Dialect.Guard.RowNumbers, name):
			return p.refuseTarget(c.Lo, advise.ReplaceOfRowid, name)
		case slices.Contains(r.Columns, name):
			return p.refuseTarget(c.Lo, advise.NamedTwice)
		}
		r.Columns = append(r.Columns, name)
	}
	return true
}

// replacedValue reads a value of a REPLACE's row in a form that the guard can repeat when it compares the value with
// the table's keys.
func (p inserting) replacedValue(item lex.Range) render.ColumnValue {
	g := render.ColumnValue{At: p.Offset(item.Lo)}
	if item.Empty() || !p.isPlain(item) && !p.isNegative(item) {
		return g
	}
	g.Text = p.Source(item)
	p.EachBare(item, func(_ int32, number int) { g.Bare = number })
	return g
}
