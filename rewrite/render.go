package rewrite

import (
	"sync"

	"github.com/sqlfence/sqlfence/rewrite/internal/confirm"
	"github.com/sqlfence/sqlfence/rewrite/internal/lex"
)

// Rendered is a guarded statement. It is not to be changed.
type Rendered struct {
	SQL  string
	Args []Arg // to be passed after the statement's own, in this order
}

// Default returns the statement with its guard for one token a table that is
// [Table.Fenced], passed as arguments: what [Plan.Render] returns for these, known
// before the values are. The error is as Render's.
func (p *Plan) Default() (*Rendered, error) {
	switch {
	case p.Verdict != Guard:
		return nil, (&Values{}).check(p)
	case p.form.ambiguous:
		return nil, errAmbiguous
	}
	return &p.form.Rendered, nil
}

// A defaultForm is what [Plan.Default] returns, and what its users have asked about it.
type defaultForm struct {
	Rendered
	room      [2]Arg
	ambiguous bool
	once      sync.Once
	inlines   bool
}

// errAmbiguous refuses a text that PostgreSQL may read in another way than the statement:
// by the guard, its meaning has come to depend on standard_conforming_strings.
var errAmbiguous = &Refusal{Table: -1, Reason: lex.AmbiguousBackslash, Offset: -1}

// Inlines reports whether a driver that writes the arguments' values into the text of
// [Plan.Default], in the place of PostgreSQL's placeholders, finds the same
// placeholders as the server does.
func (p *Plan) Inlines() bool {
	f := p.form
	if f == nil {
		return true
	}
	f.once.Do(func() { f.inlines = p.source.dialect.secondLook().Inlines(f.SQL) })
	return f.inlines
}

// renderDefault renders the default form, and takes the second look at it: in other
// forms the guard stands in the same places.
func (p *Plan) renderDefault() (ok bool) {
	w := newWriter(&p.source)
	defer w.release()
	for _, table := range p.Tables {
		if p.source.tables[table].Fenced() {
			w.tokens = append(w.tokens, Token{})
		}
		w.tables = append(w.tables, share{tokens: len(w.tokens)})
	}
	check := confirm.Begin()
	defer check.Release()
	f := p.form
	w.pieces, w.numbers.Added = check, f.room[:0]
	f.SQL = w.statement()
	f.Args, f.ambiguous = w.numbers.Added, w.isAmbiguous(f.SQL)
	return check.Confirms(w.dialect.secondLook(), f.SQL)
}

// Render returns the statement with its guard. All of the user's bytes stay, in
// their order; text is only inserted. Where the arguments would be more than the
// database takes, the values are written into the text.
//
// It returns an error, and never a statement without its guard, for a plan that
// isn't to guard, for values that are incomplete, and, as a [Refusal], where the text
// would be ambiguous with these values.
func (p *Plan) Render(v Values) (*Rendered, error) {
	if err := v.check(p); err != nil {
		return nil, err
	}
	if p.isDefault(&v) {
		return p.Default()
	}
	w := newWriter(&p.source)
	defer w.release()
	w.take(&v)
	r := &Rendered{SQL: w.statement(), Args: w.numbers.Added}
	if !v.Literal && len(r.Args) > 0 && p.Inputs+len(r.Args) > w.dialect.maxInputs() {
		w.restart()
		w.literal = true
		r.SQL, r.Args = w.statement(), nil
	}
	if w.isAmbiguous(r.SQL) {
		return nil, errAmbiguous
	}
	return r, nil
}

// isDefault reports whether the values, which are complete, are those of the
// default form: each fenced table has one token.
func (p *Plan) isDefault(v *Values) bool {
	added := len(p.form.Args)
	if v.Observe || v.Literal && added > 0 || added > 0 && p.Inputs+added > p.source.dialect.maxInputs() {
		return false
	}
	for i := range v.Tables {
		if v.Tables[i].Unfenced || len(v.Tables[i].Tokens) > 1 {
			return false
		}
	}
	return true
}

// defaultArgs is how many arguments the default form adds for a table at most: value,
// name and key of a token, the serial and the editor.
const defaultArgs = 5

// A source is what a plan renders a statement from.
type source struct {
	dialect dialect
	src     string
	edits   []edit
	tables  []Table
	plan    *Plan

	// PostgreSQL runs src only if standard_conforming_strings is on, and what is
	// rendered must keep to that.
	needsSCSOn bool
}
