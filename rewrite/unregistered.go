package rewrite

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/fault"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

// Unregistered returns the tables that a text writes rows of and that have no registration: none by their names, none
// by a pattern, and that aren't exempt. They are as the database reads their names, with their schemas where the text
// has these, in the order of the text. It reads the text at each call, apart from all plans, and nothing may be
// decided by it: what can't be read has no tables.
func (r *Rewriter) Unregistered(query string) (names []string) {
	if r.dialect == nil || len(query) > maxRead {
		return nil
	}
	defer func() {
		if !fault.Crashes && recover() != nil {
			names = nil
		}
	}()
	text, err := read.Open(r.dialect.grammar, query, lex.EscapesUnknown)
	if err != nil {
		return nil
	}
	defer text.Close()
	add := func(schema, name string) {
		if r.index.guards(schema, name) || r.index.isExempt(schema, name) || isOwnTable(name) {
			return
		}
		if t := (&Table{Schema: schema, Name: name}).fullName(); !slices.Contains(names, t) {
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
