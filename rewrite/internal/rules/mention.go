package rules

import (
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
	"slices"
)

// registered returns the index of the table that a normalised name may mean, or -1.
// Those of sqlfence's own follow the others. schema may be empty.
func (p *planner) registered(schema, name string) int {
	if table := p.index.find(schema, name); table >= 0 {
		return table
	}
	return p.own(name)
}

// own returns the index of a table of sqlfence's own, or -1.
func (p *planner) own(name string) int {
	if own := slices.Index(render.OwnTables[:], name); own >= 0 {
		return len(p.Tables) + own
	}
	return -1
}

// isOwn reports whether an index is that of a table of sqlfence's own.
func (p *planner) isOwn(table int) bool {
	return len(p.Tables) <= table && table < len(p.Tables)+len(render.OwnTables)
}

// mention finds the name of a registered table among some tokens. It returns the table's index and
// the place, or -1.
func (p *planner) mention(s lex.Span) (table int, at int32) {
	table, at = p.named(s)
	if table < 0 && len(p.index.patterns) > 0 {
		return p.index.patterns[0], s.Lo
	}
	return table, at
}

// named is mention without patterns.
func (p *planner) named(s lex.Span) (table int, at int32) {
	return p.Find(s, func(name string) int { return p.registered("", name) })
}

// mentionGuarded is mention without sqlfence's own tables.
func (p *planner) mentionGuarded(s lex.Span) (table int, at int32) {
	if len(p.index.patterns) > 0 {
		return p.index.patterns[0], s.Lo
	}
	return p.Find(s, func(name string) int { return p.index.find("", name) })
}

// refuseOwn refuses a statement if its tokens include the name of a table of sqlfence's own.
func (p *planner) refuseOwn(s lex.Span) bool {
	table, at := p.Find(s, p.own)
	return table < 0 || p.refuse(table, at, advise.OwnTable)
}

// foldsClearly refuses a text with a word that, by the database's locale, may or
// may not be a name that the rules know.
func (p *planner) foldsClearly() bool {
	table, at := p.FoldsByLocale(p.index.mayBe)
	return table < 0 || p.refuse(table, at,
		advise.WordFoldsByLocale)
}
