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

// covered returns the table for a relation that matches a pattern; ok is false if no pattern matches. A pattern without
// a schema matches only tables that the session finds without a schema, because other schemas may belong to other
// programs.
func (l *look) covered(rel *relation) (t Table, ok bool) {
	name := l.db.same(rel.name)
	isNamed := func(t Table) bool {
		return l.db.same(t.Name) == name && (t.Schema == "" || l.db.same(t.Schema) == l.db.same(rel.schema))
	}
	if rel.kind == "view" || rel.kind == "materialized view" || rel.storage == "temporary" ||
		slices.Contains(sqltext.OwnTables, name) || !l.inCatalogue[name] ||
		slices.ContainsFunc(l.own, isNamed) {
		return t, false
	}
	for _, p := range l.patterns {
		of := p.Schema != "" && l.db.same(p.Schema) == l.db.same(rel.schema)
		if of || p.Schema == "" && (rel.visible || l.opts.Recognise) && !ok {
			t, ok = p, true
		}
		if of {
			break
		}
	}
	if !ok {
		return t, false
	}
	if !rel.visible {
		t.Schema = rel.schema
	}
	t.Name, t.Registered = rel.name, l.spell(t.Schema, rel.name)
	t.Resource = cmp.Or(t.Resource, t.Registered)
	return t, true
}

// patternTargets returns the tables that match the patterns among some tables, by schema and name. The result excludes
// relations without a separate column: foreign tables, virtual tables and partitions.
func patternTargets(ctx context.Context, db Database, ask Ask, tables []Table) (found []target, err error) {
	l := &look{ctx: ctx, ask: ask, db: &db, tables: tables}
	takePatterns(l)
	findRelations(l)
	for _, t := range l.targets {
		if t.Pattern && (t.rel.kind == "table" || t.rel.kind == "partitioned table") && !t.rel.partition {
			found = append(found, t)
		}
	}
	return found, l.err
}
