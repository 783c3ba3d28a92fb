package rewrite

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sqlfence/sqlfence/rewrite/internal/confirm"
)

// A Token is one fencing token that a statement runs with.
type Token struct {
	Name  string // in the ledger
	Key   string // the key of the row that it covers, for a table with Key
	Value int64
}

// Values is what a statement is rendered with.
type Values struct {
	// Tokens of the plan's tables, one table's after the other's. A table
	// without Key has one; one that has none is not guarded.
	Tokens []Token
	// First tells for each of the plan's tables the index in Tokens of its first
	// one. May be nil for one table.
	First []int
	// Rows tells for each target with Keys each row's token, as an index in Tokens.
	// May be nil, also for a target, where that is the table's first.
	Rows [][]int

	// Literal writes the values into the text instead of numbering placeholders, as
	// is done for a statement that has no room for more arguments.
	Literal bool
	// Serial is what a versioned statement's rows have to be at.
	Serial int64
	// Editor is who writes to tables with Lock, as text; "" for nobody.
	Editor string
	// Observe leaves out what refuses; marks still rise, and never fall.
	Observe bool
}

// Rendered is a guarded statement.
type Rendered struct {
	SQL  string
	Args []Arg // to be passed after the statement's own, in this order

	// Unsafe tells that the text must not be sent: by the guard it has come to
	// read in two ways, of which one might run without it.
	Unsafe bool
}

// An Arg says which value of which token to pass.
type Arg struct {
	Token int // index in Values.Tokens
	Field Field
}

// Field is a field of a [Token].
type Field uint8

// The fields.
const (
	FieldValue Field = iota
	FieldName
	FieldKey
	FieldSerial // [Values.Serial], of no token
	FieldEditor // [Values.Editor], of no token
)

// Usual returns the statement with its guard for one token a table that is
// [Table.Fenced], passed as arguments, in the form that [Plan.Render] gives for it.
func (p *Plan) Usual() *Rendered { return &p.usual.Rendered }

// usual is the usual form, and what is found out about it when it is asked for.
type usual struct {
	Rendered
	room    [2]Arg
	once    sync.Once
	inlines bool
}

// Inlines reports whether a driver that writes the arguments' values into the text of
// [Plan.Usual], in the place of PostgreSQL's placeholders, finds the same
// placeholders as the server does.
func (p *Plan) Inlines() bool {
	u := p.usual
	if u == nil {
		return true
	}
	u.once.Do(func() { u.inlines = confirmDialects[p.source.dialect].Inlines(u.SQL) })
	return u.inlines
}

// renderUsual renders the usual form, and takes the second look at it: in other
// forms the guard stands in the same places.
func (p *Plan) renderUsual() (ok bool) {
	v := Values{Tokens: anyToken[:]}
	if len(p.Tables) > 1 {
		v.Tokens, v.First = make([]Token, 0, len(p.Tables)), make([]int, len(p.Tables))
	}
	for i := range v.First {
		v.First[i] = len(v.Tokens)
		if p.source.tables[p.Tables[i]].Fenced() {
			v.Tokens = append(v.Tokens, Token{})
		}
	}
	check := confirm.Begin()
	defer check.Release()
	w, u := writer{source: p.source}, p.usual
	w.pieces, w.args = check, u.room[:0]
	u.Rendered = w.render(v)
	return check.Confirms(confirmDialects[w.dialect], u.SQL)
}

// anyToken stands for the one token of the usual form, whose value is an argument.
var anyToken [1]Token

// Render returns the statement with its guard. All of the user's bytes stay, in
// their order; text is only inserted. Where the arguments would be more than the
// database takes, the values are written into the text.
func (p *Plan) Render(v Values) *Rendered {
	w := writer{source: p.source}
	r := w.render(v)
	if len(r.Args) > 0 && p.Inputs+len(r.Args) > maxInputs(w.dialect) {
		v.Literal = true
		w = writer{source: p.source}
		r = w.render(v)
	}
	return &r
}

func (w *writer) render(v Values) Rendered {
	w.Values = v
	r := Rendered{SQL: w.statement(), Args: w.args}
	r.Unsafe = w.inOneWay && !rejectedEscaping(r.SQL)
	return r
}

// maxInputs is how many arguments a statement may have. PostgreSQL counts them in
// two bytes; of SQLite's it is the default, SQLITE_MAX_VARIABLE_NUMBER.
func maxInputs(d Dialect) int {
	if d == SQLite {
		return 32766
	}
	return 65535
}

// usualArgs is how many arguments the usual form adds for a table at most: value,
// name and key of a token, the serial and the editor.
const usualArgs = 5

// A source is what a plan renders a statement from.
type source struct {
	dialect Dialect
	src     string
	edits   []edit
	tables  []Table
	plan    *Plan

	// PostgreSQL runs src only if standard_conforming_strings is on, and what is
	// rendered must keep to that.
	inOneWay bool
}

// A writer writes one rendering of a statement.
type writer struct {
	source

	Values
	b       strings.Builder
	rules   *Table         // of the table that is being written for
	table   int            // its index in Plan.Tables
	schema  string         // as the statement names it
	changes bool           // it writes rows that are there, see Target.Changes
	lo, hi  int            // its tokens
	pieces  *confirm.Check // notes what the edits write; nil for none
	args    []Arg          // of the added placeholders, which are numbered from Plan.Inputs+1 on
	numbers map[Arg]int    // of the placeholders, if there are many
}

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
		if !w.Observe {
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
	w.table, w.rules = table, &w.tables[w.plan.Tables[table]]
	w.lo, w.hi = 0, len(w.Tokens)
	if table < len(w.First) {
		w.lo = w.First[table]
	}
	if table+1 < len(w.First) {
		w.hi = w.First[table+1]
	}
}

// rowValue writes the mark of a row to insert.
func (w *writer) rowValue(e *edit) {
	token := w.lo
	if t := int(e.target); t < len(w.Rows) && int(e.row) < len(w.Rows[t]) {
		token = w.Rows[t][e.row]
	}
	if w.lo == w.hi {
		if e.text == "" { // the only column
			w.write("NULL")
		}
		return
	}
	w.write(e.text)
	w.field(token, FieldValue)
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
func (w *writer) field(token int, f Field) {
	if w.Literal {
		switch f {
		case FieldValue:
			w.integer(w.Tokens[token].Value)
		case FieldName:
			w.write(quoteText(w.dialect, w.Tokens[token].Name))
		case FieldKey:
			w.write(quoteText(w.dialect, w.Tokens[token].Key))
		case FieldSerial:
			w.integer(w.Serial)
		case FieldEditor:
			w.write(quoteText(w.dialect, w.Editor))
		}
		return
	}
	number := int64(w.number(Arg{Token: token, Field: f}))
	if w.dialect == SQLite {
		w.write("?")
		w.integer(number)
		return
	}
	w.write("$")
	w.integer(number)
	if f == FieldValue || f == FieldSerial {
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
