package verify

import (
	"cmp"
	"slices"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// expandPatterns puts the tables that patterns stand for in the place of the patterns.
func expandPatterns(l *look) error {
	var tables, patterns []Table
	named := make(map[string]bool) // the tables that have a Table of their own, in all schemas
	l.apart = make(map[relationName]bool)
	for _, t := range l.tables {
		switch {
		case t.Pattern:
			patterns = append(patterns, t)
			continue
		case t.Schema == "":
			named[l.db.same(t.Name)] = true
		default:
			l.apart[relationName{l.db.same(t.Schema), l.db.same(t.Name)}] = true
		}
		if !t.Exempt {
			tables = append(tables, t)
		}
	}
	l.tables = tables
	if len(patterns) == 0 {
		return nil
	}
	if _, err := l.db.relations(l, []string{sqltext.LedgerTable}); err != nil { // learns SQLite's schemas, too
		return err
	}
	names, err := l.rows("the tables", l.db.tableNames(l))
	if err != nil {
		return err
	}
	l.covered = make(map[string]bool)
	for _, row := range names {
		name := l.db.same(row[0])
		if named[name] || slices.Contains(sqltext.OwnTables, name) {
			continue
		}
		named[name] = true
		for _, t := range patterns {
			if l.apart[relationName{l.db.same(t.Schema), name}] {
				continue
			}
			t.Name, t.Registered = row[0], l.spell(t.Schema, row[0])
			t.Resource = cmp.Or(t.Resource, t.Registered)
			l.covered[t.Registered] = true
			l.tables = append(l.tables, t)
		}
	}
	return nil
}
