package read

import (
	"sync"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
)

// A Text parses the statements of an SQL string one by one: see [Text.Next]. It is not safe for concurrent use.
type Text struct {
	lex.Scanned

	// NeedsSCSOn reports whether the text was read as with standard_conforming_strings = on, because PostgreSQL rejects
	// the text with the setting off.
	NeedsSCSOn bool

	Statement

	grammar *lex.Grammar
	i       int     // the current token
	stop    int     // the end of the region that is being read
	depth   int     // number of brackets around the region
	failure Failure // the failure in the write that is being read
	filled  bool    // Statement isn't empty
	inputs  Inputs
	verbs   []int32 // the tokens INSERT, UPDATE, DELETE, MERGE and REPLACE that belong to parsed writes
	mayHide bool    // strays must look for such tokens that belong to no parsed write

	// Reused memory for the fields of Statement.
	items     []Assignment
	ranges    []lex.Range
	rowArms   []RowArm
	conflicts []Conflict
	arms      []Arm
	joined    []Target
}

// Open splits src into tokens, under the session's settings for string literals.
func Open(g *lex.Grammar, src string, escapes lex.Escapes) (*Text, *lex.Error) {
	t, err := open(g, src, escapes)
	if err != nil && err.Kind == lex.Ambiguous && g.Lex.ConformingStrings.Is() && g.Lex.NeedsSCSOn(src) {
		if t, err = open(g, src, lex.EscapesNone|lex.AnyEncoding); err == nil {
			t.NeedsSCSOn = true
		}
	}
	return t, err
}

func open(g *lex.Grammar, src string, escapes lex.Escapes) (*Text, *lex.Error) {
	t := texts.Get().(*Text)
	toks, err := lex.Scan(g.Lex, src, escapes, t.Tokens[:0])
	if err != nil {
		texts.Put(t)
		return nil, err
	}
	t.Scanned, t.grammar = lex.Scanned{Src: src, Tokens: toks, Rules: g.Lex}, g
	t.NeedsSCSOn, t.i, t.inputs = false, 0, Inputs{}
	return t, nil
}

// texts are closed Texts with memory to reuse.
var texts = sync.Pool{New: func() any { return new(Text) }}

// maxReused is the largest number of tokens, ranges and so on for which memory is kept for the next text.
const maxReused = 64 << 10

// Close ends the use of t and of all it has returned.
func (t *Text) Close() {
	room := max(cap(t.Tokens), cap(t.items), cap(t.ranges), cap(t.rowArms), cap(t.conflicts), cap(t.arms),
		cap(t.Parts), cap(t.Writes))
	if room > maxReused {
		return
	}
	t.reset()
	t.Src = ""
	texts.Put(t)
}

// reset empties the statement and releases its strings.
func (t *Text) reset() {
	if !t.filled {
		return
	}
	t.filled = false
	clear(t.Parts)
	clear(t.Writes)
	t.Statement = Statement{Parts: t.Parts[:0], Writes: t.Writes[:0]}
	t.items, t.ranges, t.rowArms, t.conflicts, t.arms = t.items[:0], t.ranges[:0], t.rowArms[:0],
		t.conflicts[:0], t.arms[:0]
	t.depth, t.verbs, t.mayHide = 0, t.verbs[:0], false
}

// Next reads the next statement of the text; false means that no statement is left.
func (t *Text) Next() bool {
	t.reset()
	if !t.region() {
		return false
	}
	t.Range, t.filled = rangeOf(t.i, t.stop), true
	w := walker{t}
	w.statement()
	if t.mayHide {
		w.strays()
	}
	t.i = t.stop
	return true
}

// A walker goes through a statement by its verbs, and fills the text's [Statement].
type walker struct{ *Text }

// Rest returns the text after the semicolon that ends the statement.
func (t *Text) Rest() string { return t.Src[t.Tokens[t.Hi].End:] }

// region makes the next statement the region, and reports whether a statement is left.
func (t *Text) region() bool {
	next := t.StatementFrom(int32(t.i))
	t.i, t.stop = int(next.Lo), int(next.Hi)
	return t.i < t.stop
}

// statement parses the statement of the region.
func (t walker) statement() {
	t.CTEAt, t.HasWith = t.tok().Start, false
	begin := t.i
	switch {
	case t.grammar.Explain.Is() && t.accept("explain"):
		t.explain(begin)
	case t.grammar.InBrackets.Is() && t.tok().Is('(') && int(t.tok().Mate) == t.stop-1:
		// (WITH ... SELECT ...) may write like one without brackets.
		stop, ok := t.enter()
		if !ok {
			t.part(TooDeepPart, begin, begin)
			return
		}
		t.statement()
		t.leave(stop)
	case t.accept("with"):
		t.with(begin, true)
	case t.write():
	default:
		t.other(begin)
	}
}

// write parses the statement of the region if it is a write of rows.
func (t walker) write() bool {
	switch {
	case t.grammar.Blocks.Is():
		return blocks{t}.mysqlWrite()
	case t.accept("update"):
		t.update()
	case t.accept("delete"):
		t.delete()
	case t.accept("insert"):
		t.insert(Insert)
	case t.grammar.OrClause.Is() && t.accept("replace"):
		t.insert(Replace)
	case t.grammar.Merge.Is() && t.accept("merge"):
		t.merge()
	default:
		return false
	}
	return true
}

// explain parses EXPLAIN, after its first word. EXPLAIN runs its statement only with ANALYZE.
//
//	EXPLAIN [(options)] [ANALYZE] [VERBOSE] statement
func (t walker) explain(begin int) {
	options := t.i
	if t.tok().Is('(') && !t.isWord(t.peek(1), "select", "values", "table", "with") && !t.peek(1).Is('(') {
		t.i = t.Skip(t.i)
	}
	for t.isWord(t.tok(), "analyze", "analyse", "verbose") {
		t.i++
	}
	for i := options; i < t.i; i++ {
		if option, _ := t.Name(i); option == "analyze" || option == "analyse" {
			t.Explained = true
			t.statement()
			return
		}
	}
	if t.isWord(t.tok(), "explain") {
		t.unreadable(begin)
	}
}

// part adds a part of the statement, with the tokens from begin to the end of the region.
func (t walker) part(kind PartKind, begin, at int) {
	t.Parts = append(t.Parts, Part{Kind: kind, At: int32(at), Range: rangeOf(begin, t.stop)})
}

func (t walker) unreadable(begin int) {
	t.part(UnreadablePart, begin, begin)
	t.Parts[len(t.Parts)-1].Reason = t.versioning(begin)
}

// versioning returns why a MariaDB write that changes versions or periods of rows is unreadable, or Readable if the
// write is of another kind.
//
//	DELETE HISTORY FROM name [BEFORE SYSTEM_TIME x]
//	{UPDATE | DELETE FROM} name FOR PORTION OF period FROM x TO x ...
func (t walker) versioning(begin int) advise.Code {
	if t.isWord(&t.Tokens[begin], "delete") && t.isWord(&t.Tokens[begin+1], "history") {
		return advise.DeletesHistory
	}
	for i := begin; i < t.stop; i = t.Skip(i) {
		if t.isWord(&t.Tokens[i], "for") && t.isWord(&t.Tokens[i+1], "portion") {
			return advise.WritesPortion
		}
	}
	return advise.Readable
}
