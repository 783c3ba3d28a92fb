package rules

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// Unregistered returns the tables that a text writes rows of and that have no registration.
func (r *Registration) Unregistered(query string) (names []string) {
	if r.Dialect == nil || len(query) > maxRead {
		return nil
	}
	text, err := read.Open(r.Dialect.Grammar, query, lex.EscapesUnknown)
	if err != nil {
		return nil
	}
	defer text.Close()
	add := func(schema, name string) {
		if r.index.guards(schema, name) || r.index.isExempt(schema, name) || render.IsOwnTable(name) {
			return
		}
		if t := (&guard.Table{Schema: schema, Name: name}).FullName(); !slices.Contains(names, t) {
			names = append(names, t)
		}
	}
	for text.Next() {
		for i := range text.Parts {
			switch part := &text.Parts[i]; {
			case part.Kind == read.WritePart:
				w := &text.Writes[part.Write]
				add(w.Target.Schema, w.Target.Name)
			case part.Kind == read.OtherPart && part.Class == read.Unknown:
				tables, _ := text.Bulk(part)
				for _, t := range tables {
					add(t.Schema, t.Name)
				}
			}
		}
	}
	return names
}
