package rewrite

import (
	"slices"
	"strconv"
	"strings"
)

// A reader walks over the tokens of a statement and notes the edits that guard
// it. A method that finds something it doesn't understand says so through
// refuse, and returns false; nothing is guessed.
type reader struct {
	dialect Dialect
	src     string
	toks    []token
	tables  []Table
	i       int // the current token
	stop    int // the end of the region that is being read
	depth   int // how many brackets it is inside of

	plan    *planned // nil until a registered table is written to
	edits   []edit
	written []int // distinct registered tables written to, as indexes in tables
	targets []Target
	refused *Refusal
	inputs  inputs

	inOneWay  bool // see source
	versioned bool // the context carries a serial
	explained bool // it is the statement of an EXPLAIN

	// Where statements of the ledger can be put into the one that is being read
	// (PostgreSQL): at its beginning, or behind its WITH.
	ledgerAt   int32
	ledgerWith bool
}

// A tableName is the name of a table in a statement, normalised.
type tableName struct {
	schema, name string
	first        int // its first token
}

// tok returns the current token, or the end.
func (r *reader) tok() token { return r.peek(0) }

// peek returns the token n places ahead, or the end.
func (r *reader) peek(n int) token {
	return r.toks[min(r.i+n, len(r.toks)-1)]
}

// isWord reports whether t is one of the words, unquoted, in any case.
func (r *reader) isWord(t token, words ...string) bool {
	if t.kind != word {
		return false
	}
	s := r.src[t.start:t.end]
	for _, w := range words {
		if equalFold(s, w) {
			return true
		}
	}
	return false
}

func isPunct(t token, c byte) bool { return t.kind == punct && t.char == c }

// accept steps over the words if they come next, in this order.
func (r *reader) accept(words ...string) bool {
	for n, w := range words {
		if !r.isWord(r.peek(n), w) {
			return false
		}
	}
	r.i += len(words)
	return true
}

// step moves n tokens on, at most to the end of the region.
func (r *reader) step(n int) { r.i = min(r.i+n, r.stop) }

func (r *reader) acceptPunct(c byte) bool {
	if !isPunct(r.tok(), c) {
		return false
	}
	r.i++
	return true
}

// skip returns the index after token i, and after its partner if it opens a bracket.
func (r *reader) skip(i int) int {
	if t := r.toks[min(i, len(r.toks)-1)]; isPunct(t, '(') || isPunct(t, '[') {
		return int(t.mate) + 1
	}
	return i + 1
}

// name reads a table's name of up to three parts.
func (r *reader) name() (tableName, bool) {
	n := tableName{first: r.i}
	for parts := 1; parts <= 3; parts++ {
		part, ok := normal(r.dialect, r.src, r.tok())
		if !ok || part == "" {
			return n, false
		}
		n.schema, n.name = n.name, part
		r.i++
		if !isPunct(r.tok(), '.') {
			return n, true
		}
		r.i++
	}
	return n, false
}

// registered returns the index of the table that n may mean, or -1. Those of
// sqlfence's own follow the others.
func (r *reader) registered(n tableName) int {
	for i := range r.tables {
		t := &r.tables[i]
		if t.Name == n.name && (t.Schema == "" || n.schema == "" || t.Schema == n.schema) {
			return i
		}
	}
	if own := slices.Index(ownTables[:], n.name); own >= 0 {
		return len(r.tables) + own
	}
	return -1
}

// isOwn reports whether an index is that of a table of sqlfence's own.
func (r *reader) isOwn(table int) bool { return table >= len(r.tables) }

// mention returns the index of a registered table whose name stands among
// tokens lo to hi, and where; or -1.
func (r *reader) mention(lo, hi int) (table, at int) {
	return r.find(lo, hi, func(name string) int {
		return r.registered(tableName{name: name})
	})
}

// mentionGuarded is mention without sqlfence's own tables.
func (r *reader) mentionGuarded(lo, hi int) (table, at int) {
	return r.find(lo, hi, func(name string) int {
		return slices.IndexFunc(r.tables, func(t Table) bool { return t.Name == name })
	})
}

// mentionOwn is mention of sqlfence's own tables alone.
func (r *reader) mentionOwn(lo, hi int) (table, at int) {
	return r.find(lo, hi, func(name string) int {
		if own := slices.Index(ownTables[:], name); own >= 0 {
			return len(r.tables) + own
		}
		return -1
	})
}

// find returns the first index that is of a name among tokens lo to hi, and where
// that stands; or -1.
func (r *reader) find(lo, hi int, of func(name string) int) (table, at int) {
	for i := lo; i < hi; i++ {
		t := r.toks[i]
		if t.kind != word && t.kind != quoted && (t.kind != text || r.dialect != SQLite) {
			continue
		}
		name, ok := normal(r.dialect, r.src, t)
		if !ok {
			continue
		}
		if table := of(name); table >= 0 {
			return table, i
		}
	}
	return -1, -1
}

// refuse notes why the statement can't be guarded; the first reason stays.
func (r *reader) refuse(table, at int, reason string) bool {
	if r.refused == nil {
		r.refused = &Refusal{Table: table, Reason: reason, Offset: int(r.toks[at].start)}
		if r.isOwn(table) {
			r.refused.Table, r.refused.Own = -1, ownTables[table-len(r.tables)]
		}
	}
	return false
}

