package rules

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// A target is the table of the write that is being planned.
type target struct {
	table     int // index of the registered table
	index     int // index among the plan's targets
	rules     *render.Registered
	qualifier string // the name before the table's columns in the guard
	presents  bool   // the write must present the rows' claims
	rowWrite
}

// A writing plans one write to the target.
type writing struct{ *planner }

// write plans a write.
func (p writing) write(w *read.Write) bool {
	if p.isDefining(w.Target.Schema, w.Target.Name) {
		return p.refuse(-1, w.Target.At, advise.DefinesTables)
	}
	table := p.registered(w.Target.Schema, w.Target.Name)
	switch {
	case p.isOwn(table):
		return p.refuse(table, w.Target.At, advise.OwnTable)
	case w.Target.Schema == "" && p.index.isAmbiguous(w.Target.Name):
		return p.refuse(max(table, p.index.covering("", w.Target.Name)), w.Target.At, advise.AmbiguousTable)
	case table < 0:
		var ok bool
		if table, ok = p.cover(&w.Target); !ok {
			return false
		}
	}
	if table >= 0 {
		p.addTarget(table, &w.Target)
	}
	switch {
	case w.Failure.Reason == advise.ExpectedAlias:
		return p.refuse(table, w.Failure.At, w.Failure.Reason)
	case table < 0:
		return true
	case p.Wrapped && p.Word(p.Lo, "prepare"):
		return p.refuseTarget(w.At, advise.AfterPrepare)
	case p.Wrapped:
		return p.refuseTarget(w.At, advise.AfterSetStatement)
	case p.Tabular:
		return p.refuseTarget(w.At, advise.AfterAnalyze)
	}
	if !p.readsNoCount(w) || w.Joined && !p.joined(w) {
		return false
	}
	p.plan.Rows = p.plan.Rows || w.Returning > 0 || p.explained
	p.plan.Ignores = p.plan.Ignores || w.Or == read.OrIgnore
	ok := p.rows(w)
	p.to().Free = p.isFree(w)
	return ok
}

// rows plans the changes that a write makes to its rows.
func (p writing) rows(w *read.Write) bool {
	switch w.Verb {
	case read.Update:
		return p.update(w)
	case read.Delete:
		return p.delete(w)
	case read.Merge:
		return inserting{p}.merge(w)
	}
	return inserting{p}.insertInto(w)
}

// isFree reports whether a planned write needs no token in the context.
func (p writing) isFree(w *read.Write) bool {
	if p.target.rules.Claim != "" {
		return !p.target.presents
	}
	updates := slices.ContainsFunc(w.Conflicts, func(c read.Conflict) bool { return c.Update })
	return p.target.rules.UnfencedInserts && !p.to().Changes && !replaces(w) && !updates
}

// addTarget adds the table of a write to the plan's targets.
func (p *planner) addTarget(table int, t *read.Target) {
	if p.plan == nil {
		p.plan = new(render.Planned)
		p.written, p.targets = p.plan.Table[:0], p.plan.Target[:0]
		p.NumberInputs()
	}
	in := slices.Index(p.written, table)
	if in < 0 {
		in = len(p.written)
		p.written = append(p.written, table)
	}
	rules, schema := p.RulesOf(table), ""
	qualifier := rules.Quoted.Name
	if t.Alias != "" {
		qualifier = p.Dialect.Quote(t.Alias)
	}
	if t.Schema != "" {
		schema = p.Dialect.Quote(t.Schema) + "."
	}
	p.target = target{table: table, index: len(p.targets), rules: rules, qualifier: qualifier}
	p.targets = append(p.targets, render.Written{
		Target: guard.Target{Table: in, Schema: t.Schema, Name: t.Name}, Qualifier: p.spelled(t, qualifier),
		Prefix: schema})
	p.plan.Serial = p.plan.Serial || p.target.rules.Serial != ""
	p.plan.Tokenless = p.plan.Tokenless || p.target.rules.Tokenless()
	p.plan.Locks = p.plan.Locks || p.target.rules.Locks()
}

// spelled returns the qualifier of a table's columns in the spelling of the statement, because the database may
// distinguish names by the case of letters. In PostgreSQL the qualifier includes the statement's schema, because the
// statement may join a table of the same name in another schema.
func (p *planner) spelled(t *read.Target, qualifier string) string {
	at, name := t.NameAt, t.Name
	if t.Alias != "" {
		at, name = t.AliasAt, t.Alias
	}
	text := p.TokenText(at)
	switch {
	case p.Dialect.Grammar.Lex.Catalogs.Is() && t.Schema != "" && t.Alias == "":
		return p.Dialect.Quote(t.Schema) + "." + qualifier
	case !p.Dialect.Grammar.Lex.FoldsQuoted.Is() || text == name:
	case p.Tokens[at].Kind == lex.Word:
		return p.Dialect.Quote(text)
	case text[0] == '`':
		return text
	}
	return qualifier
}

// to returns the plan's entry for the target.
func (p *planner) to() *render.Written { return &p.targets[p.target.index] }

// changes records that the write affects existing rows.
func (p writing) changes() { p.to().Changes = true }

// readable refuses a write that couldn't be read. The planner calls it last, so that an earlier problem in the text is
// reported first.
func (p writing) readable(w *read.Write) bool {
	f := w.Failure
	switch f.Reason {
	case advise.Readable:
		return true
	case advise.TooDeep:
		return p.refuse(-1, f.At, f.Reason)
	}
	return p.refuseTarget(f.At, f.Reason)
}

// replaces reports whether the write deletes the rows that conflict with its rows in any unique index: SQLite's
// REPLACE.
func replaces(w *read.Write) bool { return w.Verb == read.Replace || w.Or == read.OrReplace }

// mayReplace reports whether a REPLACE may delete conflicting rows without a check of each: one token covers the whole
// table, and the rules store nothing in the rows.
func (p writing) mayReplace() bool { return p.target.rules.Ledger && len(p.target.rules.Owned) == 0 }

// orAbort inserts OR ABORT, which is SQLite's default, to override an ON CONFLICT clause of the table's constraints.
// With ON CONFLICT REPLACE a write could delete other rows, whatever their tokens, even if the write needs no token.
func (p writing) orAbort(w *read.Write) {
	stores := len(p.target.rules.Owned) > 0 || p.target.rules.UnfencedInserts && w.Verb == read.Insert
	if w.Or == read.OrNone && !replaces(w) && p.Dialect.Grammar.OrClause.Is() && stores {
		p.insert(p.After(w.At+1), render.OpAbort, 0, "")
		p.plan.Aborts = true
	}
}
