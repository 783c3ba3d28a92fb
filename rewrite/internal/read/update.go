package read

import (
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
)

// update reads UPDATE after its first word.
//
//	UPDATE [OR x] [ONLY] name [*] [[AS] alias] [INDEXED BY i] SET list
//	[FROM ...] [WHERE ...] [RETURNING ...] [ORDER BY ...] [LIMIT ...]
func (t walker) update() {
	head := Write{Verb: Update, At: int32(t.i - 1)}
	t.or(&head)
	w := t.target(&head, "set")
	switch {
	case w == nil:
	case !t.isWord(t.tok(), "set"):
		t.unreadable(int(w.At))
	default:
		_ = t.updates(w) && t.conditions(w, "from")
		t.finish(w)
	}
}

// updates reads the SET list of an UPDATE, from SET on.
func (t walker) updates(w *Write) bool {
	t.step(1)
	return t.assignments(&w.Set, "from", "where", "returning", "order", "limit")
}

// delete reads DELETE after its first word.
//
//	DELETE FROM [ONLY] name [*] [[AS] alias] [INDEXED BY i]
//	[USING ...] [WHERE ...] [RETURNING ...] [ORDER BY ...] [LIMIT ...]
func (t walker) delete() {
	head := Write{Verb: Delete, At: int32(t.i - 1)}
	if !t.accept("from") {
		t.unreadable(int(head.At))
		return
	}
	w := t.target(&head, "using", "where", "returning", "order", "limit")
	switch {
	case w == nil:
	case t.i != t.stop && !t.isWord(t.tok(), "using", "where", "returning", "order", "limit"):
		t.unreadable(int(w.At))
	default:
		_ = t.conditions(w, "using")
		t.finish(w)
	}
}

// assignments reads a SET list up to one of the words in follow.
func (t walker) assignments(set *Assignments, follow ...string) bool {
	lo := t.i
	hi, ok := t.until(follow...), true
	if lo == hi {
		return t.fail(advise.ExpectedAssignment, hi)
	}
	first := len(t.items)
	for i := lo; i < hi; {
		end := t.ItemEnd(i, hi)
		names := rangeOf(i, i+1)
		if t.Tokens[i].Is('(') {
			names = rangeOf(i+1, int(t.Tokens[i].Mate))
		}
		for t.grammar.QualifiedSet.Is() && int(names.Hi)+1 < end && t.Tokens[names.Hi].Is('.') {
			names = lex.Range{Lo: names.Hi + 1, Hi: names.Hi + 2}
		}
		if n := len(t.items); n == cap(t.items) {
			t.items = lex.More(t.items, n-first, i-lo, hi-lo)
		}
		t.items = append(t.items, Assignment{rangeOf(i, end), names})
		if i = end + 1; i == hi {
			ok = t.fail(advise.ExpectedAssignment, hi)
		}
	}
	set.Items = t.items[first:len(t.items):len(t.items)]
	if ok {
		set.Range = rangeOf(lo, hi)
	}
	return ok
}

// conditions reads the rest of an UPDATE or DELETE; joins is the word before the joined tables.
func (t walker) conditions(w *Write, joins string) bool {
	w.From = int32(t.i)
	if t.accept(joins) {
		t.until("where", "returning", "order", "limit")
	}
	if !t.where(&w.Where, "returning", "order", "limit") {
		return false
	}
	if t.returning(w) {
		t.until("order", "limit")
	}
	if t.isWord(t.tok(), "order", "limit") {
		w.Limit = int32(t.i)
	}
	if t.grammar.Limits.Is() {
		t.i = t.stop
	}
	return t.ends()
}

// where reads an optional WHERE, up to one of the words in follow.
func (t walker) where(c *Condition, follow ...string) bool {
	at := t.i
	if t.accept("where") {
		lo := t.i
		hi := t.until(follow...)
		if lo == hi {
			return t.fail(advise.ExpectedCondition, lo)
		}
		c.Range = rangeOf(lo, hi)
	}
	c.At = int32(at)
	return true
}

// returning steps over RETURNING and notes it.
func (t walker) returning(w *Write) bool {
	if !t.accept("returning") {
		return false
	}
	w.Returning = int32(t.i - 1)
	return true
}

// ends reports whether the region has been read to its end.
func (t walker) ends() bool {
	return t.i == t.stop || t.fail(advise.Unexpected, t.i)
}
