package sqlfence

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
	"github.com/sqlfence/sqlfence/rewrite"
)

// An execution is one run of a statement, from what the application asked for to
// what the database answers. It goes straight down: [execution.admit] decides
// whether it is to be guarded, [execution.collect] finds what to guard it with,
// [execution.render] writes the guarded statement, [run] sends it, and
// [execution.classify] makes a typed error of what the guard raised.
type execution struct {
	state    *connState
	registry *registry // of all tables, or of those that are enforced
	rows     bool      // the application wants rows: it is a Query, not an Exec
	plan     *rewrite.Plan
	asked    request // by the application
	read     reading // what is planned, by the registry
	sent     request // what goes to the base driver
	with     guards  // of a guarded execution
	told     telling
}

// A request is a statement with its arguments, and the prepared statement that
// executes it, the application's or one that is kept: neither for the connection itself.
type request struct {
	query string
	args  []driver.NamedValue
	added []rewrite.Arg // the guard's among them
	stmt  *stmt
	kept  *keptStmt
}

// A reading is the request that was asked for, or the one that a query rewriter among its
// arguments made of it, as far as it is understood.
type reading struct {
	request
	options   int   // how many of the arguments are options of the driver, in front
	unplanned error // why it can't be guarded, whatever the plan is; nil for no such reason
	keeps     bool  // the statement may be kept prepared

	names      map[string]int // of the arguments, as argNames has them
	namesKnown bool
}

// Guards are what the rows are compared with, and the ledger.
type guards struct {
	held   heldTokens
	values rewrite.Values // but those of the tables, which are held
	seals  sealing
}

// An outcome is what is decided about an execution. The zero value sends nothing.
type outcome uint8

const (
	refused outcome = iota // send nothing
	passed                 // send it without a guard
	guarded                // send it with a guard
)

// A call is what Exec and Query do differently.
type call[T any] struct {
	// send sends a request to the base driver.
	send func(ctx context.Context, s *connState, r request) (T, error)
	// inspect looks for a refusal in the answer to a guarded statement.
	inspect func(ctx context.Context, e *execution, got T) (T, error)
	// finish returns what the application gets of a guarded statement.
	finish func(ctx context.Context, e *execution, got T, err error) (T, error)
}

// execute runs a statement for the application: with its guard, without one, or not
// at all.
func execute[T any](ctx context.Context, e execution, c call[T]) (T, error) {
	got, err := perform(ctx, e, c)
	return got, e.state.explain(ctx, err)
}

func perform[T any](ctx context.Context, e execution, c call[T]) (T, error) {
	ctx = e.state.context(ctx)
	decided, err := e.admit(ctx)
	if decided == guarded {
		decided, err = e.guard(ctx)
	}
	switch decided {
	case refused:
		var nothing T
		return nothing, err
	case guarded:
		return run(ctx, e, c)
	}
	e.state.follow(ctx, e.sent.query)
	commits := e.state.commits(e.sent.query)
	if err := ctx.Err(); commits && err != nil {
		var nothing T
		return nothing, err // nothing was sent
	}
	got, err := c.send(ctx, e.state, e.sent)
	if ended := e.state.muted(ctx); ended != nil && err == nil && !e.rows && trusted.Is(ctx, e.read.query) {
		err = ended
	}
	e.state.followTx(e.sent.query, err)
	e.state.followRollback(err)
	if commits {
		err = e.state.followCommit(err)
	}
	if err == nil {
		e.state.liveness.Touch()
		e.state.changesDatabase(ctx, e.read.query)
	}
	err, _ = e.state.settings.refusedBySeal(err)
	e.reportSent(ctx, err)
	return got, err
}

