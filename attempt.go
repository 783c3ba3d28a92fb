package sqlfence

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence/internal/own"
	"github.com/sqlfence/sqlfence/rewrite"
)

// An attempt is one execution of a statement: what is sent for it, and what is
// needed to understand a refusal by the database.
type attempt struct {
	fence  *fence
	query  string              // as the application wrote it
	text   string              // what is planned: query, or what a rewriter among the arguments made of it
	sql    string              // what is sent
	own    []driver.NamedValue // the arguments of text, options in front
	args   []driver.NamedValue // what is sent
	events []Event             // to be reported

	rewritten bool // text is not query
	moved     bool // and it is what is sent: of a prepared statement, by its connection
	copied    bool // own is not the caller's slice

	// The rest is of a guarded statement.

	plan   *rewrite.Plan
	tokens []Token        // of the plan's tables, one table's after the other's
	first  []int          // where in tokens those of each table begin; nil for one table
	rows   [][]int        // by table, what its rows' tokens are; nil where it has one
	values rewrite.Values // without the tables'
	told   bool           // its refusal by the database is reported; rows may repeat it
}

func (a *attempt) guarded() bool { return a.plan != nil }

// A form is the way in which a statement is to be executed.
type form uint8

const (
	execForm          form = iota // ExecContext of the connection
	queryForm                     // QueryContext of the connection
	preparedForm                  // ExecContext of a prepared statement
	preparedQueryForm             // QueryContext of a prepared statement
)

// unprepared returns the form of a prepared statement that its connection executes.
func (f form) unprepared() form {
	switch f {
	case preparedForm:
		return execForm
	case preparedQueryForm:
		return queryForm
	}
	return f
}

// admit decides about one execution of a statement with this plan on a base
// connection: it returns what to send, or why nothing may be sent.
func (f *fence) admit(ctx context.Context, base driver.Conn, query string, plan *rewrite.Plan, args []driver.NamedValue, as form) (attempt, error) {
	a := attempt{fence: f, query: query, text: query, sql: query, own: args, args: args}
	opts, err := f.driverOptions(args, as)
	if err == nil && opts.rewriter.IsValid() {
		var failed error
		if opts, err, failed = a.rewriteQuery(ctx, base, opts); failed != nil {
			return a, failed
		}
		plan, as = f.rewriter.Plan(a.text), as.unprepared()
	}
	if err == nil && plan.Verdict == rewrite.Pass {
		return a, nil
	}
	if own.Is(ctx, a.text) {
		return a, nil
	}
	if reason, ok := bypassReason(ctx); ok {
		a.events = []Event{{Kind: Bypassed, Query: query, Reason: reason}}
		return a, nil
	}
	if err != nil {
		return a, a.refuse(ctx, err)
	}
	if plan.Verdict == rewrite.Refuse {
		return a, a.refuse(ctx, f.unguardable(plan.Refusal))
	}
	return a, a.guard(ctx, plan, opts, as)
}

// guard makes the attempt a guarded one, if there is something to guard with.
func (a *attempt) guard(ctx context.Context, plan *rewrite.Plan, opts driverOptions, as form) error {
	a.plan = plan
	if a.fence.serials {
		if err := a.version(ctx, as); err != nil {
			if err := a.refuse(ctx, err); err != nil {
				return err
			}
		}
	}
	if a.fence.locks && plan.Locks {
		if err := a.findEditor(ctx); err != nil {
			if err := a.refuse(ctx, err); err != nil {
				return err
			}
		}
	}
	rows := plan.Serial || plan.Locks // there is something to guard without tokens
	if err := a.findTokens(ctx, a.own[opts.count:]); err != nil {
		err := a.refuse(ctx, err)
		if err != nil || !rows {
			a.plan = nil
			return err
		}
		a.dropTokens()
	}
	if len(a.tokens) == 0 && !rows { // all of the tables are Optional
		a.plan = nil
		return nil
	}
	given := len(a.own) - opts.count
	a.values.Literal = !plan.Params || given != plan.Inputs || hasNamed(a.own) || given == 0 && a.inlined() ||
		as == execForm && given == 0 || as == queryForm && given == 0 && !a.fence.profile.cachesQueries
	err := a.render()
	if err == nil && given > 0 && a.inlined() {
		err = errInlined
	}
	if err != nil {
		a.plan, a.sql, a.args, a.moved = nil, a.text, a.own, a.rewritten
		return a.refuse(ctx, err)
	}
	return nil
}

