package rewrite

import (
	"strings"
	"sync"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// An index finds tables by their names, as fast among many as among few.
type index struct {
	tables []Table
	named  map[string]int        // the first table of a name
	exact  map[schemaAndName]int // a table of each schema and name
	folded func() map[string][]known

	ledger, locks bool // whether a table has the rule
}

type schemaAndName struct{ schema, name string }

// known is a name that the rules know, of the table with the index or of a column of its.
type known struct {
	name  string
	table int
}

func newIndex(tables int) *index {
	x := &index{named: make(map[string]int, tables), exact: make(map[schemaAndName]int, tables)}
	x.folded = sync.OnceValue(x.fold)
	return x
}

// add adds table i.
func (x *index) add(i int, t *Table) {
	if _, ok := x.named[t.Name]; !ok {
		x.named[t.Name] = i
	}
	x.exact[schemaAndName{t.Schema, t.Name}] = i
}

// overlaps reports whether one name could mean both a table and one that was added.
func (x *index) overlaps(t *Table) bool {
	if _, ok := x.named[t.Name]; !ok || t.Schema == "" {
		return ok
	}
	_, anywhere := x.exact[schemaAndName{"", t.Name}]
	_, there := x.exact[schemaAndName{t.Schema, t.Name}]
	return anywhere || there
}

// find returns the index of the table that a normalised name may mean, or -1. schema may
// be empty.
func (x *index) find(schema, name string) int {
	i, ok := x.named[name]
	if !ok {
		return -1
	}
	if s := x.tables[i].Schema; s == "" || schema == "" || s == schema {
		return i
	}
	if i, ok = x.exact[schemaAndName{schema, name}]; ok {
		return i
	}
	return -1
}

// mayBe returns the index of a table, or of one of sqlfence's own behind them, that knows
// a name which another one may be, by the database's locale; or -1.
func (x *index) mayBe(name string) int {
	for _, k := range x.folded()[strings.Map(lex.FoldRune, name)] {
		if k.name != name {
			return k.table
		}
	}
	return -1
}

// fold returns all that the rules know, by what is the same in all locales, in the order
// of the tables. Most databases never ask for it.
func (x *index) fold() map[string][]known {
	folded := make(map[string][]known, len(x.tables))
	add := func(name string, table int) {
		key := strings.Map(lex.FoldRune, name)
		for _, k := range folded[key] {
			if k.name == name {
				return
			}
		}
		if name != "" {
			folded[key] = append(folded[key], known{name, table})
		}
	}
	for i := range x.tables {
		t := &x.tables[i]
		add(t.Schema, i)
		add(t.Name, i)
		for _, column := range t.columns {
			add(column, i)
		}
	}
	for i, own := range ownTables {
		add(own, len(x.tables)+i)
	}
	return folded
}
