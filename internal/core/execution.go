// Package core decides what happens to each statement of a fenced database: it passes, is guarded, or is refused. Its
// two adapters, package sqlfence for database/sql and module fencepgx for pgx, send the statements and return the
// errors.
package core

import (
	"context"
	"database/sql/driver"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
	"github.com/sqlfence/sqlfence/rewrite"
)

// An Execution is one run of a statement, from the application's request to the database's response.
// [Execution.classifyStatement] decides whether the statement needs a guard, [Execution.resolveTokens] resolves the
// guard's tokens, [Execution.buildSQL] builds the guarded SQL string, [run] sends it, and [Execution.classifyError]
// turns the guard's error into a typed error.
type Execution struct {
	conn     *Conn
	registry *registry // of all tables, or of the enforced tables
	rows     bool      // the application wants rows: the request is a Query, not an Exec
	plan     *rewrite.Plan
	request  Request  // the application's request
	read     reading  // the request that is planned
	sent     Request  // the request to the base driver
	with     guards   // the values that the guard compares
	log      eventLog // events for observers
}

// A Request is a statement, its arguments, and the prepared statement that executes it, if any.
type Request struct {
	Query string
	Args  []driver.NamedValue
	Added []rewrite.Arg // the guard's arguments among Args

	// Escapes is how the server reads the statement's string literals, if that depends on the session's settings. A
	// statement prepared under different settings may have a different meaning.
	Escapes lex.Escapes

	// Stmt is the application's prepared statement, or a cached one of the adapter. Nil means the connection itself.
	Stmt any
}

// A reading is the request that is planned: the application's request, or the result of a query rewriter among its
// arguments.
type reading struct {
	Request
	options   int      // number of driver options at the front of the arguments
	unplanned error    // why the statement can't be guarded, whatever its plan is; nil if it can
	executes  []string // the prepared statements that an EXECUTE may run
	keeps     bool     // the adapter may cache the prepared statement
	planKind  guard.PlanKind

	names      map[string]int // places of the arguments, see argNames
	namesKnown bool
}

// guards are the values that the rows and the ledger are compared with.
type guards struct {
	tokens resolvedTokens
	values rewrite.Values // without the tables' tokens, which are in tokens
	seals  sealing
}

// An outcome is the decision about an execution. The zero value sends nothing.
type outcome uint8

const (
	refused outcome = iota // send nothing
	passed                 // send it without a guard
	guarded                // send it with a guard
)

// A Call is an adapter's implementation of Exec or Query. T is the type of the result.
type Call[T any] interface {
	// Prepare prepares the statement of a guarded execution, if it is sent prepared. After an error nothing was sent.
	Prepare(ctx context.Context, e *Execution) error

	// Send sends a request.
	Send(ctx context.Context, l ConnAdapter, r Request) (T, error)

	// Inspect checks the response to a guarded statement for a refusal.
	Inspect(ctx context.Context, e *Execution, got T) (T, error)

	// Failed releases the statement that Prepare prepared, after an error of Send or Inspect.
	Failed(e *Execution, err error)

	// Finish returns the application's result of a guarded statement.
	Finish(ctx context.Context, e *Execution, got T, err error) (T, error)
}

// NewExecution returns an execution of r by its plan, for [Execute]. rows: the application wants rows. NewExecution
// reuses the connection's preallocated Execution unless that one is in use.
func (s *Conn) NewExecution(r Request, plan *rewrite.Plan, rows bool) *Execution {
	e := &s.executing
	if e.conn != nil { // a token source may execute something on the connection
		return s.apart(r, plan, rows)
	}
	e.conn, e.registry, e.rows, e.plan, e.request = s, &s.settings.registry, rows, plan, r
	return e
}

// apart returns an execution that isn't the connection's preallocated one.
func (s *Conn) apart(r Request, plan *rewrite.Plan, rows bool) *Execution {
	return &Execution{conn: s, registry: &s.settings.registry, rows: rows, plan: plan, request: r}
}

// Execute runs a statement for the application: it sends it with its guard, sends it without one, or refuses it.
func Execute[T any](ctx context.Context, e *Execution, c Call[T]) (T, error) {
	s := e.conn
	defer s.leave(e)
	s.noteHold()
	s.reported = nil
	if s.finished {
		var nothing T
		return nothing, s.Explain(ctx, driver.ErrBadConn)
	}
	got, err := perform(ctx, e, c)
	if err != nil {
		err = s.Explain(ctx, err)
		e.reportFailure(ctx, err)
	}
	return got, err
}

// leave frees the connection's preallocated Execution and its values.
func (s *Conn) leave(e *Execution) {
	if e == &s.executing {
		s.executing = Execution{}
	}
}