// refuse reports a refusal and returns err. Where nothing is enforced it returns
// nil, and what would have been is reported when the statement has been sent.
func (a *attempt) refuse(ctx context.Context, err error) error {
	if a.fence.mode == Observe {
		a.events = append(a.events, Event{Kind: WouldRefuse, Query: a.query, Err: err})
		return nil
	}
	a.fence.report(ctx, Event{Kind: Refused, Query: a.query, Err: err})
	return err
}

// tell reports what there is to report of a statement that was sent, with this
// outcome. On ErrSkip database/sql prepares it and comes again.
func (a *attempt) tell(ctx context.Context, err error) {
	if err == driver.ErrSkip {
		return
	}
	for _, e := range a.events {
		a.fence.report(ctx, e)
	}
	a.events = nil
}

func (f *fence) unguardable(r rewrite.Refusal) error {
	err := &UnguardableError{Table: r.Own, Reason: r.Reason, Offset: max(r.Offset, 0)}
	if r.Table >= 0 {
		err.Table = f.tables[r.Table].name
	}
	return err
}

// tokens returns the context's tokens for the table; none if it takes none, or if
// it is Optional and there is none.
func (t *table) tokens(ctx context.Context) ([]Token, error) {
	if !t.rules.Fenced() {
		return nil, nil
	}
	var found []Token
	if t.rules.Key != "" {
		found = keyedFences(ctx, t.resource)
	} else {
		held := fencesFrom(ctx)
		for i := range held {
			if held[i].Name == t.resource {
				found = held[i : i+1]
			}
		}
	}
	for _, token := range found {
		if err := token.Validate(); err != nil {
			return nil, fmt.Errorf("%w (table %q)", err, t.name)
		}
	}
	if len(found) == 0 && !t.optional {
		name := t.resource
		if t.rules.Key != "" {
			name += "/<" + t.rules.Key + ">"
		}
		return nil, fmt.Errorf("%w: table %q: the context carries no token called %q; add one with WithFence", ErrNoFence, t.name, name)
	}
	return found, nil
}

// findTokens finds the context's tokens for the plan's tables. args are the
// application's own arguments.
func (a *attempt) findTokens(ctx context.Context, args []driver.NamedValue) (err error) {
	if len(a.plan.Tables) == 1 {
		a.tokens, err = a.table(0).tokens(ctx)
	} else {
		a.first = make([]int, len(a.plan.Tables))
		for i := range a.plan.Tables {
			tokens, err := a.table(i).tokens(ctx)
			if err != nil {
				return err
			}
			a.first[i] = len(a.tokens)
			a.tokens = append(a.tokens, tokens...)
		}
	}
	for i := range a.plan.Targets {
		if err == nil && a.plan.Targets[i].Keys != nil {
			err = a.matchRows(i, args)
		}
		if err == nil && a.plan.Targets[i].AssignsKey {
			err = a.keepKeys(i, args)
		}
	}
	return err
}

// dropTokens leaves the attempt without tokens: Observe mode counts serials also
// where it would have refused the write for want of one.
func (a *attempt) dropTokens() {
	a.tokens, a.rows = nil, nil
	clear(a.first)
}

// table returns the plan's table i.
func (a *attempt) table(i int) *table { return a.fence.tables[a.plan.Tables[i]] }

// tokensOf returns where the tokens of the plan's table i are.
func (a *attempt) tokensOf(i int) (lo, hi int) {
	lo, hi = 0, len(a.tokens)
	if i < len(a.first) {
		lo = a.first[i]
	}
	if i+1 < len(a.first) {
		hi = a.first[i+1]
	}
	return lo, hi
}

// tableOf returns the table that a token is for.
func (a *attempt) tableOf(token int) *table {
	i := len(a.plan.Tables) - 1
	for i > 0 && token < a.first[i] {
		i--
	}
	return a.table(i)
}

// key returns the key of the row that a token of the table covers.
func (t *table) key(token Token) string {
	if t.rules.Key == "" {
		return ""
	}
	return strings.TrimPrefix(token.Name, t.resource+"/")
}

