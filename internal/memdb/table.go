package memdb

import (
	"database/sql/driver"
	"maps"
	"slices"
)

// The tables of a database, by their names. Those that are committed are never
// changed; a writer changes a copy.
type tables map[string]*table

type table struct {
	name    string
	columns []column
	rows    [][]driver.Value // a row is replaced, not changed
	indexes []string         // their names
}

type column struct {
	name, typ                string
	sizes                    []int64 // in parentheses after the type
	primary, unique, notNull bool
	otherwise                driver.Value // where an INSERT gives no value
}

func (ts tables) clone() tables {
	copied := maps.Clone(ts)
	for name, t := range copied {
		copied[name] = &table{t.name, t.columns, slices.Clone(t.rows), t.indexes}
	}
	return copied
}

func (t *table) index(column string) int {
	for i, c := range t.columns {
		if c.name == column {
			return i
		}
	}
	panic(errorf("no such column: %s", column))
}

// fresh returns a new row with values in the columns named; in all if none are.
func (t *table) fresh(names []string, values []driver.Value) []driver.Value {
	row := make([]driver.Value, len(t.columns))
	var all []string
	for i, c := range t.columns {
		row[i] = c.otherwise
		all = append(all, c.name)
	}
	if names == nil {
		names = all
	}
	if len(names) != len(values) {
		panic(errorf("%d values for %d columns", len(values), len(names)))
	}
	for i, name := range names {
		row[t.index(name)] = values[i]
	}
	for i, c := range t.columns {
		if c.primary && c.typ == "integer" && row[i] == nil {
			row[i] = t.unused(i)
		}
	}
	return row
}

// unused returns a number that is higher than all of column i.
func (t *table) unused(i int) int64 {
	highest := int64(0)
	for _, row := range t.rows {
		if n, ok := row[i].(int64); ok {
			highest = max(highest, n)
		}
	}
	return highest + 1
}

// same returns where a row with the same values in the columns is, or -1.
func (t *table) same(row []driver.Value, columns []string) int {
	return slices.IndexFunc(t.rows, func(other []driver.Value) bool {
		for _, c := range columns {
			if i := t.index(c); row[i] == nil || compare(row[i], other[i]) != 0 {
				return false
			}
		}
		return true
	})
}

// put puts a row at i, which is after the last for a new one.
func (t *table) put(i int, row []driver.Value) {
	for at, c := range t.columns {
		if c.notNull && row[at] == nil {
			panic(errorf("NOT NULL constraint failed: %s.%s", t.name, c.name))
		}
		if !c.unique || row[at] == nil {
			continue
		}
		for n, other := range t.rows {
			if n != i && compare(row[at], other[at]) == 0 {
				panic(errorf("UNIQUE constraint failed: %s.%s", t.name, c.name))
			}
		}
	}
	if i == len(t.rows) {
		t.rows = append(t.rows, nil)
	}
	t.rows[i] = row
}

func (t *table) add(c column) {
	t.columns = append(slices.Clip(t.columns), c)
	for i, row := range t.rows {
		t.rows[i] = append(slices.Clip(row), c.otherwise)
	}
}
