package rewrite

import "strings"

// A phrase follows expressions, lists of them and the clauses around them, token
// by token and outside of brackets, and tells keywords from names: many words are
// both. Which one a word is depends on whether an operand is wanted where it
// stands, or has ended there.
//
// SQLite's parser takes a word of its list %fallback ID (src/parse.y) for a name
// where the keyword can't stand: a column may be called end, and it is the END of
// a CASE only behind an operand. PostgreSQL (src/include/parser/kwlist.h) reserves
// the words that begin a clause, and takes none of these for a label without AS;
// CASE, WHEN, THEN, ELSE and END it takes for one behind an operand.
//
// Where a word could be either, doubtful is set, and the statement can't be guarded.
type phrase struct {
	place    place
	cases    int  // how many CASE are open
	opened   bool // the token before is a CASE
	prefix   bool // the bracket that comes next is no operand
	doubtful bool
}

// place is where in an expression a phrase is.
type place uint8

const (
	wanted   place = iota // an operand has to come
	complete              // an operand has ended
	labelled              // behind an operand came a word that is no operator
)

// role is what a word is where it stands as a keyword.
type role uint8

const (
	operand  role = iota // none of these: mostly a name
	clause               // it begins a clause, or a part of one
	operator             // it stands between two operands
	postfix              // it stands behind an operand
	prefix               // it stands before an operand
	head                 // SELECT: before the first operand
	opening              // CASE
	between              // WHEN, THEN, ELSE
	closing              // END
)

// A meaning is what is known of a word.
type meaning struct {
	role role
	name dialectSet // where an operand is wanted, these take it for a name
}

// dialectSet is a set of dialectSet.
type dialectSet uint8

const (
	inPostgres dialectSet = 1 << iota
	inSQLite
)

var meanings = map[string]meaning{
	"from": {role: clause}, "where": {role: clause}, "group": {role: clause}, "having": {role: clause},
	"union": {role: clause}, "intersect": {role: clause}, "except": {role: clause}, "order": {role: clause},
	"limit": {role: clause}, "on": {role: clause}, "returning": {role: clause}, "into": {role: clause},
	"using": {role: clause}, "join": {role: clause},
	"window": {clause, inSQLite}, "offset": {clause, inSQLite}, "fetch": {clause, inSQLite}, "for": {clause, inSQLite},
	"with": {clause, inSQLite}, "do": {clause, inSQLite},

	"and": {role: operator}, "or": {role: operator}, "in": {role: operator}, "is": {role: operator},
	"collate": {role: operator}, "between": {operator, inPostgres}, "escape": {operator, inPostgres},
	"like": {operator, inSQLite}, "glob": {operator, inSQLite | inPostgres}, "regexp": {operator, inSQLite | inPostgres},
	"match": {operator, inSQLite | inPostgres}, "ilike": {operator, inSQLite}, "to": {operator, inSQLite},
	"overlaps": {operator, inSQLite}, "isnull": {role: postfix}, "notnull": {role: postfix},

	"not": {role: prefix}, "distinct": {role: prefix}, "all": {role: prefix}, "symmetric": {prefix, inSQLite},
	"asymmetric": {prefix, inSQLite}, "lateral": {prefix, inSQLite}, "only": {prefix, inSQLite}, "variadic": {prefix, inSQLite},
	"select": {role: head},

	"case": {role: opening}, "when": {role: between}, "then": {role: between}, "else": {role: between},
	"end": {closing, inSQLite},
}

// maxMeaning is the length of the longest of these words.
const maxMeaning = len("asymmetric")

func (r *reader) meaning(t token) (meaning, bool) {
	s := r.src[t.start:t.end]
	if len(s) > maxMeaning {
		return meaning{}, false
	}
	var folded [maxMeaning]byte
	for i := 0; i < len(s); i++ {
		folded[i] = s[i]
		if c := s[i]; c >= 'A' && c <= 'Z' {
			folded[i] = c | 0x20
		}
	}
	m, ok := meanings[string(folded[:len(s)])]
	return m, ok
}

// step reads token i of r, and reports whether it is a keyword. A bracket is one
// token with all that it holds.
func (p *phrase) step(r *reader, i int) (keyword bool) {
	t, opened, prefixed := r.toks[i], p.opened, p.prefix
	p.opened, p.prefix = false, false
	switch {
	case t.kind == punct:
		p.punct(r, i, prefixed)
	case t.kind == word:
		return p.word(r, i, opened)
	case p.place == wanted:
		p.place = complete
	}
	return false
}