// admit reads the statement and decides whether it is to be guarded, or refused, by
// guard. It fills in the execution's requests.
func (e *execution) admit(ctx context.Context) (outcome, error) {
	e.read, e.sent = reading{request: e.asked}, e.asked
	var failed error
	if e.read.unplanned, failed = e.readOptions(ctx); failed != nil {
		return refused, failed
	}
	if e.read.unplanned == nil {
		e.read.unplanned = e.unseenSetting()
	}
	switch why, bypassed := e.state.settings.bypassReason(ctx); {
	case trusted.Is(ctx, e.read.query):
		if err := e.state.checkOwn(ctx, e.read.query); err != nil {
			return refused, err
		}
		e.sent.query = e.state.settings.placed(ctx, e.read.query)
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

// unseenSetting refuses a statement with an argument that names a setting which guards may depend on. Without the
// argument the statement is prepared, or fails.
func (e *execution) unseenSetting() error {
	for _, n := range e.plan.Settings {
		given := e.read.args[e.read.options:]
		if n > len(given) {
			continue
		}
		if name, ok := given[n-1].Value.(string); !ok || !sqltext.IsApplicationSetting(name) {
			return unguardable("", sqltext.UnseenSetting)
		}
	}
	return nil
}

// passes reports whether the statement needs no guard.
func (e *execution) passes() bool { return e.read.unplanned == nil && e.plan.Verdict == rewrite.Pass }

// guard guards the statement, or refuses it, which is reported.
func (e *execution) guard(ctx context.Context) (outcome, error) {
	decided, reason := e.build(ctx)
	if decided == refused && e.registry != e.state.settings.enforced {
		decided, reason = e.withoutObserved(ctx, reason)
	}
	if decided == refused {
		if bypassesNothing(ctx) {
			reason = withoutReason{reason}
		}
		e.state.settings.report(ctx, e.refusal(Refused, reason))
	}
	return decided, reason
}

// build finds what the statement is to be guarded with, and writes it, or returns why
// it is refused.
func (e *execution) build(ctx context.Context) (outcome, error) {
	switch {
	case e.read.unplanned != nil:
		return refused, e.read.unplanned
	case e.plan.Verdict == rewrite.Refuse:
		return refused, e.registry.unguardable(&e.plan.Refusal)
	case e.plan.Several > 0 && !e.runsSeveral():
		return refused, e.registry.several(e.plan)
	}
	if decided, err := e.collect(ctx); decided != guarded {
		return decided, err
	}
	if err := e.state.checkRollback(); err != nil {
		return refused, err
	}
	if err := e.checkSession(ctx); err != nil {
		return refused, err
	}
	return e.render()
}

// runsSeveral reports whether the execution runs all statements of a text, and each of them
// once: an Exec of the connection itself, without arguments. For an observed table it might
// send them a second time.
func (e *execution) runsSeveral() bool {
	return !e.rows && e.read.stmt == nil && len(e.read.args) == 0 && !e.observes()
}

// collect finds what the statement is to be compared with: the serial and the
// editor of the context, and its tokens.
func (e *execution) collect(ctx context.Context) (outcome, error) {
	if err := e.findSerial(ctx); err != nil && !e.tolerates(err) {
		return refused, err
	}
	if err := e.findEditor(ctx); err != nil && !e.tolerates(err) {
		return refused, err
	}
	if err := e.findTokens(ctx); err != nil {
		switch {
		case !e.tolerates(err):
			return refused, err
		case !e.plan.Tokenless:
			return passed, nil
		}
		e.with.held.drop()
	} else {
		e.noteUnfenced()
	}
	if len(e.with.held.all) == 0 && !e.plan.Tokenless && !e.abortsUnfenced() { // no table needs any
		return passed, nil
	}
	return guarded, nil
}

// abortsUnfenced reports whether the statement needs the guard's OR ABORT although it needs
// no token: a constraint's declaration could have it delete rows that are there.
func (e *execution) abortsUnfenced() bool {
	return e.plan.Aborts && slices.ContainsFunc(e.plan.Targets, func(t rewrite.Target) bool {
		return t.New && !e.table(t.Table).optional
	})
}

// findTokens finds the context's tokens for the plan's tables, and checks that the
// keys which the statement writes are theirs.
func (e *execution) findTokens(ctx context.Context) error {
	if err := e.with.held.find(ctx, e); err != nil {
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
func run[T any](ctx context.Context, rendered execution, c call[T]) (T, error) {
	e := rendered.state.hold(&rendered)
	defer e.leave()
	send := enforce[T]
	if e.observes() {
		send = observe[T]
	}
	got, err := send(ctx, e, c)
	return c.finish(ctx, e, got, err)
}

// hold returns the execution at an address. The rows of a query go on using it; an Exec is
// the only one of its connection, and takes the place that is kept for it there.
func (s *connState) hold(e *execution) *execution {
	held := &s.executing
	if e.rows {
		held = new(execution)
	}
	*held = *e
	return held
}

// leave gives up the place of an Exec, and lets go of its values.
func (e *execution) leave() {
	if !e.rows {
		*e = execution{}
	}
}

// try sends the statement once.
func try[T any](ctx context.Context, e *execution, c call[T]) (T, error) {
	got, err := c.send(ctx, e.state, e.sent)
	if err == nil {
		got, err = c.inspect(ctx, e, got)
	}
	e.state.followRollback(err)
	return got, err
}

// table returns the plan's table i.
func (e *execution) table(i int) *table { return e.registry.tables[e.plan.Tables[i]] }

var (
	execCall  = call[driver.Result]{send: sendExec, inspect: inspectResult, finish: finishResult}
	queryCall = call[driver.Rows]{send: sendQuery, inspect: inspectRows, finish: finishRows}
)

func sendExec(ctx context.Context, s *connState, r request) (driver.Result, error) {
	switch {
	case r.stmt != nil:
		return r.stmt.exec(ctx, &r)
	case r.kept != nil:
		return basedriver.ExecStmt(ctx, r.kept.base, r.args)
	}
	return basedriver.Exec(ctx, s.base, r.query, r.args)
}

func sendQuery(ctx context.Context, s *connState, r request) (driver.Rows, error) {
	switch {
	case r.stmt != nil:
		return r.stmt.rows(ctx, &r)
	case r.kept != nil:
		return basedriver.QueryStmt(ctx, r.kept.base, r.args)
	}
	return basedriver.Query(ctx, s.base, r.query, r.args)
}

func finishResult(ctx context.Context, e *execution, res driver.Result, err error) (driver.Result, error) {
	if err == nil {
		e.reportGuarded(ctx)
		e.executed()
	}
	return res, err
}
