package rewrite

import (
	"strconv"
	"strings"
)

// A Token is one fencing token that a statement runs with.
type Token struct {
	Name  string // in the ledger
	Key   string // the key of the row that it covers, for a table with Key
	Value int64
}

// Values is what a statement is rendered with.
type Values struct {
	Tokens []Token // at least one; without Key just one
	Rows   []int   // for a plan with Keys: each row's token, an index in Tokens

	// Literal writes the values into the text instead of numbering placeholders.
	Literal bool
	// Observe leaves out what refuses; marks still rise, and never fall.
	Observe bool
}

// Rendered is a guarded statement.
type Rendered struct {
	SQL  string
	Args []Arg // to be passed after the statement's own, in this order
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
)

// Usual returns the statement with its guard for one token, passed as arguments,
// in the form that [Plan.Render] gives for it. It is made once.
func (p *Plan) Usual() *Rendered {
	r := p.usual.Load()
	if r == nil {
		r = p.Render(Values{Tokens: make([]Token, 1)})
		p.usual.Store(r)
	}
	return r
}

// Render returns the statement with its guard. All of the user's bytes stay, in
// their order; text is only inserted.
func (p *Plan) Render(v Values) *Rendered {
	w := p.writer
	w.Values = v
	w.next = p.Inputs
	return &Rendered{SQL: w.statement(), Args: w.args}
}

// A writer writes one rendering of a statement.
type writer struct {
	dialect Dialect
	src     string
	edits   []edit
	rules   *Table

	Values
	b    strings.Builder
	next int   // the highest placeholder number so far
	args []Arg // their values, from Plan.Inputs+1 on
}

func (w *writer) statement() string {
	w.b.Grow(len(w.src) + 160*(1+len(w.edits)/4))
	last := int32(0)
	for i := range w.edits {
		e := &w.edits[i]
		w.b.WriteString(w.src[last:e.at])
		last = e.at
		switch e.op {
		case opText:
			w.b.WriteString(e.text)
		case opMark:
			w.mark(e.text)
		case opCheck:
			w.check(e.text)
		case opLedger:
			w.ledger(e.text)
		case opValue:
			w.field(w.rowToken(int(e.row)), FieldValue)
		}
	}
	w.b.WriteString(w.src[last:])
	return w.b.String()
}

func (w *writer) rowToken(row int) int {
	if row < len(w.Rows) {
		return w.Rows[row]
	}
	return 0
}

func (w *writer) write(parts ...string) {
	for _, s := range parts {
		w.b.WriteString(s)
	}
}

// field writes a field of a token: as a constant, or as a placeholder, the same
// one each time.
func (w *writer) field(token int, f Field) {
	if w.Literal {
		switch t := &w.Tokens[token]; f {
		case FieldValue:
			w.write(strconv.FormatInt(t.Value, 10))
		case FieldName:
			w.write(quoteText(w.dialect, t.Name))
		case FieldKey:
			w.write(quoteText(w.dialect, t.Key))
		}
		return
	}
	arg := Arg{Token: token, Field: f}
	number := 0
	for i, a := range w.args {
		if a == arg {
			number = w.next - len(w.args) + i + 1
		}
	}
	if number == 0 {
		w.args = append(w.args, arg)
		w.next++
		number = w.next
	}
	if w.dialect == SQLite {
		w.write("?", strconv.Itoa(number))
		return
	}
	w.write("$", strconv.Itoa(number))
	if f == FieldValue {
		w.write("::bigint")
	} else {
		w.write("::text")
	}
}
