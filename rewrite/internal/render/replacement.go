package render

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
)

// REPLACE deletes each row that shares a unique key with a new row, whatever the deleted row's token. So the fence
// column of a new row gets an expression that first reads the conflicting rows, and checks them as a DELETE would. The
// statement doesn't show the table's unique keys, so the caller queries the database for the keys. If the definitions
// of the table and its indexes have changed since then, the guard throws an error before anything else.

// A Replacement holds the values that a REPLACE gives the columns of its rows.
type Replacement struct {
	Table   session.Name // normalised
	Columns []string
	Rows    [][]ColumnValue
}

// A ColumnValue is the value that a REPLACE gives a column of a row.
type ColumnValue struct {
	Text string // the value's SQL; empty if the value may differ when it is evaluated again
	Bare int    // the number of a bare placeholder; 0 for any other value
	At   int32  // the value's offset in the statement
}

// size returns about how many bytes a replacement takes.
func (r *Replacement) size() int {
	if r == nil {
		return 0
	}
	return numberBytes*(16+2*len(r.Columns)+3*len(r.Rows)) + valueBytes*len(r.Columns)*len(r.Rows)
}

// Replaces returns the table of a write that deletes rows which share a unique key with a new row, and nil for other
// plans. Such a plan must be rendered by [Plan.Knowing] the keys; without the keys its guard always throws an error.
func (p *Plan) Replaces() *session.Name {
	if p.Source.Replacement == nil {
		return nil
	}
	return &p.Source.Replacement.Table
}

// Knowing returns the plan with the unique keys of the table that Replaces returns.
func (p *Plan) Knowing(keys *session.UniqueKeys) *Plan {
	known := *p
	known.Source.unique, known.Source.Plan = keys, &known
	return &known
}

// checkReplaced refuses a REPLACE if the table's unique keys don't determine the deleted rows.
func (p *Plan) checkReplaced() error {
	r, keys := p.Source.Replacement, p.Source.unique
	if r == nil || keys == nil {
		return nil
	}
	refuse := func(offset int32, why string) error {
		return &guard.Refusal{Table: p.Tables[0], Offset: int(offset),
			Reason: advise.ReplaceUnknown.Sentence(why, p.Source.Dialect.Upsert(r.Columns))}
	}
	if keys.Unusable != "" {
		return refuse(-1, keys.Unusable)
	}
	for _, column := range slices.Concat(keys.Keys...) {
		name := lex.Fold(column.Name)
		n := slices.Index(r.Columns, name)
		if name == p.rules(0).FenceColumn {
			return refuse(-1, advise.FenceIsUnique.Sentence())
		}
		for _, row := range r.Rows {
			if n >= 0 && row[n].Text == "" {
				return refuse(row[n].At, advise.UniqueValueUnknown.Sentence(name))
			}
		}
	}
	return nil
}

// A replacing writes the additional SQL of a REPLACE.
type replacing struct{ *writer }

// replacedToken writes the token of a row of a REPLACE, after the check of the rows that the REPLACE deletes. If the
// unique keys are unknown, or have changed, the expression throws an error.
func (w replacing) replacedToken(e *Fragment) {
	keys := w.unique
	if keys == nil {
		keys = new(session.UniqueKeys) // no table has this shape
	}
	if e.Row == 0 {
		table := &w.Replacement.Table
		w.write("CASE WHEN ", w.Dialect.Unique.Shape(table.Schema, w.Dialect.Text(table.Table)), " = ")
		w.b.Text(keys.Shape)
		w.write(" THEN ")
	}
	w.write("CASE WHEN COALESCE((SELECT min(")
	w.deletes = true
	w.check(AllRules &^ SetOf(RuleLedger))
	w.write(")")
	w.inTheWay(keys, e)
	w.write("), ")
	w.bool(true)
	w.write(") THEN ")
	w.newToken(e)
	w.write(" END")
	if e.Row == 0 {
		w.write(" ELSE ")
		w.throw(guard.Reshaped, w.table, w.Dialect.Text(""))
		w.write(" END")
	}
}

// newToken writes the token of a new row, or 0 if no token covers the row.
func (w replacing) newToken(e *Fragment) {
	if token := w.rowsToken(e); token != guard.NoToken {
		w.storedToken(token)
	} else {
		w.write("0")
	}
}

// inTheWay writes the FROM and WHERE of a query for the existing rows that a row of a REPLACE deletes.
func (w replacing) inTheWay(keys *session.UniqueKeys, e *Fragment) {
	w.write(" FROM ", w.target.Prefix, w.rules.Quoted.Name, " AS ", w.target.Qualifier, " WHERE ")
	separator := ""
	for _, key := range keys.Keys {
		if values := w.keyValues(key, e.Row); values != nil {
			w.write(separator)
			w.hasKey(key, values)
			separator = " OR "
		}
	}
	if separator == "" {
		w.bool(false)
	}
}

// keyValues returns the values of a key's columns in a row. The result is nil if the key can't conflict with a row: it
// has NULL, or is a number that the database chooses.
func (w replacing) keyValues(key []session.KeyColumn, row int32) []ColumnValue {
	r, values := w.Replacement, make([]ColumnValue, len(key))
	for i, column := range key {
		if n := slices.Index(r.Columns, lex.Fold(column.Name)); n >= 0 {
			values[i] = r.Rows[row][n]
		} else if values[i].Text = column.Default; column.Default == "" {
			return nil
		}
	}
	return values
}

// hasKey writes the condition of an existing row with a key. OR REPLACE replaces a NULL with the default if the column
// doesn't allow NULL.
func (w replacing) hasKey(key []session.KeyColumn, values []ColumnValue) {
	for i, column := range key {
		if i > 0 {
			w.write(" AND ")
		} else {
			w.write("(")
		}
		w.write(w.target.Qualifier, ".", w.Dialect.Quote(column.Name), " = ")
		replacesNull := column.NotNull && column.Default != ""
		if replacesNull {
			w.write("COALESCE(")
		}
		w.write(values[i].Text)
		if values[i].Bare > 0 {
			w.b.Int(int64(w.numbers.own(values[i].Bare)))
		}
		if replacesNull {
			w.write(", ", column.Default, ")")
		}
		if column.Collation != "" {
			w.write(" COLLATE ", w.Dialect.Quote(column.Collation))
		}
	}
	w.write(")")
}
