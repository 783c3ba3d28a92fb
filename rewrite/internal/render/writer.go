package render

import (
	"strings"
	"sync"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A writer writes one rendering of a statement.
type writer struct {
	*Source

	tokens  []Token // the tokens of all tables, in the order of the tables
	rows    []int   // for each row to insert, the index of its token; in the order of the tables
	tables  []share // for each of the plan's tables, the ends of its share of tokens and rows
	literal bool
	serial  int64
	editor  string

	queryOnly   bool // no statement follows the query of LedgerQuery
	passesAgain bool // the statement's own arguments are sent, although the guard's values are literals

	b        sqltext.Builder
	numbers  numbering // the numbers of the added placeholders
	numbered int       // number of placeholders that were repeated with their numbers

	// the last OpValue that wasn't a repetition, with the place of its text; nil if there is none
	value            *Fragment
	valueLo, valueHi int

	checked   bool        // the writer records the fragments, for [writer.intact]
	fragments []fragment  // the fragments that the edits wrote
	sent      []lex.Token // the tokens of these fragments
	opened    []int       // memory for the fields opened and inner of [check]
	inner     []int

	// The table that a fragment is being written for.
	table   int // index in Plan.Tables
	rules   *Registered
	sealed  bool // the write must present its token to the table's seal
	deletes bool // the write is a DELETE
	lo, hi  int  // the range of the table's tokens in tokens
	target  *Written
}

// A share has the ends of a table's tokens and rows, and whether the table's seal is left out.
type share struct {
	tokens, rows int
	unsealed     bool
}

var writers = sync.Pool{New: func() any { return new(writer) }}

// MaxBuffer is the largest number of tokens, bytes and so on for which a writer keeps memory.
const MaxBuffer = 64 << 10

func newWriter(s *Source) *writer {
	w := writers.Get().(*writer)
	w.Source = s
	w.b.Dialect = s.Dialect
	w.numbers.before = s.Plan.Inputs
	return w
}

// release keeps a writer for another rendering. Until the next rendering the writer may reference the previous
// statement and its values.
func (w *writer) release() {
	if max(cap(w.tokens), cap(w.rows), cap(w.tables), cap(w.sent), cap(w.fragments), w.b.Cap()) > MaxBuffer {
		return
	}
	w.tokens, w.rows, w.tables = w.tokens[:0], w.rows[:0], w.tables[:0]
	w.literal, w.queryOnly, w.passesAgain, w.checked = false, false, false, false
	w.restart()
	writers.Put(w)
}

// restart discards the text written so far.
func (w *writer) restart() {
	w.b.Reset()
	w.numbered, w.fragments, w.value = 0, w.fragments[:0], nil
	w.numbers = numbering{before: w.Plan.Inputs}
}

// take copies the values, so that the caller's values need not outlive the call, nor be allocated on the heap.
func (w *writer) take(v *Values) {
	w.literal, w.serial, w.editor = v.Literal, v.Serial, strings.Clone(v.Editor)
	for i := range v.Tables {
		w.tokens = append(w.tokens, v.Tables[i].Tokens...)
		w.rows = append(w.rows, v.Tables[i].Rows...)
		w.tables = append(w.tables, share{len(w.tokens), len(w.rows), v.Tables[i].Unsealed})
	}
}

// isAmbiguous reports whether the database may read a rendered text differently from the reading that the guard was
// written for.
func (w *writer) isAmbiguous(text string) bool {
	return w.NeedsSCSOn && !w.Dialect.Grammar.Lex.NeedsSCSOn(text)
}

// choose selects the target that the writer writes for.
func (w *writer) choose(target int) {
	w.target = &w.Plan.Targets[target]
	w.chooseTable(w.target.Table)
}

// chooseTable selects the plan's table that the writer writes for.
func (w *writer) chooseTable(table int) {
	w.table, w.rules = table, w.Plan.rules(table)
	w.sealed = w.rules.Sealed && !w.tables[table].unsealed
	w.lo, w.hi = 0, w.tables[table].tokens
	if table > 0 {
		w.lo = w.tables[table-1].tokens
	}
}

// compared reports whether the table's tokens may refuse a row.
func (w *writer) compared() bool { return w.lo < w.hi }

// rowsToken returns the token that covers the row of an edit, or NoToken.
func (w *writer) rowsToken(e *Fragment) int {
	if !w.hasRows() {
		return w.lo
	}
	token := w.rows[w.firstRow()+w.Plan.Targets[e.Target].firstRow+int(e.Row)]
	if token == guard.NoToken {
		return guard.NoToken
	}
	return w.lo + token
}

// firstRow returns where the table's rows begin in rows.
func (w *writer) firstRow() int {
	if w.table == 0 {
		return 0
	}
	return w.tables[w.table-1].rows
}

// hasRows reports whether the values name a token for each row; otherwise one token covers all rows.
func (w *writer) hasRows() bool { return w.firstRow() < w.tables[w.table].rows }

func (w *writer) write(parts ...string) { w.b.Write(parts...) }

func (w *writer) bool(b bool) { w.b.Bool(b) }

// field writes a field of a token: as a constant, or as a placeholder. A numbered placeholder is reused for each use of
// the field.
func (w *writer) field(token int, f field) {
	if !w.literal {
		v := value{Field: f}
		if f.IsOfToken() {
			v.Table, v.Token = w.table, token-w.lo
		}
		number := 0
		if w.Dialect.numbers() {
			number = w.numbers.of(v)
		} else {
			number = w.numbers.add(Arg{Of: v})
		}
		w.b.Placeholder(number, f.sqlType())
		return
	}
	switch f {
	case fieldValue:
		w.b.Int(w.tokens[token].Value)
	case fieldName:
		w.b.Text(w.tokens[token].Name)
	case fieldKey, fieldRow:
		w.b.Text(w.tokens[token].Key)
	case fieldClaim:
		w.b.Text(w.tokens[token].claim())
	case fieldClaims, fieldTaken:
		w.b.Text(presented(w.tokens[w.lo:w.hi], f == fieldTaken))
	case fieldNumber, fieldUUID, fieldASCII, fieldWide:
		if text, ok := spell(w.tokens[token].Key, guard.Spelling(f-fieldNumber)); ok {
			w.b.Text(text)
		} else {
			w.write("NULL")
		}
	case fieldSerial:
		w.b.Int(w.serial)
	case fieldEditor:
		w.b.Text(w.editor)
	}
}

// typedField is field for places in which a constant must have the type of a placeholder. To the database 42 alone is
// an int, and 'books' has no type yet.
func (w *writer) typedField(token int, f field) {
	w.field(token, f)
	if w.literal {
		w.write(w.Dialect.Cast(f.sqlType()))
	}
}

// amongTokens writes IN or = ANY, with the list of a field of the tokens.
func (w *writer) amongTokens(f field) {
	if w.Dialect.Capabilities().BuiltIn == "" {
		w.write(" IN (")
		w.listTokens(f)
		w.write(")")
		return
	}
	w.operator("=")
	w.write("ANY (ARRAY[")
	w.listTokens(f)
	w.write("])")
}

// listTokens writes a field of each token, with commas between them.
func (w *writer) listTokens(f field) {
	for i := w.lo; i < w.hi; i++ {
		if i > w.lo {
			w.write(", ")
		}
		w.field(i, f)
	}
}

// same compares an expression with a field of a token.
func (w *writer) same(expression string, token int, f field) {
	w.write(expression)
	w.operator("=")
	w.field(token, f)
}

// operator writes an operator of the database between two expressions, so that no operator of the application can
// replace it. All operators in the form OPERATOR(...) have the same precedence, so an operand may need brackets.
func (w *writer) operator(op string) {
	if builtIn := w.Dialect.Capabilities().BuiltIn; builtIn != "" {
		w.write(" OPERATOR(", builtIn, op, ") ")
	} else {
		w.write(" ", op, " ")
	}
}

// forGuard returns the writer for the SQL of a database's folder.
func (w *writer) forGuard() guard.Writer { return (*guardWriter)(w) }
