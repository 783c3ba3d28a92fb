package rewrite

// A target is the table that a statement writes to.
type target struct {
	table     int    // index of the registered table
	qualifier string // what its columns are qualified with in the guard
	schema    string // as the statement names it, quoted and with its dot; else empty
	verb      token  // where the statement begins
}

// update reads UPDATE after its first word.
//
//	UPDATE [OR x] [ONLY] name [*] [[AS] alias] [INDEXED BY i] SET list
//	[FROM ...] [WHERE ...] [RETURNING ...] [ORDER BY ...] [LIMIT ...]
func (r *reader) update(stop int) (int, bool) {
	verb := r.i - 1
	or := r.orClause()
	t, ok := r.target(verb, stop, "set")
	if !ok || t.table < 0 {
		return -1, ok && (r.isWord(r.tok(), "set") || r.unreadable(verb, stop))
	}
	rules := &r.tables[t.table]
	if or != "" {
		return -1, r.refuse(t.table, verb+1, "OR "+or+" skips or replaces rows silently; write UPDATE without it")
	}
	if !r.accept("set") {
		return -1, r.refuse(t.table, r.i, "expected SET here")
	}
	setEnd, ok := r.assignments(t.table, "from", "where", "returning", "order", "limit")
	if !ok {
		return -1, false
	}
	if rules.Fence != "" {
		r.insert(setEnd, opMark, t.qualifier)
	}
	if r.accept("from") {
		r.until("where", "returning", "order", "limit")
	}
	return t.table, r.where(t, stop, rules.Key != "" && rules.Fence == "")
}

// delete reads DELETE after its first word.
//
//	DELETE FROM [ONLY] name [*] [[AS] alias] [INDEXED BY i]
//	[USING ...] [WHERE ...] [RETURNING ...] [ORDER BY ...] [LIMIT ...]
func (r *reader) delete(stop int) (int, bool) {
	verb := r.i - 1
	if !r.accept("from") {
		return -1, r.unreadable(verb, stop)
	}
	t, ok := r.target(verb, stop, "using", "where", "returning", "order", "limit")
	if !ok || t.table < 0 {
		return -1, ok && (r.i == stop || r.isWord(r.tok(), "using", "where", "returning", "order", "limit") || r.unreadable(verb, stop))
	}
	if r.accept("using") {
		r.until("where", "returning", "order", "limit")
	}
	rules := &r.tables[t.table]
	return t.table, r.where(t, stop, rules.Key != "" || rules.Fence != "")
}

// orClause steps over SQLite's OR x and returns x, unless it is the default.
func (r *reader) orClause() string {
	if r.dialect != SQLite || !r.accept("or") {
		return ""
	}
	x := r.src[r.tok().start:r.tok().end]
	r.i++
	if equalFold(x, "abort") || equalFold(x, "rollback") {
		return ""
	}
	return x
}

// target reads the name and alias of the table written to. For one that isn't
// registered it returns table -1; then the statement passes, or is refused if
// it may write to a registered one elsewhere. The words are those that may
// follow; a bare one is not an alias.
func (r *reader) target(verb, stop int, follow ...string) (target, bool) {
	t := target{table: -1, verb: r.toks[verb]}
	bracket := false
	if r.dialect == Postgres && r.isWord(r.tok(), "only") && !r.isWord(r.peek(1), follow...) {
		r.i++
		bracket = r.acceptPunct('(')
	}
	n, ok := r.name()
	if !ok || bracket && !r.acceptPunct(')') {
		return t, r.unreadable(verb, stop)
	}
	t.table = r.registered(n)
	if w := r.hiddenWrite(verb+1, stop); w >= 0 {
		table, _ := r.mention(verb, stop)
		if table >= 0 {
			return t, r.refuse(table, w, "a write inside of another statement can't be guarded; send it by itself")
		}
	}
	if t.table >= 0 {
		r.readInputs()
	}
	t.qualifier = quoteName(r.dialect, n.name)
	if n.schema != "" {
		t.schema = quoteName(r.dialect, n.schema) + "."
	}
	if r.dialect == Postgres {
		r.acceptPunct('*')
	}
	if !r.alias(&t, follow) {
		return t, false
	}
	if r.dialect == SQLite {
		if r.accept("indexed", "by") {
			r.i++
		} else {
			r.accept("not", "indexed")
		}
	}
	return t, true
}

// alias reads [AS] alias. AS may only be left out in PostgreSQL, and only where
// the words that may follow are known.
func (r *reader) alias(t *target, follow []string) bool {
	next := r.tok()
	bare := r.dialect == Postgres && follow != nil &&
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

// unreadable decides about a write whose target can't be read.
func (r *reader) unreadable(verb, stop int) bool {
	if table, at := r.mention(verb, stop); table >= 0 {
		return r.refuse(table, at, "this statement can't be read; write it as plain UPDATE, DELETE or INSERT")
	}
	return true
}

// assignments reads a SET list up to one of the words that may follow it, and
// returns where it ends. It refuses one that assigns the fence or the key.
func (r *reader) assignments(table int, follow ...string) (setEnd int32, ok bool) {
	rules := &r.tables[table]
	lo := r.i
	hi := r.until(follow...)
	for i := lo; i < hi; {
		// One item: column ..., or (column, column) = ...
		names := r.toks[i : i+1]
		if isPunct(r.toks[i], '(') {
			names = r.toks[i+1 : r.toks[i].mate]
		}
		for _, t := range names {
			column, ok := normal(r.dialect, r.src, t)
			if !ok {
				continue
			}
			if column == rules.Fence && rules.Fence != "" {
				return 0, r.refuse(table, i, "it assigns the fence column, which only sqlfence writes; leave the column out")
			}
			if column == rules.Key && rules.Key != "" {
				return 0, r.refuse(table, i, "it assigns the key column, which would move the row out of its token's scope; leave the column out")
			}
		}
		for i < hi && !isPunct(r.toks[i], ',') {
			i = r.skip(i)
		}
		if i++; i == hi {
			return 0, r.refuse(table, hi, "an assignment is missing here")
		}
	}
	if lo == hi {
		return 0, r.refuse(table, hi, "an assignment is missing here")
	}
	return r.toks[hi-1].end, true
}
