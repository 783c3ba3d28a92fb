package catalogue

import (
	"cmp"
	"context"
	"slices"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// takePatterns removes patterns and exempt tables from the tables to check.
func takePatterns(l *look) {
	var tables []Table
	for _, t := range l.tables {
		switch {
		case t.Pattern:
			l.patterns = append(l.patterns, t)
			continue
		case !t.Exempt:
			tables = append(tables, t)
		}
		l.own = append(l.own, t)
	}
	l.tables = tables
	names := l.db.tableNames
	if l.opts.Recognise {
		l.patterns, names = []Table{recognised}, l.db.fencedNames
	}
	if len(l.patterns) == 0 {
		return
	}
	l.db.relations(l, []string{sqltext.LedgerTable}) // learns SQLite's schemas
	l.inCatalogue = make(map[string]bool)
	for _, row := range l.rows("the tables", names(l)) {
		l.inCatalogue[l.db.same(row[0])] = true
	}
}

// covered returns the table for a relation that matches a pattern; ok is false if no pattern matches.
func (l *look) covered(rel *relation) (t Table, ok bool) {
	i := l.patternFor(rel)
	if i < 0 || !l.mayBeCovered(rel) {
		return t, false
	}
	t = l.patterns[i]
	if !rel.visible {
		t.Schema = rel.schema
	}
	t.Name, t.Registered = rel.name, l.spell(t.Schema, rel.name)
	t.Resource = cmp.Or(t.Resource, t.Registered)
	return t, true
}

// mayBeCovered reports whether a registered pattern, such as "shop.*", can apply to a relation: the catalogue has it as
// a permanent table, and it is neither registered itself nor one of sqlfence's tables.
func (l *look) mayBeCovered(rel *relation) bool {
	name := l.db.same(rel.name)
	return rel.kind != "view" && rel.kind != "materialized view" && rel.storage != "temporary" &&
		!slices.Contains(sqltext.OwnTables, name) && l.inCatalogue[name] &&
		!slices.ContainsFunc(l.own, func(t Table) bool { return l.names(&t, rel.schema, rel.name) })
}

// patternFor returns the index of the registered pattern for the relation's schema, such as "shop.*", or else of the
// first pattern without a schema, such as "*"; -1 for none. A pattern without a schema matches only tables that the
// session finds without a schema, because other schemas may belong to other programs.
func (l *look) patternFor(rel *relation) int {
	i := slices.IndexFunc(l.patterns, func(p Table) bool {
		return p.Schema != "" && l.db.same(p.Schema) == l.db.same(rel.schema)
	})
	if i < 0 && (rel.visible || l.opts.Recognise) {
		i = slices.IndexFunc(l.patterns, func(p Table) bool { return p.Schema == "" })
	}
	return i
}

// patternTargets returns the tables that match a pattern in the list tables, by schema and name. It excludes relations
// that get no separate fence column: foreign tables, virtual tables, and partitions, which inherit the column.
func patternTargets(ctx context.Context, db Database, ask Query, tables []Table) (found []target, err error) {
	l := &look{ctx: ctx, query: ask, db: &db, tables: tables}
	takePatterns(l)
	findRelations(l)
	for _, t := range l.targets {
		if t.Pattern && (t.rel.kind == "table" || t.rel.kind == "partitioned table") && !t.rel.partition {
			found = append(found, t)
		}
	}
	return found, l.err
}
