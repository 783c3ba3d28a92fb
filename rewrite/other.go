package rewrite

// other decides about a statement that isn't a write of rows by its first words.
func (r *reader) other(begin int) bool {
	table, at := r.mention(begin, r.stop)
	switch {
	case r.dialect == Postgres && r.isWord(r.tok(), "do"):
		return r.do()
	case r.dialect == Postgres && table >= 0 && r.isWord(r.tok(), "call", "prepare"):
		return r.refuse(table, at, codeNames)
	case r.dialect == Postgres && r.isWord(r.tok(), "call"):
		// The procedure may run a string.
		for i := begin; i < r.stop; i++ {
			if t := r.toks[i]; t.kind == text && !r.codeNamesNothing(i, r.src[t.start:t.end]) {
				return false
			}
		}
		return true
	case table < 0, r.changesNoRows():
		return true
	case r.addsPart():
		return r.refuse(table, at, "writes to a table in the same inheritance tree would reach rows of a registered one without its name; run it under Bypass, and register both")
	case r.isRead():
		return r.readsOnly(begin, begin+1)
	case !r.refuseOwn(begin, r.stop):
		return false
	case r.isDefinition():
		return r.readsOnly(begin, begin+1)
	}
	return r.refuse(table, at, "this kind of statement on a registered table can't be guarded; write UPDATE, DELETE or INSERT, or run it under Bypass")
}

// changesNoRows holds for statements that change no rows whatever they name.
func (r *reader) changesNoRows() bool {
	switch {
	case r.isWord(r.tok(), "begin", "start", "commit", "end", "rollback", "savepoint", "release",
		"analyze", "vacuum", "reindex"):
		return true
	case r.dialect == SQLite:
		// EXPLAIN never runs the statement in SQLite.
		return r.isWord(r.tok(), "explain", "pragma", "attach", "detach")
	}
	return r.isWord(r.tok(), "abort", "set", "reset", "show", "listen", "unlisten", "notify",
		"fetch", "move", "close", "deallocate", "discard", "execute",
		"lock", "cluster", "refresh", "comment", "grant", "revoke")
}

// isRead holds for statements that only read, unless a write hides in them.
func (r *reader) isRead() bool {
	i := r.i
	for isPunct(r.toks[i], '(') {
		i++
	}
	switch t := r.toks[i]; {
	case r.isWord(t, "select", "values", "table", "with"):
		return true
	case r.dialect != Postgres:
		return false
	case r.isWord(t, "copy"):
		return r.isCopyTo()
	default:
		return r.isWord(t, "declare")
	}
}

// isCopyTo holds for COPY name [(columns)] TO and COPY (query) TO.
func (r *reader) isCopyTo() bool {
	begin := r.i
	defer func() { r.i = begin }()
	r.i++
	if !isPunct(r.tok(), '(') {
		if _, ok := r.name(); !ok {
			return false
		}
	}
	if isPunct(r.tok(), '(') {
		r.i = r.skip(r.i)
	}
	return r.isWord(r.tok(), "to")
}

// isDefinition holds for what creates something beside the tables that exist
// and changes none of their rows then or, by itself, later.
func (r *reader) isDefinition() bool {
	if !r.isWord(r.tok(), "create") {
		return false
	}
	i := r.i + 1
	for r.isWord(r.toks[i], "or", "replace", "global", "local", "temp", "temporary", "unlogged", "unique",
		"recursive", "materialized", "virtual") {
		i++
	}
	return r.isWord(r.toks[i], "table", "index", "view", "function", "procedure", "sequence", "type", "domain",
		"statistics", "policy", "publication")
}

// addsPart holds for a CREATE TABLE that makes a table a part of another: then a
// write to the one may reach rows of the other.
//
//	CREATE TABLE name PARTITION OF parent ...
//	CREATE TABLE name (...) INHERITS (parent, ...)
func (r *reader) addsPart() bool {
	if r.dialect != Postgres || !r.isWord(r.tok(), "create") {
		return false
	}
	for i := r.i; i < r.stop; i = r.skip(i) {
		if r.isWord(r.toks[i], "partition") && r.isWord(r.toks[i+1], "of") ||
			r.isWord(r.toks[i], "inherits") && isPunct(r.toks[i+1], '(') {
			return true
		}
	}
	return false
}
