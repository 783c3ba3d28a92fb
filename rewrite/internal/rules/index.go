package rules

import (
	"slices"
	"strings"
	"sync"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// An index finds the registered table with a name. The time doesn't depend on the number of tables.
type index struct {
	tables []render.Registered
	named  map[string]int        // index of the first table with a name
	exact  map[schemaAndName]int // index of the table with a schema and name
	again  map[string]bool       // names of more than one table
	folded func() map[string][]known

	patterns []int                  // indexes of the registrations with a pattern, such as shop.*
	exempt   map[schemaAndName]bool // tables with the rule Exempt, which no pattern covers

	targets bool // a schema's name may be a target: see [lex.Rules.Targets]

	ledger, locks bool // some table has the rule Ledger, or EditLock
}

type schemaAndName struct{ schema, name string }

// A known is the name of a registered table or of one of its columns, with the table's index.
type known struct {
	name  string
	table int
}

func newIndex(tables []render.Registered) *index {
	x := &index{tables: tables, named: make(map[string]int, len(tables)),
		exact: make(map[schemaAndName]int, len(tables)),
		again: make(map[string]bool)}
	x.folded = sync.OnceValue(x.fold)
	return x
}

// add adds table i.
func (x *index) add(i int, t *render.Registered) {
	x.ledger, x.locks = x.ledger || t.Ledger, x.locks || t.Locks()
	switch {
	case t.Pattern:
		x.patterns = append(x.patterns, i)
		return
	case t.Exempt:
		if x.exempt == nil {
			x.exempt = make(map[schemaAndName]bool)
		}
		x.exempt[schemaAndName{t.Schema, t.Name}] = true
		return
	}
	if _, ok := x.named[t.Name]; !ok {
		x.named[t.Name] = i
	} else {
		x.again[t.Name] = true
	}
	x.exact[schemaAndName{t.Schema, t.Name}] = i
}

// covering returns the index of the pattern that covers a table, by the table's normalised name, or -1.
func (x *index) covering(schema, name string) int {
	if len(x.patterns) == 0 || x.isExempt(schema, name) {
		return -1
	}
	pattern := -1
	for _, i := range x.patterns {
		switch s := x.tables[i].Schema; {
		case s != "" && s == schema:
			return i
		case s == "" || schema == "":
			pattern = i
		}
	}
	if of := x.targeted(schema); pattern < 0 && of != schema {
		return x.covering(of, name)
	}
	return pattern
}

// targeted returns the schema of a target.
func (x *index) targeted(schema string) string {
	if end := strings.IndexAny(schema, ":@"); end > 0 && x.targets {
		return schema[:end]
	}
	return schema
}

// isAmbiguous reports whether a normalised name without a schema may mean tables of several registrations, so that
// the guard can't know the tokens.
func (x *index) isAmbiguous(name string) bool {
	i, named := x.named[name]
	if named && x.tables[i].Schema == "" || x.isExempt("", name) {
		return false
	}
	n := 0
	if named {
		n++
	}
	for _, i := range x.patterns {
		if _, ok := x.exact[schemaAndName{x.tables[i].Schema, name}]; !ok {
			n++
		}
	}
	return n > 1 || x.again[name]
}

// guards reports whether a normalised name may mean a guarded table: a registered table, or one that a pattern covers.
func (x *index) guards(schema, name string) bool {
	return x.covering(schema, name) >= 0 || x.find(schema, name) >= 0
}

// isExempt reports whether a table has the rule Exempt. An exempt table with a schema doesn't exempt a name without a
// schema.
func (x *index) isExempt(schema, name string) bool {
	return x.exempt[schemaAndName{"", name}] || x.exempt[schemaAndName{schema, name}]
}

// overlaps reports whether one name in a statement could mean both t and a table that was added earlier.
func (x *index) overlaps(t *render.Registered) bool {
	if t.Pattern {
		return slices.ContainsFunc(x.patterns, func(i int) bool { return x.tables[i].Schema == t.Schema })
	}
	if x.isExempt(t.Schema, t.Name) {
		return true
	}
	if _, ok := x.named[t.Name]; !ok || t.Schema == "" {
		return ok
	}
	_, anywhere := x.exact[schemaAndName{"", t.Name}]
	_, there := x.exact[schemaAndName{t.Schema, t.Name}]
	return anywhere || there
}

// find returns the index of the registered table that a normalised name may mean, or -1. schema may be empty.
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
	if of := x.targeted(schema); of != schema {
		return x.find(of, name)
	}
	return -1
}

// mayBe returns the index of a table with a name, or a column's name, that differs from this name but may equal it
// after the database's locale has folded both; or -1. Indexes after the registered tables mean sqlfence's tables.
func (x *index) mayBe(name string) int {
	for _, k := range x.folded()[strings.Map(lex.FoldRune, name)] {
		if k.name != name {
			return k.table
		}
	}
	return -1
}

// fold returns the names of all registered tables and of their rules' columns, in the order of the tables. The map's
// key is the name's form that all locales share. Most databases never need the map.
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
		if t.Exempt {
			continue
		}
		add(t.Schema, i)
		add(t.Name, i)
		for _, column := range t.Owned {
			add(column, i)
		}
	}
	for i, own := range render.OwnTables {
		add(own, len(x.tables)+i)
	}
	return folded
}
