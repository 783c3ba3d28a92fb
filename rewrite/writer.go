package rewrite

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sqlfence/sqlfence/rewrite/internal/confirm"
)

// A writer writes one rendering of a statement.
type writer struct {
	source

	tokens  []Token // of all tables, one table's after the other's
	rows    []int   // likewise, of their rows
	tables  []share // of these, one for each of the plan's tables
	literal bool
	observe bool
	serial  int64
	editor  string

	b       strings.Builder
	rules   *Table         // of the table that is being written for
	table   int            // its index in Plan.Tables
	schema  string         // as the statement names it
	changes bool           // it writes rows that are there, see Target.Changes
	lo, hi  int            // its tokens
	pieces  *confirm.Check // of what the edits wrote; nil where nobody asks
	args    []Arg          // of the added placeholders, which are numbered from Plan.Inputs+1 on
	numbers map[Arg]int    // of the placeholders, if there are many
}

// A share is where the tokens and the rows of a table end.
type share struct{ tokens, rows int }

var writers = sync.Pool{New: func() any { return new(writer) }}

// maxShared is how many tokens, rows and tables a writer keeps room for.
const maxShared = 1 << 10

func newWriter(s source) *writer {
	w := writers.Get().(*writer)
	w.source = s
	return w
}

// release keeps a writer for another rendering, without what it has written.
func (w *writer) release() {
	if cap(w.tokens) > maxShared || cap(w.rows) > maxShared || cap(w.tables) > maxShared {
		return
	}
	clear(w.tokens)
	*w = writer{tokens: w.tokens[:0], rows: w.rows[:0], tables: w.tables[:0]}
	writers.Put(w)
}

// restart forgets what was written.
func (w *writer) restart() {
	w.b.Reset()
	w.args, w.numbers = nil, nil
}

// take copies the values: then the caller's need not outlive the call, nor be
// allocated for it.
func (w *writer) take(v *Values) {
	w.literal, w.observe, w.serial, w.editor = v.Literal, v.Observe, v.Serial, strings.Clone(v.Editor)
	for i := range v.Tables {
		w.tokens = append(w.tokens, v.Tables[i].Tokens...)
		w.rows = append(w.rows, v.Tables[i].Rows...)
		w.tables = append(w.tables, share{len(w.tokens), len(w.rows)})
	}
}

// isAmbiguous reports whether a rendered text may be run with another reading than
// that which the guard was written for.
func (w *writer) isAmbiguous(text string) bool { return w.inOneWay && !rejectedEscaping(text) }

func (w *writer) statement() string {
	size := len(w.src)
	for i := range w.edits {
		size += w.edits[i].size()
	}
	w.b.Grow(size)
	last := int32(0)
	for i := range w.edits {
		e := &w.edits[i]
		w.b.WriteString(w.src[last:e.at])
		last = e.at
		if e.apart&before != 0 {
			w.b.WriteByte(' ')
		}
		lo := w.b.Len()
		w.edit(e)
		if e.op != opText && w.b.Len() > lo && w.pieces != nil {
			w.pieces.Add(e.piece(lo, w.b.Len()))
		}
		if e.apart&behind != 0 {
			w.b.WriteByte(' ')
		}
	}
	w.b.WriteString(w.src[last:])
	return w.b.String()
}

func (w *writer) edit(e *edit) {
	switch {
	case e.op == opText:
		w.b.WriteString(e.text)
		return
	case e.op == opAbort:
		if !w.observe {
			w.write(" OR ABORT")
		}
		return
	case e.op == opStatements:
		w.ledgerStatements(e.text)
		return
	}
	t := &w.plan.Targets[e.target]
	w.choose(t.Table)
	w.schema, w.changes = t.schema, t.Changes
	switch e.op {
	case opMark:
		w.mark(e.text)
	case opCheck:
		w.check(e.text)
	case opLedger:
		w.ledgerCondition(e.text)
	case opColumn:
		if w.lo < w.hi {
			w.write(e.text)
		}
	case opValue:
		w.rowValue(e)
	case opSerial:
		w.nextSerial(e.text)
	case opTokens:
		w.tokenCheck(e.text)
	case opRaised:
		w.raised(e.text)
	case opRaisedEnd:
		w.raisedEnd(e.text)
	case opGone:
		w.gone(e.text)
	}
}

// choose makes one of the plan's tables the one that is being written for.
func (w *writer) choose(table int) {
	w.table, w.rules = table, w.plan.rules(table)
	w.lo, w.hi = 0, w.tables[table].tokens
	if table > 0 {
		w.lo = w.tables[table-1].tokens
	}
}

// rowValue writes the mark of a row to insert.
func (w *writer) rowValue(e *edit) {
	if w.lo == w.hi {
		if e.text == "" { // the only column
			w.write("NULL")
		}
		return
	}
	w.write(e.text)
	w.field(w.rowsToken(e), fieldValue)
}

// rowsToken returns the token that covers the row of an edit.
func (w *writer) rowsToken(e *edit) int {
	begin := 0
	if w.table > 0 {
		begin = w.tables[w.table-1].rows
	}
	if begin == w.tables[w.table].rows {
		return w.lo
	}
	return w.lo + w.rows[begin+w.plan.Targets[e.target].firstRow+int(e.row)]
}

func (w *writer) write(parts ...string) {
	for _, s := range parts {
		w.b.WriteString(s)
	}
}

func (w *writer) integer(n int64) {
	var room [20]byte
	w.b.Write(strconv.AppendInt(room[:0], n, 10))
}

// field writes a field of a token: as a constant, or as a placeholder, the same
// one each time.
func (w *writer) field(token int, f field) {
	if w.literal {
		switch f {
		case fieldValue:
			w.integer(w.tokens[token].Value)
		case fieldName:
			w.write(quoteText(w.dialect, w.tokens[token].Name))
		case fieldKey:
			w.write(quoteText(w.dialect, w.tokens[token].Key))
		case fieldSerial:
			w.integer(w.serial)
		case fieldEditor:
			w.write(quoteText(w.dialect, w.editor))
		}
		return
	}
	number := int64(w.number(Arg{token, f}))
	if w.dialect == SQLite {
		w.write("?")
		w.integer(number)
		return
	}
	w.write("$")
	w.integer(number)
	if f == fieldValue || f == fieldSerial {
		w.write("::bigint")
	} else {
		w.write("::text")
	}
}

// manyArgs is how many arguments are searched one by one.
const manyArgs = 8

// number returns the number of the placeholder for an argument, the same one
// each time.
func (w *writer) number(a Arg) int {
	if len(w.args) <= manyArgs {
		if n := slices.Index(w.args, a); n >= 0 {
			return w.plan.Inputs + n + 1
		}
	}
	if n, ok := w.numbers[a]; ok {
		return n
	}
	w.args = append(w.args, a)
	n := w.plan.Inputs + len(w.args)
	if len(w.args) > manyArgs {
		if w.numbers == nil {
			w.numbers = make(map[Arg]int)
			for i, a := range w.args {
				w.numbers[a] = w.plan.Inputs + i + 1
			}
		}
		w.numbers[a] = n
	}
	return n
}
