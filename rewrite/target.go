package rewrite

import "slices"

// A target is the table that a statement, or a part of one, writes to.
type target struct {
	table     int // index of the registered table, or -1
	index     int // among the statement's targets
	rules     *Table
	qualifier string // what its columns are qualified with in the guard
	schema    string // as the statement names it, quoted and with its dot; else empty
	rowWrite         // of what is being read
}

// target reads the name and alias of the table written to. For one that isn't
// registered it returns table -1; then the statement passes, or is refused if
// it may write to a registered one elsewhere. The words are those that may
// follow; a bare one is not an alias.
func (r *reader) target(verb int, follow ...string) (*target, bool) {
	t := &target{table: -1}
	bracket := false
	if r.dialect == Postgres && r.isWord(r.tok(), "only") && !r.isWord(r.peek(1), follow...) {
		r.i++
		bracket = r.acceptPunct('(')
	}
	n, ok := r.name()
	if !ok || bracket && !r.acceptPunct(')') {
		return t, r.unreadable(verb)
	}
	if !r.readsOnly(verb, r.i) {
		return t, false
	}
	if r.dialect == SQLite && isSchemaTable(n.name) && len(r.tables) > 0 {
		return t, r.refuse(-1, n.first, "a row of this table is a table's definition, so that one could be put in another's place; run it under Bypass")
	}
	t.qualifier = quoteName(r.dialect, n.name)
	if n.schema != "" {
		t.schema = quoteName(r.dialect, n.schema) + "."
	}
	switch t.table = r.registered(n); {
	case r.isOwn(t.table):
		return t, r.refuse(t.table, n.first, ownReason)
	case t.table >= 0:
		r.addTarget(t)
	}
	if r.dialect == Postgres {
		r.acceptPunct('*')
	}
	if !r.alias(t, follow) {
		return t, false
	}
	if t.table >= 0 {
		r.targets[t.index].qualifier = t.qualifier
	}
	if r.dialect == SQLite {
		if r.accept("indexed", "by") {
			r.step(1)
		} else {
			r.accept("not", "indexed")
		}
	}
	return t, true
}

// isSchemaTable reports whether SQLite keeps the definitions of tables in this one,
// which can be written under PRAGMA writable_schema.
//
// Source: https://sqlite.org/schematab.html.
func isSchemaTable(name string) bool {
	switch name {
	case "sqlite_schema", "sqlite_master", "sqlite_temp_schema", "sqlite_temp_master":
		return true
	}
	return false
}

// addTarget notes a write to a registered table.
func (r *reader) addTarget(t *target) {
	if r.plan == nil {
		r.plan = new(planned)
		r.written, r.targets, r.edits = r.plan.table[:0], r.plan.target[:0], r.plan.edits[:0]
		r.readInputs()
	}
	t.rules = &r.tables[t.table]
	table := slices.Index(r.written, t.table)
	if table < 0 {
		table = len(r.written)
		r.written = append(r.written, t.table)
	}
	t.index = len(r.targets)
	r.targets = append(r.targets, Target{Table: table, schema: t.schema})
	r.plan.Serial = r.plan.Serial || t.rules.Serial != ""
	r.plan.Locks = r.plan.Locks || t.rules.locks()
}

// alias reads [AS] alias. AS may only be left out in PostgreSQL, and only where
// the words that may follow are known.
func (r *reader) alias(t *target, follow []string) bool {
	next := r.tok()
	bare := r.dialect == Postgres && follow != nil && r.i < r.stop &&
		(next.kind == quoted || next.kind == word && !r.isWord(next, follow...))
	if !r.accept("as") && !bare {
		return true
	}
	alias, ok := normal(r.dialect, r.src, r.tok())
	if !ok {
		return r.refuse(t.table, r.i, "expected an alias here")
	}
	t.qualifier = quoteName(r.dialect, alias)
	r.i++
	return true
}

// orClause steps over SQLite's OR x behind a verb, and returns x if it is one
// that can't be guarded, and whether there is one. ABORT is the default, ROLLBACK
// undoes more; IGNORE leaves out rows that break a constraint, and an error that
// a guard raises isn't one of those.
func (r *reader) orClause() (unguardable string, found bool) {
	if r.dialect != SQLite || !r.accept("or") {
		return "", false
	}
	x := r.src[r.tok().start:r.tok().end]
	ok := r.isWord(r.tok(), "abort", "rollback", "ignore")
	r.step(1)
	if ok {
		x = ""
	}
	return x, true
}

// orAbort says behind a verb what the default is. A table of SQLite's may be
// declared with UNIQUE ... ON CONFLICT REPLACE, and then a write would delete
// other rows, whatever their marks; what the statement says takes precedence.
func (r *reader) orAbort(t *target, verb int) {
	if r.dialect == SQLite && (t.rules.FenceColumn != "" || t.rules.Key != "" || t.rules.Serial != "" || t.rules.locks()) {
		r.insert(r.toks[verb].end, opAbort, t, 0, "")
		r.plan.Aborts = true
	}
}