func perform[T any](ctx context.Context, e *Execution, c Call[T]) (T, error) {
	if e.conn.txContext.begun {
		ctx = e.conn.context(ctx)
	}
	decided, err := e.decide(ctx)
	switch decided {
	case refused:
		var nothing T
		return nothing, err
	case guarded:
		return run(ctx, e, c)
	}
	e.conn.Follow(ctx, e.sent.Query)
	commits := e.conn.Commits(e.sent.Query)
	if err := ctx.Err(); commits && err != nil {
		var nothing T
		return nothing, err // nothing was sent
	}
	got, err := c.Send(ctx, e.conn.adapter, e.sent)
	err = e.followPassed(ctx, commits, err)
	e.reportSent(ctx, err)
	return got, err
}

// followPassed records how an unguarded statement that ended with err has changed the session and the transaction, and
// returns the application's error. commits reports whether the statement may have committed guarded statements.
func (e *Execution) followPassed(ctx context.Context, commits bool, err error) error {
	s := e.conn
	if ended := s.muted(ctx); ended != nil && err == nil && !e.rows && trusted.Is(ctx, e.read.Query) {
		err = ended
	}
	s.followTx(e.sent.Query, err)
	s.followHold(ctx, e.read.Query, err)
	s.FollowRollback(err)
	if commits {
		err = s.followCommit(err)
	}
	if err == nil {
		s.adapter.Touch()
		s.changesDatabase(ctx, e.read.Query)
	}
	err, _ = s.settings.refusedBySeal(err)
	return err
}

// decide does all work on a statement before it is sent.
func (e *Execution) decide(ctx context.Context) (outcome, error) {
	decided, err := e.classifyStatement(ctx)
	if decided == guarded {
		decided, err = e.guard(ctx)
	}
	return decided, err
}

// classifyStatement plans the statement and decides whether it passes, or goes on to the method guard. It sets the
// requests in e.read and e.sent.
func (e *Execution) classifyStatement(ctx context.Context) (outcome, error) {
	e.read, e.sent = reading{Request: e.request}, e.request
	var failed error
	if e.read.unplanned, failed = e.readOptions(ctx); failed != nil {
		return refused, failed
	}
	if err := e.readBySettings(ctx); err != nil {
		return refused, err
	}
	if e.read.unplanned == nil {
		e.read.unplanned = e.checkArguments()
	}
	if err := e.endsHold(ctx); err != nil {
		return refused, err
	}
	if e.passes() && !trusted.Is(ctx, e.read.Query) {
		if err := e.readExecuted(ctx); err != nil {
			return refused, err
		}
	}
	switch why, bypassed := e.conn.settings.bypassReason(ctx); {
	case trusted.Is(ctx, e.read.Query):
		if err := e.conn.checkOwnTables(ctx, e.read.Query); err != nil {
			return refused, err
		}
		e.sent.Query = e.conn.settings.placed(ctx, e.read.Query)
	case e.passes():
		e.notePassed()
	case bypassed:
		event := e.event(Bypassed)
		event.Reason = why
		e.note(event)
	default:
		return guarded, nil
	}
	return passed, nil
}

// readBySettings plans a statement by the session's settings, if they decide how the statement is read. It queries
// unknown settings. If an argument could end its own string literal in the connection's encoding, readBySettings
// returns driver.ErrSkip, so that database/sql prepares the statement.
func (e *Execution) readBySettings(ctx context.Context) error {
	s := e.conn
	splits := e.request.Stmt == nil && s.session.HasCharset() && e.maySplit()
	if _, bypassed := s.settings.bypassReason(ctx); bypassed || !e.plan.Refusal.Ambiguous && !splits {
		return nil
	}
	reading, err := s.session.Reading(ctx, (*queryable)(s), s.inTx)
	if err != nil {
		if s.settings.observes() {
			return nil
		}
		return err
	}
	if splits && reading.Splits() {
		return driver.ErrSkip
	}
	if e.plan.Refusal.Ambiguous {
		e.read.Escapes, e.sent.Escapes = reading, reading
		e.read.planKind = guard.Reading(reading)
		e.plan = e.rewriter().PlanFor(e.read.Query, e.read.planKind)
	}
	return nil
}

// checkArguments returns an error if the server may read an argument as a statement that wasn't planned, or if an
// argument names a setting that guards may depend on. A missing argument needs no check: the statement is only
// prepared, or fails.
func (e *Execution) checkArguments() error {
	if e.plan.Verdict != guard.Refuse && len(e.request.Args) > 0 && e.read.Escapes.Mode() != lex.EscapesAll {
		if why := e.conn.adapter.Misplaces(e.request, e.rows); why != "" {
			return e.registry.unguardable(nil, "", why)
		}
	}
	for _, n := range e.plan.Settings {
		given := e.read.Args[e.read.options:]
		if n > len(given) {
			continue
		}
		if name, ok := given[n-1].Value.(string); !ok || !sqltext.IsApplicationSetting(name) {
			return e.registry.unguardable(nil, "", sqltext.DynamicSetting)
		}
	}
	return nil
}

