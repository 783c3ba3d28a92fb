package rewrite

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
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
