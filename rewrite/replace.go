package rewrite

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

// REPLACE deletes each row that has a unique key of a new one, whatever its mark. So the mark of a new row has to
// be read before it is written, and reading it checks the rows that are in the way, as a DELETE would. The table's
// unique keys say which these are, and no statement shows them: the caller asks the database for them. The guard
// compares the table's shape, which the keys belong to, before anything else.

// A replacement is what a REPLACE gives the columns of its rows.
type replacement struct {
	table   session.Name // normalised
	columns []string
	rows    [][]given
}

// A given is the value of a column.
type given struct {
	text string // empty where it may be another one when it is read again
	bare int    // the number of a placeholder that has none; else 0
	at   int32  // where it stands
}

// size returns about how many bytes a replacement takes.
func (r *replacement) size() int {
	if r == nil {
		return 0
	}
	return numberBytes*(16+2*len(r.columns)+3*len(r.rows)) + givenBytes*len(r.columns)*len(r.rows)
}

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

// Replaces returns the table of a write that deletes the rows which have a unique key of a new one, and nil for other
// plans. Such a plan is to be rendered [Plan.Knowing] the keys; without them its guard raises always.
func (p *Plan) Replaces() *session.Name {
	if p.source.replacement == nil {
		return nil
	}
	return &p.source.replacement.table
}

// Knowing returns the plan for the unique keys of the table that it Replaces rows of.
func (p *Plan) Knowing(keys *session.UniqueKeys) *Plan {
	known := *p
	known.source.unique, known.source.plan = keys, &known
	return &known
}

// isNegative reports whether a value is a number behind a minus.
func (t values) isNegative(item lex.Span) bool {
	return item.Hi-item.Lo == 2 && t.Tokens[item.Lo].Is('-') && t.isNumber(item.Lo+1)
}

// checkReplaced refuses a REPLACE where the table's unique keys don't tell which rows it deletes.
func (p *Plan) checkReplaced() error {
	r, keys := p.source.replacement, p.source.unique
	if r == nil || keys == nil {
		return nil
	}
	refuse := func(offset int32, why string) error {
		why = "which rows OR REPLACE deletes can't be told: " + why + "; write INSERT ... "
		return &guard.Refusal{Table: p.Tables[0], Offset: int(offset), Reason: why + p.source.dialect.upsert(r.columns)}
	}
	if keys.Odd != "" {
		return refuse(-1, keys.Odd)
	}
	for _, column := range slices.Concat(keys.Keys...) {
		name := lex.Fold(column.Name)
		n := slices.Index(r.columns, name)
		if name == p.rules(0).FenceColumn {
			return refuse(-1, "the fence column is unique")
		}
		for _, row := range r.rows {
			if n >= 0 && row[n].text == "" {
				return refuse(row[n].at, "the unique column "+name+" gets a value that is neither an argument nor a "+
					"constant")
			}
		}
	}
	return nil
}

// replacedMark writes the mark of a row of a REPLACE, behind the check of the rows that it deletes. Where the unique
// keys aren't known, or have changed, it raises.
func (w *writer) replacedMark(e *edit) {
	keys := w.unique
	if keys == nil {
		keys = new(session.UniqueKeys) // no table has this shape
	}
	if e.row == 0 {
		table := &w.replacement.table
		w.write("CASE WHEN ", w.dialect.unique.Shape(table.Schema, w.dialect.Text(table.Table)), " = ")
		w.b.Text(keys.Shape)
		w.write(" THEN ")
	}
	w.write("CASE WHEN COALESCE((SELECT min(")
	w.deletes = true
	w.check(allRules &^ setOf(ruleLedger))
	w.write(")")
	w.inTheWay(keys, e)
	w.write("), ")
	w.bool(true)
	w.write(") THEN ")
	w.newMark(e)
	w.write(" END")
	if e.row == 0 {
		w.write(" ELSE ")
		w.raise(guard.Reshaped, w.table, w.dialect.Text(""))
		w.write(" END")
	}
}

// newMark writes the token of a new row, or 0 for none.
func (w *writer) newMark(e *edit) {
	if token := w.rowsToken(e); token != guard.NoToken {
		w.mark(token)
	} else {
		w.write("0")
	}
}

// inTheWay writes the FROM and WHERE of the rows that a row of a REPLACE deletes.
func (w *writer) inTheWay(keys *session.UniqueKeys, e *edit) {
	w.write(" FROM ", w.target.schema, w.rules.quoted.name, " AS ", w.target.qualifier, " WHERE ")
	separator := ""
	for _, key := range keys.Keys {
		if values := w.givenKey(key, e.row); values != nil {
			w.write(separator)
			w.hasKey(key, values)
			separator = " OR "
		}
	}
	if separator == "" {
		w.bool(false)
	}
}

// givenKey returns the values of a key's columns in a row; nil where the key isn't in the way of any row: it has NULL,
// or is a number that the database chooses.
func (w *writer) givenKey(key []session.KeyColumn, row int32) []given {
	r, values := w.replacement, make([]given, len(key))
	for i, column := range key {
		if n := slices.Index(r.columns, lex.Fold(column.Name)); n >= 0 {
			values[i] = r.rows[row][n]
		} else if values[i].text = column.Default; column.Default == "" {
			return nil
		}
	}
	return values
}

// hasKey writes the condition of an existing row with a key. OR REPLACE puts the default in the place of a NULL that
// the column doesn't take.
func (w *writer) hasKey(key []session.KeyColumn, values []given) {
	for i, column := range key {
		if i > 0 {
			w.write(" AND ")
		} else {
			w.write("(")
		}
		w.write(w.target.qualifier, ".", w.dialect.Quote(column.Name), " = ")
		replacesNull := column.NotNull && column.Default != ""
		if replacesNull {
			w.write("COALESCE(")
		}
		w.write(values[i].text)
		if values[i].bare > 0 {
			w.b.Int(int64(w.numbers.own(values[i].bare)))
		}
		if replacesNull {
			w.write(", ", column.Default, ")")
		}
		if column.Collation != "" {
			w.write(" COLLATE ", w.dialect.Quote(column.Collation))
		}
	}
	w.write(")")
}
