package rewrite

import "strings"

var pass = &Plan{Verdict: Pass}

// Plan returns what to do with a statement.
func (r *Rewriter) Plan(query string) *Plan { return r.plan(query, r.plans, false) }

// VersionedPlan returns what to do with a statement that is to be applied only
// to rows at one version, [Values.Serial]. It differs from Plan for writes to
// tables with Serial, INSERT excepted.
func (r *Rewriter) VersionedPlan(query string) *Plan { return r.plan(query, r.versioned, true) }

func (r *Rewriter) plan(query string, plans *cache, versioned bool) *Plan {
	if !r.mentions(query) {
		return pass
	}
	if p := plans.get(query); p != nil {
		return p
	}
	if len(query) > maxCached {
		return r.readAs(query, versioned)
	}
	// A clone, so that the cache doesn't keep a larger text alive.
	query = strings.Clone(query)
	p := r.readAs(query, versioned)
	plans.put(query, p)
	return p
}

const (
	maxCached = 8 << 10  // bytes of a statement whose plan is kept
	maxRead   = 64 << 20 // bytes of a statement that is read at all

	maxSkipped = 512 // bytes of comments before a statement that are skipped without reading all
)

// mentions reports whether a table's name may stand in query, anywhere, or that
// of a setting which changes how statements are read; or whether a statement of
// it may write to a table that it doesn't name.
func (r *Rewriter) mentions(query string) bool {
	if len(r.tables) > 0 && r.opensUnseen(query, 0) {
		return true
	}
	last := len(query) - 1
	for i := 0; i < last; i++ {
		if r.begins.has(query[i], query[i+1]) && r.mentionedAt(query, i) {
			return true
		}
	}
	return last >= 0 && r.mentionedAt(query, last)
}

func (r *Rewriter) mentionedAt(query string, i int) bool {
	s := query[i:]
	if s[0] == ';' {
		return r.opensUnseen(query, i+1)
	}
	if r.dialect == Postgres && len(r.tables) > 0 && hasPrefixFold(s, "names") && isWhole(query, i, i+len("names")) {
		return true
	}
	for _, start := range r.starts {
		if hasPrefixFold(s, start) {
			return true
		}
	}
	return false
}

// opensUnseen reports whether at i, where a statement may begin, one begins that
// may write to a table without its name: PostgreSQL's DO.
func (r *Rewriter) opensUnseen(query string, i int) bool {
	if r.dialect != Postgres {
		return false
	}
	for i < len(query) && isSpace(query[i]) {
		i++
	}
	if i < len(query) && (query[i] == '-' || query[i] == '/') {
		// A comment may stand behind every semicolon, also behind one in a comment.
		l := lexer{dialect: r.dialect, src: query[i:min(len(query), i+maxSkipped)]}
		if l.blank() != nil || l.pos == maxSkipped {
			return true
		}
		i += l.pos
	}
	if i == len(query) {
		return false
	}
	return hasPrefixFold(query[i:], "do") && isWhole(query, i, i+len("do"))
}

// isWhole reports whether no name goes on before i or at j.
func isWhole(s string, i, j int) bool {
	return (i == 0 || !isNamePart(s[i-1])) && (j == len(s) || !isNamePart(s[j]))
}