// render writes the guarded statement.
func (a *attempt) render() error {
	v := a.values
	// Of one table and token, which is common, the values stay on the stack.
	var token [1]rewrite.Token
	var table [1]rewrite.TableValues
	if t := a.table(0); len(a.plan.Tables) == 1 && len(a.tokens) <= 1 {
		for i := range a.tokens {
			token[i] = t.value(a.tokens[i])
		}
		table[0] = rewrite.TableValues{Tokens: token[:len(a.tokens)], Unfenced: len(a.tokens) == 0 && t.rules.Fenced()}
		v.Tables = table[:]
	} else {
		v.Tables = a.tableValues()
	}
	r, err := a.plan.Render(v)
	if err != nil {
		return a.fence.unrendered(err)
	}
	a.sql, a.args, a.moved = r.SQL, a.own, a.rewritten
	if len(r.Args) == 0 {
		return nil
	}
	args := make([]driver.NamedValue, len(a.own), len(a.own)+len(r.Args))
	copy(args, a.own)
	for _, arg := range r.Args {
		args = append(args, driver.NamedValue{Ordinal: len(args) + 1, Value: arg.Value(&v)})
	}
	a.args = args
	return nil
}

// tableValues returns the tokens of the plan's tables.
func (a *attempt) tableValues() []rewrite.TableValues {
	tables := make([]rewrite.TableValues, len(a.plan.Tables))
	tokens := make([]rewrite.Token, len(a.tokens))
	for i := range tables {
		t := a.table(i)
		lo, hi := a.tokensOf(i)
		for n := lo; n < hi; n++ {
			tokens[n] = t.value(a.tokens[n])
		}
		tables[i] = rewrite.TableValues{Tokens: tokens[lo:hi], Unfenced: lo == hi && t.rules.Fenced()}
		if a.rows != nil {
			tables[i].Rows = a.rows[i]
		}
	}
	return tables
}

// value returns a token of the table for a rendering.
func (t *table) value(token Token) rewrite.Token {
	return rewrite.Token{Name: token.Name, Key: t.key(token), Value: token.Value}
}

// unrendered returns the typed error for why a guarded statement can't be rendered.
func (f *fence) unrendered(err error) error {
	var refusal *rewrite.Refusal
	if errors.As(err, &refusal) {
		return f.unguardable(*refusal)
	}
	return fmt.Errorf("sqlfence: %w", err)
}

// inlined reports whether pgx may write values into the text at other places than the
// server reads them.
func (a *attempt) inlined() bool { return !a.fence.profile.noOptions && !a.plan.Inlines() }

// errInlined refuses a statement in which pgx may take other places than the server
// for placeholders; that its connection is in such a mode can't be seen from here.
var errInlined = &UnguardableError{
	Reason: "in the simple protocol pgx would write the arguments into the text at other places than the server reads them; " +
		"put names with $ in double quotes, a blank before strings, and pass strings with quotes or $ as arguments"}

// observe turns the attempt into one that refuses nothing, after it was refused
// for a reason. A mark doesn't rise to a token that was never issued, or it would be
// above all that are.
func (a *attempt) observe(reason error) error {
	if errors.Is(reason, ErrNotIssued) {
		a.dropTokens()
	}
	a.values.Observe = true
	return a.render()
}

// explain returns err, or the typed error for it if the guard raised it.
func (a *attempt) explain(err error) error {
	m, ok := rewrite.ReadMarker(err.Error())
	if !ok {
		return err
	}
	switch m.Kind {
	case rewrite.Conflict, rewrite.Assigned, rewrite.Required, rewrite.Gone, rewrite.NotSerial, rewrite.Locked:
		if m.Table < 0 || m.Table >= len(a.plan.Tables) {
			return err
		}
		if m.Kind == rewrite.Locked {
			return a.explainLocked(m, err)
		}
		return a.explainSerial(m, err)
	case rewrite.NotInteger:
		return &rowError{ErrUnguardable, "a fence column, or the column token of fencing_tokens, isn't an integer column; alter it to bigint", err}
	}
	if m.Token < 0 || m.Token >= len(a.tokens) {
		return err
	}
	token, t := a.tokens[m.Token], a.tableOf(m.Token)
	switch m.Kind {
	case rewrite.Stale:
		return &StaleError{Table: t.name, Token: token, Current: m.Current, err: err}
	case rewrite.NotNewest:
		if m.Current > token.Value {
			return &StaleError{Table: t.name, Token: token, Current: m.Current, err: err}
		}
		return &NotIssuedError{Table: t.name, Token: token, Current: m.Current, err: err}
	case rewrite.OutOfScope:
		return &rowError{ErrOutOfScope, t.outOfScope(m.Key), err}
	default:
		return &rowError{ErrUnknownName, fmt.Sprintf("%q; create it with tokens.Ensure or tokens.Issue", token.Name), err}
	}
}

func (t *table) outOfScope(key string) string {
	return fmt.Sprintf("table %q: none of the context's tokens is called %q", t.name, t.resource+"/"+key)
}
