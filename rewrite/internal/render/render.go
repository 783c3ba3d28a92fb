package render

import (
	"errors"
	"slices"
	"sync"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

// Default returns the statement with its guard for the usual values, before the values are known: one token, passed as
// an argument, for each table that is [guard.Table.Fenced], and none for a table with claims if the statement needs
// none. [Plan.Render] returns the same statement for such values. The error is Render's, or reports that the values
// can't be arguments (see [Plan.Params]).
func (p *Plan) Default() (sql string, args []Arg, err error) {
	switch {
	case p.Verdict != guard.Guard:
		return "", nil, (&Values{}).check(p)
	case p.Form.ambiguous:
		return "", nil, ErrAmbiguous
	case !p.Params && len(p.Form.args) > 0:
		return "", nil, ErrNoParams
	}
	return p.Form.sql, p.Form.args, nil
}

// A Form is the result of [Plan.Default], with facts about the result that its users have requested.
type Form struct {
	sql       string
	args      []Arg
	buffer    [2]Arg
	ambiguous bool
	once      sync.Once
	inlines   bool
}

// ErrAmbiguous refuses a text that PostgreSQL may read differently from the statement, because the guard makes the
// text's meaning depend on standard_conforming_strings.
var ErrAmbiguous = &guard.Refusal{Table: -1, Reason: lex.AmbiguousBackslash, Offset: -1}

var ErrNoParams = errors.New("rewrite: the guard's values can't be passed as arguments of this statement")

// Inlines reports whether a driver that writes the arguments' values into the text of [Plan.Default], in place of
// PostgreSQL's placeholders, finds the same placeholders as the server.
func (p *Plan) Inlines() bool {
	if p.Source.Escapes.Mode() == lex.EscapesAll {
		return true // the driver refuses to write the arguments into the text
	}
	f := p.Form
	if f == nil {
		return true
	}
	f.once.Do(func() { f.inlines = p.Source.Dialect.Grammar.Lex.Inlines(f.sql, true) })
	return f.inlines
}

// RenderParameterised renders the form of [Plan.Default], and reports whether the statement that was read is
// [writer.intact] in this form. In other forms the guard stands in the same places. If a table needs no token in this
// form, the form with a token is checked as well.
func (p *Plan) RenderParameterised(read *read.Text) (ok bool) {
	for i := range p.Tables {
		if p.needsNone(i) {
			return p.renderParameterised(read, true) && p.renderParameterised(read, false)
		}
	}
	return p.renderParameterised(read, false)
}

// renderParameterised renders the default form. If tokened is set, tables that need no token also get a token.
func (p *Plan) renderParameterised(read *read.Text, tokened bool) (ok bool) {
	w := newWriter(&p.Source)
	defer w.release()
	for i, table := range p.Tables {
		if p.Source.RulesOf(table).Fenced() && (tokened || !p.needsNone(i)) {
			w.tokens = append(w.tokens, Token{})
		}
		w.tables = append(w.tables, share{tokens: len(w.tokens)})
	}
	f := p.Form
	w.numbers.added, w.checked = f.buffer[:0], true
	f.sql = w.statement()
	f.args, f.ambiguous = w.numbers.added, w.isAmbiguous(f.sql)
	p.Params = p.Params && p.hasRoom(f.args)
	return w.intact(read, f.sql)
}

// hasRoom reports whether the statement may have these arguments in addition to the user's arguments.
func (p *Plan) hasRoom(added []Arg) bool {
	if d := p.Source.Dialect; p.Inputs+len(added) > d.Guard.MaxInputs {
		return false
	} else if len(added) <= d.Guard.MaxAdded {
		return true
	}
	values := 0
	for _, a := range added {
		if a.Again == 0 {
			values++
		}
	}
	return values <= p.Source.Dialect.Guard.MaxAdded
}

// hasRoomForRepeats reports whether the statement may have one more argument for each repeated placeholder.
func (p *Plan) hasRoomForRepeats() bool {
	return p.Inputs+len(p.Source.Repeats.Bare) <= p.Source.Dialect.Guard.MaxInputs
}

// Render returns the statement with its guard, and the arguments to pass among the statement's arguments, in the order
// of their numbers. The caller must not change the arguments. All of the user's bytes stay, in their order; text is
// only inserted. If the database can't take that many arguments, the values are written into the text, and only
// arguments with [Arg.Again] may be left.
//
// Render never returns a statement without its guard. It returns an error for a plan without the verdict "guard", and
// for incomplete values. If these values would make the text ambiguous, the error is a refusal.
func (p *Plan) Render(v Values) (sql string, args []Arg, err error) {
	if err := v.check(p); err != nil {
		return "", nil, err
	}
	if err := p.checkReplaced(); err != nil {
		return "", nil, err
	}
	if p.isDefault(&v) {
		return p.Default()
	}
	v.Literal = v.Literal || !p.Params
	w := newWriter(&p.Source)
	defer w.release()
	w.take(&v)
	sql, args = w.statement(), w.numbers.added
	if !v.Literal && len(args) > 0 && !p.hasRoom(args) {
		w.restart()
		w.literal, w.passesAgain = true, p.hasRoomForRepeats()
		sql, args = w.statement(), w.numbers.added
	}
	if w.isAmbiguous(sql) {
		return "", nil, ErrAmbiguous
	}
	return sql, args, nil
}

// isDefault reports whether complete values are the values of the default form: each fenced table has one token, or the
// form is the same for several tokens.
func (p *Plan) isDefault(v *Values) bool {
	if args := p.Form.args; p.Source.unique != nil || len(args) > 0 && (v.Literal || !p.Params) {
		return false
	}
	for i := range v.Tables {
		t, rules := &v.Tables[i], p.rules(i)
		if rules.Fenced() && t.Unfenced != p.needsNone(i) || t.Unsealed && rules.Sealed {
			return false
		}
		if len(t.Tokens) > 1 && !p.presentsAlways() || slices.Contains(t.Rows, guard.NoToken) {
			return false
		}
	}
	return true
}

// needsNone reports whether the default form needs no token for the plan's table i.
func (p *Plan) needsNone(i int) bool { return p.rules(i).Claim != "" && p.isFree(i) }

// presentsAlways reports whether the default form serves any number of tokens: if they are claims of a single table's
// rows. With several tables the SQL has the tokens' indexes for errors, and with a seal it has each token.
func (p *Plan) presentsAlways() bool {
	if len(p.Tables) != 1 || !p.Source.Dialect.presentsAtOnce(1) {
		return false
	}
	rules := p.rules(0)
	return rules.Claim != "" && !rules.Sealed
}

// DefaultArgs is the highest number of arguments that the default form adds for a table: value, name and key of a
// token, the serial and the editor.
const DefaultArgs = 5

// A Source holds everything from which a plan renders a guarded statement.
type Source struct {
	TableList
	Dialect   *Dialect
	Nonce     string // the random text in the errors of the rewriter's guards
	Src       string
	Fragments []Fragment
	Repeats   Repeats
	rows      []int  // number of rows to insert for each of the plan's tables, if there are several targets
	Assigns   []bool // for each of the plan's tables, whether the statement assigns its row version; may be nil
	Plan      *Plan

	Replacement *Replacement        // for a REPLACE that checks the rows that it deletes; else nil
	unique      *session.UniqueKeys // unique keys of the REPLACE's table; nil if they are unknown

	// Counts is set if the placeholders of Src have no numbers, so that the database counts them from left to right.
	Counts bool

	Comments bool // some of the words of Src are put into comments

	// TakesOver is set if an UPDATE that doesn't assign the claim takes rows over: the guard increments the claim.
	// Otherwise such an UPDATE must present the claim.
	TakesOver bool

	// NeedsSCSOn is set if PostgreSQL runs Src only under standard_conforming_strings = on. The text must keep this.
	NeedsSCSOn bool
	Escapes    lex.Escapes // how the string literals of Src were read
}

// LockQueries returns queries without arguments, to be sent before the statement in the same transaction. They throw
// errors as LedgerQuery does, and lock the rows that they compare with the tokens.
func (p *Plan) LockQueries(v Values) (queries []string, err error) {
	if err := v.check(p); err != nil {
		return nil, err
	}
	w := newWriter(&p.Source)
	defer w.release()
	w.take(&v)
	w.literal = true
	for table := range p.Tables {
		i := slices.IndexFunc(p.Targets, func(t Written) bool { return t.Table == table })
		if i < 0 {
			continue
		}
		w.choose(i)
		for token := w.lo; token < w.checksEnd() && w.refuses(SetOf(RuleLedger)); token++ {
			if w.rules.ClaimsOther() {
				w.Dialect.Guard.LockClaims(w.forGuard())
			} else {
				w.Dialect.Guard.LockLedger(w.forGuard(), token)
			}
			queries = append(queries, w.b.String())
			w.b.Reset()
		}
	}
	return queries, nil
}

// LedgerQuery returns a query without arguments that throws an error, with the guard's markers, if the ledger refuses a
// token of the rendered statement. The caller needs this query after an error that the database raised before the
// guard's check. LedgerQuery returns "" if no ledger has to be queried.
func (p *Plan) LedgerQuery(v Values) string {
	if v.check(p) != nil {
		return ""
	}
	w := newWriter(&p.Source)
	defer w.release()
	w.take(&v)
	w.literal, w.queryOnly = true, true
	separator := "SELECT "
	asked := make([]bool, len(p.Tables))
	for i := range p.Targets {
		w.choose(i)
		if !asked[w.table] && w.refuses(SetOf(RuleLedger)) {
			w.write(separator)
			w.check(SetOf(RuleLedger))
			separator, asked[w.table] = " AND ", true
		}
	}
	return w.b.String()
}