// until moves to the next of the words that stands as a keyword outside of
// brackets and of CASE, or to the end of the region, and returns where that is.
// It refuses the statement where a word could be a keyword or a name.
func (r *reader) until(words ...string) int {
	var p phrase
	for ; r.i < r.stop; r.i = r.skip(r.i) {
		keyword := p.step(r, r.i)
		if p.doubtful {
			r.doubt(r.i)
		}
		if keyword && p.cases == 0 && r.isWord(r.tok(), words...) && r.begins(r.i) {
			return r.i
		}
	}
	r.i = r.stop
	if p.cases > 0 {
		r.doubt(r.stop)
	}
	return r.i
}

// begins reports whether the keyword at i begins what until looks for, where
// others begin with it, too.
func (r *reader) begins(i int) bool {
	next, third := r.toks[i+1], r.toks[min(i+2, len(r.toks)-1)]
	switch t := r.toks[i]; {
	case r.isWord(t, "on"): // else a join's
		return r.isWord(next, "conflict") && (isPunct(third, '(') || r.isWord(third, "do", "on"))
	case r.isWord(t, "when"): // a MERGE's
		return r.isWord(next, "matched") || r.isWord(next, "not") && r.isWord(third, "matched")
	}
	return true
}

// doubt refuses the statement for the word at i.
func (r *reader) doubt(i int) {
	table := -1
	if n := len(r.written); n > 0 {
		table = r.written[n-1]
	}
	r.refuse(table, i, "a word before this may be a keyword or a name, or a CASE has no END; put names that are keywords in quotes")
}

// hiddenWrite returns the index of a word among tokens lo to hi that may begin
// a write inside of another statement, or -1. It rather finds one too many.
//
// Such a write stands in brackets, behind the brackets of a WITH, or behind the
// name that ends the SEARCH or CYCLE clause of one.
func (r *reader) hiddenWrite(lo, hi int) int {
	for i := lo; i < hi; i++ {
		t := r.toks[i]
		if t.kind != word || !r.isWord(t, "insert", "update", "delete", "merge", "replace") {
			continue
		}
		begins := i == 0 || isPunct(r.toks[i-1], '(') || isPunct(r.toks[i-1], ')') ||
			i > 1 && r.isWord(r.toks[i-2], "set", "using")
		if !begins {
			continue
		}
		switch next := r.toks[i+1]; {
		case r.isWord(t, "update"):
			name := next.kind == quoted || next.kind == text && r.dialect == SQLite || next.kind == word &&
				!r.isWord(next, "from", "where", "group", "having", "union", "intersect", "except", "order", "limit", "as",
					"and", "or", "is", "in", "not", "like", "ilike", "isnull", "notnull", "then", "when", "else", "end", "on", "using", "returning")
			if name { // else a label
				return i
			}
		case r.isWord(t, "delete"):
			if r.isWord(next, "from") {
				return i
			}
		case r.isWord(next, "into", "or"):
			return i
		}
	}
	return -1
}

func (r *reader) insertText(at int32, s string) {
	r.edits = append(r.edits, edit{at: at, text: s})
}

func (r *reader) insert(at int32, o op, t *target, rules ruleSet, s string) {
	r.edits = append(r.edits, edit{at: at, op: o, target: int32(t.index), rules: rules, text: s})
}

// maxDepth is how deeply statements may be nested.
const maxDepth = 100

// within reads the inside of the bracket that is next, by read, and steps
// behind it.
func (r *reader) within(read func() bool) bool {
	if r.depth == maxDepth {
		return r.refuse(-1, r.i, "it is nested too deeply to be read")
	}
	mate, stop := int(r.tok().mate), r.stop
	r.i, r.stop, r.depth = r.i+1, mate, r.depth+1
	ok := read()
	r.i, r.stop, r.depth = mate+1, stop, r.depth-1
	return ok
}

// inputs is what is known of the placeholders of a statement.
type inputs struct {
	count int  // the highest number
	named bool // SQLite: some have a name, so that their numbers depend on their order
}

// readInputs numbers the placeholders. It writes SQLite's bare ? with its
// number, so that placeholders can be added and copied without shifting it.
func (r *reader) readInputs() {
	var names map[string]int
	for i := range r.toks {
		t := r.toks[i]
		if t.kind != param {
			continue
		}
		s := r.src[t.start:t.end]
		switch n, err := strconv.Atoi(s[1:]); {
		case s[0] == '?' && len(s) == 1:
			r.inputs.count++
			r.insertText(t.end, strconv.Itoa(r.inputs.count))
			r.toks[i].mate = int32(r.inputs.count)
		case err == nil && (s[0] == '?' || r.dialect == Postgres):
			r.inputs.count = max(r.inputs.count, n)
			r.toks[i].mate = int32(n)
		default:
			r.inputs.named = true
			if names == nil {
				names = make(map[string]int)
			}
			if names[s] == 0 {
				r.inputs.count++
				names[s] = r.inputs.count
			}
			r.toks[i].mate = int32(names[s])
		}
	}
}

// source returns the text of tokens lo to hi, bare placeholders numbered.
func (r *reader) source(lo, hi int) string {
	from, to := r.toks[lo].start, r.toks[hi-1].end
	bare := func(t token) bool { return t.kind == param && t.end-t.start == 1 }
	if r.dialect != SQLite || !slices.ContainsFunc(r.toks[lo:hi], bare) {
		return r.src[from:to]
	}
	var b strings.Builder
	for _, t := range r.toks[lo:hi] {
		if bare(t) {
			b.WriteString(r.src[from:t.end])
			b.WriteString(strconv.Itoa(int(t.mate)))
			from = t.end
		}
	}
	b.WriteString(r.src[from:to])
	return b.String()
}