// passes reports whether the statement needs no guard.
func (e *Execution) passes() bool { return e.read.unplanned == nil && e.plan.Verdict == guard.Pass }

// guard guards the statement, or refuses it and reports the refusal.
func (e *Execution) guard(ctx context.Context) (outcome, error) {
	decided, reason := e.build(ctx)
	if decided == refused && e.registry != e.conn.settings.enforced {
		decided, reason = e.withoutObserved(ctx, reason)
	}
	if decided == refused {
		if bypassesNothing(ctx) {
			reason = withoutReason{reason}
		}
		e.report(ctx, e.refusal(Refused, reason))
	}
	return decided, reason
}

// build resolves the guard's values and builds the guarded SQL string, or returns why the statement is refused.
func (e *Execution) build(ctx context.Context) (outcome, error) {
	switch {
	case e.read.unplanned != nil:
		return refused, e.read.unplanned
	case e.plan.Verdict == guard.Refuse:
		return refused, e.registry.refused(&e.plan.Refusal)
	case e.plan.MultiStatement > 0 && !e.runsMultiStatement():
		return refused, e.registry.multiStatementError(e.plan)
	}
	if decided, err := e.resolveTokens(ctx); decided != guarded {
		return decided, err
	}
	if err := e.conn.mustRollBack; err != nil {
		return refused, err
	}
	if err := e.checkServer(ctx); err != nil {
		return refused, err
	}
	if e.plan.Replaces() != nil {
		if err := e.learnKeys(ctx); err != nil {
			return refused, err
		}
	}
	return e.buildSQL()
}

// Observes reports whether the statement writes to an observed table.
func (e *Execution) Observes() bool { return e.registry.observed && e.writesTo(Observe) }

// runsMultiStatement reports whether the execution runs each statement of a multi-statement string exactly once: an
// Exec on the connection itself, without arguments. Not for an observed table: the string may be sent twice.
func (e *Execution) runsMultiStatement() bool {
	return !e.rows && e.read.Stmt == nil && len(e.read.Args) == 0 && !e.Observes()
}

// resolveTokens resolves the statement's tokens, and the other values of the context that the tables' rules use.
func (e *Execution) resolveTokens(ctx context.Context) (outcome, error) {
	for _, find := range e.registry.finds {
		if err := find(e, ctx); err != nil && !e.tolerates(err) {
			return refused, err
		}
	}
	if err := e.findTokens(ctx); err != nil {
		switch {
		case !e.tolerates(err):
			return refused, err
		case !e.plan.Tokenless, e.presentsClaims():
			return passed, nil
		}
		e.with.tokens.drop()
	} else if e.registry.optional {
		e.noteUnfenced()
	}
	if len(e.with.tokens.all) == 0 && !e.plan.Tokenless && !e.abortsUnfenced() { // no table needs a token
		return passed, nil
	}
	return guarded, nil
}

// abortsUnfenced reports whether the statement needs the guard's OR ABORT although it needs no token, because a
// constraint declared with ON CONFLICT REPLACE could make the statement delete existing rows.
func (e *Execution) abortsUnfenced() bool {
	for i := range e.plan.Targets {
		if t := &e.plan.Targets[i]; e.plan.Aborts && t.Free && !e.table(t.Table).Optional {
			return true
		}
	}
	return false
}

// findTokens resolves the tokens of the plan's tables, and checks that the tokens cover the keys that the statement
// writes.
func (e *Execution) findTokens(ctx context.Context) error {
	if err := e.with.tokens.find(ctx, e); err != nil {
		return err
	}
	for i := range e.plan.Targets {
		if e.plan.Targets[i].Keys != nil {
			if err := e.matchRows(i); err != nil {
				return err
			}
		}
		if e.plan.Targets[i].OneKey {
			if err := e.oneKey(i); err != nil {
				return err
			}
		}
		if e.plan.Targets[i].AssignsKey {
			if err := e.keepKeys(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// run sends a guarded statement.
func run[T any](ctx context.Context, e *Execution, c Call[T]) (T, error) {
	if e.rows { // the rows use the execution after run has returned
		held := *e
		e = &held
	}
	send := enforce[T]
	if e.Observes() {
		send = observe[T]
	}
	got, err := send(ctx, e, c)
	return c.Finish(ctx, e, got, err)
}

// try sends the statement once.
func try[T any](ctx context.Context, e *Execution, c Call[T]) (T, error) {
	got, err := c.Send(ctx, e.conn.adapter, e.sent)
	if err == nil {
		got, err = c.Inspect(ctx, e, got)
	}
	if err != nil {
		e.conn.FollowRollback(err)
	}
	return got, err
}

// table returns the plan's table i.
func (e *Execution) table(i int) *Table { return e.registry.table(e.plan, i) }

// find returns the index of the plan's first table that meets a condition, or -1.
func (e *Execution) find(is func(*Table) bool) int {
	for i := range e.plan.Tables {
		if is(e.table(i)) {
			return i
		}
	}
	return -1
}
