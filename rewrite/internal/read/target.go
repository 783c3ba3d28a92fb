package read

import (
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
)

// target parses the name and alias of the written table, starting after the verb and the words that head already holds,
// and adds a write to the statement. It returns nil if the table's name is missing. follow lists the words that may
// come next: such a word, unquoted, isn't read as an alias.
func (t walker) target(head *Write, follow ...string) *Write {
	verb, bracket := int(head.At), false
	if t.grammar.Only.Is() && t.isWord(t.tok(), "only") && !t.isWord(t.peek(1), follow...) {
		t.i++
		bracket = t.acceptPunct('(')
	}
	at := t.i
	schema, name, next, ok := t.grammar.Lex.QualifiedName(t.Src, t.Tokens, t.i)
	t.i = next
	if !ok || bracket && !t.acceptPunct(')') {
		t.unreadable(verb)
		return nil
	}
	t.claim(verb)
	t.part(WritePart, verb, verb)
	t.Parts[len(t.Parts)-1].Write = int32(len(t.Writes))
	added := t.newWrite()
	added.Verb, added.At, added.Or, added.OrAt = head.Verb, head.At, head.Or, head.OrAt
	added.Depth = int32(t.depth)
	added.Target = Target{Schema: schema, Name: name, At: int32(at), NameAt: int32(next - 1)}
	if t.grammar.Only.Is() {
		t.acceptPunct('*')
	}
	if !t.alias(added, follow) {
		t.finish(added)
		return nil
	}
	if t.grammar.IndexedBy.Is() {
		if t.accept("indexed", "by") {
			t.step(1)
		} else {
			t.accept("not", "indexed")
		}
	}
	return added
}

// newWrite adds a write to the statement's writes, which are empty beyond their end.
func (t walker) newWrite() *Write {
	if len(t.Writes) == cap(t.Writes) {
		t.Writes = append(t.Writes, Write{})
	} else {
		t.Writes = t.Writes[:len(t.Writes)+1]
	}
	return &t.Writes[len(t.Writes)-1]
}

// finish notes in the write why the write couldn't be read, if reading failed.
func (t walker) finish(w *Write) { w.Failure, t.failure = t.failure, Failure{} }

// alias reads [AS] alias. AS may be left out only in PostgreSQL, and only if follow lists the words that may come next.
func (t walker) alias(w *Write, follow []string) bool {
	next := t.tok()
	bare := t.grammar.BareAlias.Is() && follow != nil && t.i < t.stop &&
		(next.Kind == lex.Quoted || next.Kind == lex.Word && !t.isWord(next, follow...))
	if !t.accept("as") && !bare {
		return true
	}
	alias, ok := t.Name(t.i)
	if !ok {
		return t.fail(advise.ExpectedAlias, t.i)
	}
	w.Target.Alias, w.Target.AliasAt = alias, int32(t.i)
	t.i++
	return true
}

// or skips SQLite's OR x after a verb.
func (t walker) or(w *Write) {
	if !t.grammar.OrClause.Is() || !t.accept("or") {
		return
	}
	w.OrAt, w.Or = int32(t.i), OrOther
	for or, x := range orWords {
		if x != "" && t.isWord(t.tok(), x) {
			w.Or = Or(or)
		}
	}
	t.step(1)
}

var orWords = [...]string{OrAbort: "abort", OrRollback: "rollback", OrIgnore: "ignore", OrFail: "fail",
	OrReplace: "replace"}