func (p *phrase) punct(r *reader, i int, prefixed bool) {
	switch t := r.toks[i]; {
	case t.char == '(' || t.char == '[':
		if p.place == wanted && !prefixed {
			p.place = complete
		}
	case t.char == '*' && p.place == wanted && !(i > 0 && isOperator(r.toks[i-1])): // all columns
		p.place = complete
	default:
		p.place = wanted
	}
}

func (p *phrase) word(r *reader, i int, opened bool) (keyword bool) {
	t := r.toks[i]
	after := func(n int, words ...string) bool {
		return i >= n && !r.toks[i-n].label && r.isWord(r.toks[i-n], words...)
	}
	m, known := r.meaning(t)
	switch {
	case t.label && isPunct(r.toks[i-1], '.'):
		p.place = complete
		return false
	case t.label:
		p.place = labelled
		return false
	case i > 0 && r.toks[i-1].kind == number && r.toks[i-1].end == t.start: // 1e5
		return false
	case !known || p.place == wanted && m.name&set(r.dialect) != 0:
		p.name(r, i, after)
		return false
	}
	switch m.role {
	case clause:
		return p.clause(r, i, after)
	case operator:
		p.place = wanted
		return true
	case postfix:
		return true
	case prefix: // behind an operand NOT is a part of NOT LIKE and the like
		return true
	case head:
		if p.place != wanted {
			p.place = labelled
			return false
		}
		return true
	case opening:
		// Behind an operand it is a label; what looks like one may be the end of
		// an operator that isn't known.
		if p.place != wanted {
			p.doubtful = p.doubtful || p.place == labelled || r.dialect == SQLite || p.cases > 0
			p.place = labelled
			return false
		}
		p.cases++
		p.opened = true
		return true
	case between:
		if p.place == wanted && !opened {
			p.doubtful = true
		}
		if p.cases == 0 && !r.isWord(t, "when", "then") {
			p.place = labelled
			return false
		}
		p.place = wanted
		return true
	}
	return p.end()
}

// end reads an END. Behind an operand and outside of CASE it is a label.
func (p *phrase) end() (keyword bool) {
	switch {
	case p.place == wanted:
		p.doubtful = true
	case p.cases == 0:
		p.place = labelled
		return false
	}
	p.cases--
	p.place = complete
	return true
}

// name reads a word that is no keyword here, or one that only takes part in the
// name of an operator.
func (p *phrase) name(r *reader, i int, after func(int, ...string) bool) {
	t := r.toks[i]
	switch {
	case p.place == wanted && r.isWord(t, "by") && after(1, "group", "order"):
	case p.place == wanted:
		p.place = complete
	case r.dialect == Postgres && r.isWord(t, "operator") && isPunct(r.toks[i+1], '('):
		p.place, p.prefix = wanted, true
	case r.dialect == Postgres && r.isWord(t, "zone") && after(1, "time") && after(2, "at"):
		p.place = wanted
	default:
		p.place = labelled
	}
}

func (p *phrase) clause(r *reader, i int, after func(int, ...string) bool) (keyword bool) {
	t, next := r.toks[i], r.toks[i+1]
	switch {
	case r.isWord(t, "from") && after(1, "distinct") && (after(2, "is") || after(2, "not") && after(3, "is")):
		return false
	case r.isWord(t, "on") && after(1, "distinct") && isPunct(next, '('): // DISTINCT ON (...)
		p.prefix = true
		return false
	case r.isWord(t, "group") && after(1, "within") && isPunct(next, '('): // WITHIN GROUP (ORDER BY ...)
		return false
	case r.dialect == Postgres && r.isWord(t, "with") && r.isWord(next, "time", "unique"): // WITH TIME ZONE, IS JSON WITH UNIQUE KEYS
		return false
	case r.isWord(t, "for") && after(1, "collation") && isPunct(next, '('): // COLLATION FOR (...)
		p.place = complete
		return false
	case r.dialect == SQLite && r.isWord(t, "window") && !(isName(next) && r.isWord(r.toks[min(i+2, len(r.toks)-1)], "as")):
		// SQLite's scanner looks ahead: WINDOW name AS.
		p.place = labelled
		return false
	case r.dialect == SQLite && r.isWord(t, "fetch", "for"):
		p.place = labelled
		return false
	case p.cases > 0: // none can stand inside of a CASE
		p.doubtful = true
	}
	p.place = wanted
	return true
}

// isOperator reports whether t is an operator, or a part of one such as ~*.
func isOperator(t token) bool {
	return t.kind == punct && strings.IndexByte(",.()[];", t.char) < 0
}

func isName(t token) bool { return t.kind == word || t.kind == quoted || t.kind == text }

func set(d Dialect) dialectSet {
	if d == SQLite {
		return inSQLite
	}
	return inPostgres
}
