package rewrite

// InTransaction reports whether a connection is in a transaction after a text
// of statements, which it executes in or outside of one: for those who begin
// and end transactions by SQL. Where that can't be seen, it says yes.
func InTransaction(d Dialect, query string, in bool) bool {
	toks, err := lex(d, query, nil)
	if err != nil {
		return true
	}
	r := reader{dialect: d, src: query, toks: toks}
	for ; r.nonEmpty(); r.i = r.stop {
		switch {
		case r.isWord(r.tok(), "create") && r.beginsAtomic():
			return true // the semicolons and the END are the body's
		case r.isWord(r.tok(), "begin", "start"):
			in = true
		case r.isWord(r.tok(), "rollback"):
			back := r.isWord(r.peek(1), "to") || r.isWord(r.peek(1), "work", "transaction") && r.isWord(r.peek(2), "to")
			in = in && back
		case r.isWord(r.tok(), "commit", "end", "abort"), r.isWord(r.tok(), "prepare") && r.isWord(r.peek(1), "transaction"):
			in = false
		}
		if n := r.stop - r.i; n > 2 && r.isWord(r.toks[r.stop-1], "chain") && !r.isWord(r.toks[r.stop-2], "no") {
			in = true
		}
	}
	return in
}

// beginsAtomic reports whether the region has BEGIN ATOMIC in it, with which the
// body of a function begins.
func (r *reader) beginsAtomic() bool {
	for i := r.i + 1; i+1 < r.stop; i++ {
		if r.isWord(r.toks[i], "begin") && r.isWord(r.toks[i+1], "atomic") {
			return true
		}
	}
	return false
}
