package memdb

import (
	"database/sql/driver"
	"io"
	"reflect"
	"strings"
	"time"
)

// An outcome is the outcome of a script.
type outcome struct {
	results []*result
	err     error // of the statement after them
	form    Form
}

// result is the last statement's.
func (o outcome) result() (driver.Result, error) {
	if o.err != nil {
		return nil, o.err
	}
	if len(o.results) == 0 {
		return changes{}, nil
	}
	last := o.results[len(o.results)-1]
	if last.err != nil {
		return nil, last.err
	}
	return changes{last.lastID, last.affected}, nil
}

type changes struct{ lastID, affected int64 }

func (c changes) LastInsertId() (int64, error) { return c.lastID, nil }
func (c changes) RowsAffected() (int64, error) { return c.affected, nil }

// rows are those of all statements; an error is the first statement's.
func (o outcome) rows() (driver.Rows, error) {
	if len(o.results) == 0 {
		if o.err != nil {
			return nil, o.err
		}
		o.results = []*result{{}}
	}
	bare := &bareRows{outcome: o}
	switch o.form {
	case Bare, Old:
		return bare, nil
	case Contexts, Skips:
		return typedRows{bare}, nil
	}
	return allRows{typedRows{bare}}, nil
}

// bareRows have what all rows have.
type bareRows struct {
	outcome
	set, row int
}

func (r *bareRows) Close() error { return nil }

func (r *bareRows) Columns() []string {
	names := make([]string, len(r.results[r.set].columns))
	for i, c := range r.results[r.set].columns {
		names[i] = c.name
	}
	return names
}

func (r *bareRows) Next(dest []driver.Value) error {
	set := r.results[r.set]
	if r.row < len(set.rows) {
		copy(dest, set.rows[r.row])
		r.row++
		return nil
	}
	if set.err != nil {
		return set.err
	}
	return io.EOF
}

// typedRows know their columns.
type typedRows struct{ *bareRows }

func (r typedRows) column(i int) column { return r.results[r.set].columns[i] }

func (r typedRows) ColumnTypeDatabaseTypeName(i int) string { return strings.ToUpper(r.column(i).typ) }

func (r typedRows) ColumnTypeNullable(i int) (nullable, ok bool) {
	c := r.column(i)
	return !c.notNull, c.typ != ""
}

func (r typedRows) ColumnTypeLength(i int) (int64, bool) {
	if c := r.column(i); len(c.sizes) == 1 {
		return c.sizes[0], true
	}
	return 0, false
}

func (r typedRows) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	if c := r.column(i); len(c.sizes) == 2 {
		return c.sizes[0], c.sizes[1], true
	}
	return 0, 0, false
}

func (r typedRows) ColumnTypeScanType(i int) reflect.Type {
	switch r.column(i).typ {
	case "integer", "bigint":
		return reflect.TypeFor[int64]()
	case "double precision", "decimal":
		return reflect.TypeFor[float64]()
	case "varchar", "text":
		return reflect.TypeFor[string]()
	case "timestamp":
		return reflect.TypeFor[time.Time]()
	}
	return reflect.TypeFor[any]()
}

// allRows have several result sets.
type allRows struct{ typedRows }

func (r allRows) HasNextResultSet() bool { return r.set+1 < len(r.results) || r.err != nil }

func (r allRows) NextResultSet() error {
	if r.set+1 == len(r.results) {
		if r.err != nil {
			return r.err
		}
		return io.EOF
	}
	r.set, r.row = r.set+1, 0
	return nil
}
