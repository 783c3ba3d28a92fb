package rewrite

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/rewrite/internal/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

// registered returns the index of the table that a normalised name may mean, or -1.
// Those of sqlfence's own follow the others. schema may be empty.
func (p *planner) registered(schema, name string) int {
	if table := indexOf(p.tables, schema, name); table >= 0 {
		return table
	}
	return p.own(name)
}

// indexOf returns the index of the table that a normalised name may mean, or -1.
func indexOf(tables []Table, schema, name string) int {
	for i := range tables {
		t := &tables[i]
		if t.Name == name && (t.Schema == "" || schema == "" || t.Schema == schema) {
			return i
		}
	}
	return -1
}

// own returns the index of a table of sqlfence's own, or -1.
func (p *planner) own(name string) int {
	if own := slices.Index(ownTables[:], name); own >= 0 {
		return len(p.tables) + own
	}
	return -1
}

// isOwn reports whether an index is that of a table of sqlfence's own.
func (p *planner) isOwn(table int) bool { return table >= len(p.tables) }

// mention returns the index of a registered table whose name stands among some
// tokens, and where; or -1.
func (p *planner) mention(s read.Span) (table int, at int32) {
	return p.Find(s, func(name string) int { return p.registered("", name) })
}

// mentionGuarded is mention without sqlfence's own tables.
func (p *planner) mentionGuarded(s read.Span) (table int, at int32) {
	return p.Find(s, func(name string) int { return indexOf(p.tables, "", name) })
}

// refuseOwn refuses a statement among whose tokens the name of a table of sqlfence's own
// stands.
func (p *planner) refuseOwn(s read.Span) bool {
	table, at := p.Find(s, p.own)
	return table < 0 || p.refuse(table, at, ownReason)
}

// namedIn returns a registered table, or one of sqlfence's own, whose name stands in
// some code, be it as a part of another word; or -1.
func (p *planner) namedIn(code string) int {
	for i := range len(code) {
		for k := range p.tables {
			if lex.HasPrefixFold(code[i:], start(p.tables[k].Name)) {
				return k
			}
		}
		for k, own := range ownTables {
			if lex.HasPrefixFold(code[i:], own) {
				return len(p.tables) + k
			}
		}
	}
	return -1
}

// start returns the part of a table's name that stands in a text however it is
// quoted: in its quotes a name's own are doubled, so up to the first of these.
func start(name string) string {
	if q := strings.IndexAny(name, "\"`'"); q >= 0 {
		return name[:q+1]
	}
	return name
}

// foldsClearly refuses a text with a word that, by the database's locale, may or
// may not be a name that the rules know.
func (p *planner) foldsClearly() bool {
	table, at := p.FoldsByLocale(func(name string) int {
		mayBe := func(known string) bool { return lex.MayBe(name, known) }
		for k := range p.tables {
			t := &p.tables[k]
			if mayBe(t.Schema) || mayBe(t.Name) || slices.ContainsFunc(t.columns, mayBe) {
				return k
			}
		}
		if own := slices.IndexFunc(ownTables[:], mayBe); own >= 0 {
			return len(p.tables) + own
		}
		return -1
	})
	return table < 0 || p.refuse(table, at,
		"depending on the database's encoding this word may name a guarded table or column; write it in double quotes")
}
