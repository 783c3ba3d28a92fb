// Package rules decides about each statement: the statement passes, is refused, or gets the insertions that guard it.
// Each rule has one file. [Registration.Finds] skips the texts without a table's name; [Registration.Read] plans the
// rest.
package rules

import (
	"slices"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/nonce"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// A Registration has the tables of one database, and plans the statements that write to these tables. It is safe for
// concurrent use.
type Registration struct {
	Dialect *render.Dialect // nil for a database that sqlfence can't guard; then there are no tables
	Nonce   string          // the random text that marks the errors of these guards
	index   *index
	search  *search // nil without a dialect
}

// New returns the registration of tables. The error reports all faults of the tables.
func New(d databases.Dialect, described []guard.Table) (*Registration, error) {
	says, err := render.Guarded(d)
	tables := render.NewTables(says, described)
	index := newIndex(tables)
	switch {
	case err == nil:
		index.targets = says.Grammar.Lex.Targets.Is()
		err = checkTables(tables, index)
	case len(tables) == 0:
		err = nil
	}
	if err == nil && says != nil {
		err = canSeal(d, says, described)
	}
	if err == nil && says != nil {
		err = claimsInOneFile(says, tables)
	}
	if err != nil {
		return nil, err
	}
	r := &Registration{Dialect: says, Nonce: nonce.New(), index: index}
	if says != nil {
		r.search = newSearch(says, tables)
	}
	return r, nil
}

// Finds reports whether Read must parse a text, because the text may contain the name of a registered table, or change
// what guards depend on.
func (r *Registration) Finds(query string) bool { return r.search.finds(query) }

// Speaking returns a copy of the registration with the guards of another dialect, says.
func (r *Registration) Speaking(says *render.Dialect) *Registration {
	with := *r
	with.Dialect = says
	return &with
}

// Unregistered returns the tables without a registration that a text writes to.
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
