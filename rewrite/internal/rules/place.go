package rules

import (
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
	"slices"
	"strings"
)

// keepsPlaces refuses the definition of what statements, or guards, could find in the place of a table: of a view with
// the name of one with columns that guards read, whatever the schema, as sessions choose where names are looked for;
// and of what is temporary with the name of one with claims.
//
//	CREATE [...] [TEMP | TEMPORARY] [...] {TABLE | VIEW} [IF NOT EXISTS] [schema.]name
func (p ground) keepsPlaces(part *read.Part) bool {
	temporary := false
	for i := part.Lo; i < part.Hi; i++ {
		temporary = temporary || p.Word(i, "temp", "temporary")
		if !p.Word(i, "table", "view") {
			continue
		}
		at := i + 1
		if p.Word(at, "if") {
			at = min(at+3, part.Hi)
		}
		schema, name, _, ok := p.Dialect.Grammar.Lex.QualifiedName(p.Src, p.Tokens, int(at))
		if !ok {
			continue
		}
		temporary = temporary || schema == "temp" || strings.HasPrefix(schema, "pg_temp")
		return (!p.Word(i, "view") || p.keepsViews(name, at)) && (!temporary || p.keepsClaims(name, at))
	}
	return true
}

// keepsViews refuses a view with the name of a table with columns that guards read.
func (p ground) keepsViews(name string, at int32) bool {
	_, alone := p.index.exact[schemaAndName{"", name}] // no pattern stands for it
	alone = alone || p.index.isExempt("", name)
	table := slices.IndexFunc(p.Tables, func(t render.Registered) bool {
		return len(t.Owned) > 0 && (t.Pattern && !alone || !t.Pattern && t.Name == name)
	})
	return table < 0 || p.refuse(table, at, advise.ViewInPlace)
}
