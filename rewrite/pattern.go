package rewrite

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

// A pattern is a table that stands for all tables of a schema, or of all schemas, that aren't registered by
// their own names. A written one gets the pattern's rules while its statement is planned, and belongs to the plan
// alone: nothing is registered, so that a table of a later release is guarded from its first write on.

// A tableList has the tables of a plan by their indexes. Between these two are those of sqlfence's own.
type tableList struct {
	tables  []registered // registered
	covered []registered // written ones that a pattern stands for
}

// cover returns the index of a written table that a pattern stands for, or -1. Covered tables follow
// sqlfence's own. ok is false if its name can't be read.
func (p *planner) cover(t *read.Target) (table int, ok bool) {
	pattern := p.index.covering(t.Schema, t.Name)
	if pattern < 0 {
		return -1, true
	}
	if _, unclear := p.dialect.grammar.Lex.FoldedByLocale(p.Src, &p.Tokens[t.NameAt]); unclear {
		return -1, p.refuse(pattern, t.NameAt, "how its name is read, and so which tokens it takes, depends on the "+
			"database's encoding; register the table by its name")
	}
	c := p.tables[pattern]
	c.Pattern, c.pattern, c.Name, c.quoted.name = false, pattern, t.Name, p.dialect.Quote(t.Name)
	i := slices.IndexFunc(p.covered, func(o registered) bool { return o.Name == c.Name && o.Schema == c.Schema })
	if i < 0 {
		i = len(p.covered)
		p.covered = append(p.covered, c)
	}
	return len(p.tables) + len(ownTables) + i, true
}

// rulesOf returns the table with an index that isn't one of sqlfence's own.
func (l *tableList) rulesOf(table int) *registered {
	if table < len(l.tables) {
		return &l.tables[table]
	}
	return &l.covered[table-len(l.tables)-len(ownTables)]
}

// Covered returns the plan's table i and the index of the pattern that stands for it; ok is false for a table that
// is registered by its name.
func (p *Plan) Covered(i int) (t *guard.Table, pattern int, ok bool) {
	if p.Tables[i] < len(p.source.tables) {
		return nil, -1, false
	}
	rules := p.rules(i)
	return &rules.Table, rules.pattern, true
}

// Refused returns a plan for the same tables that refuses the statement.
func (p *Plan) Refused(reason string) *Plan {
	why := guard.Refusal{Table: -1, Offset: -1, Reason: reason}
	switch {
	case p.Verdict == guard.Refuse:
		why.Table, why.Name = p.Refusal.Table, p.Refusal.Name
	case len(p.Tables) > 0:
		why.Table = p.Tables[0]
		if t, pattern, ok := p.Covered(0); ok {
			why.Table, why.Name = pattern, t.FullName()
		}
	}
	return &Plan{Verdict: guard.Refuse, Refusal: why, Tables: p.Tables, source: source{tableList: p.source.tableList}}
}

// writeWords are words. Code that writes rows by its own text has one of them.
var writeWords = []string{"insert", "update", "delete", "merge", "replace", "truncate", "copy", "load", "execute",
	"prepare"}

// mayWrite reports whether some code has one of them, be it as a part of another word, or could have
// it by an escape; or whether it may make a view, which could be found in a table's place.
func mayWrite(code string) bool {
	if strings.ContainsRune(code, '\\') {
		return true
	}
	for i := range len(code) {
		if lex.HasPrefixFold(code[i:], "view") && isWhole(code, i, i+len("view")) ||
			slices.ContainsFunc(writeWords, func(w string) bool { return lex.HasPrefixFold(code[i:], w) }) {
			return true
		}
	}
	return false
}
