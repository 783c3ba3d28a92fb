package rules

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// A pattern covers all tables of a schema, or of all schemas, that aren't registered by name. A written table gets the
// pattern's rules while its statement is planned. The covered table belongs only to the plan and isn't registered, so
// that a table of a later release of the application is guarded from its first write on.

// cover returns the index of a written table that a pattern covers, or -1. The indexes of covered tables follow those
// of sqlfence's tables. ok is false if the table's name can't be read.
func (p *planner) cover(t *read.Target) (table int, ok bool) {
	pattern := p.index.covering(t.Schema, t.Name)
	if pattern < 0 {
		return -1, true
	}
	if _, unclear := p.Dialect.Grammar.Lex.FoldedByLocale(p.Src, &p.Tokens[t.NameAt]); unclear {
		return -1, p.refuse(pattern, t.NameAt, advise.NameFoldsByLocale)
	}
	c := p.Tables[pattern]
	c.Pattern, c.CoveredBy, c.Name, c.Quoted.Name = false, pattern, t.Name, p.Dialect.Quote(t.Name)
	i := slices.IndexFunc(p.Covered, func(o render.Registered) bool { return o.Name == c.Name && o.Schema == c.Schema })
	if i < 0 {
		i = len(p.Covered)
		p.Covered = append(p.Covered, c)
	}
	return len(p.Tables) + len(render.OwnTables) + i, true
}

// writeWords are keywords. Any code that writes rows through SQL contains at least one of these keywords.
var writeWords = []string{"insert", "update", "delete", "merge", "replace", "truncate", "copy", "load", "execute",
	"prepare"}

// mayWrite reports whether code contains one of writeWords, even inside a longer word, or could spell a keyword with an
// escape. It also reports code that may create a view, because a statement could find the view in a table's place.
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
