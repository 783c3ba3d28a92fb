package core

import (
	"context"

	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/trusted"
	"github.com/sqlfence/sqlfence/rewrite"
)

// PreparesPlain returns the SQL string to prepare with the driver alone, and true, if no execution of the statement
// must be inspected: the statement concerns no registered table, and its arguments can't change its meaning.
func (s *Conn) PreparesPlain(ctx context.Context, query string, plan *rewrite.Plan) (string, bool) {
	s.reported = nil
	s.Follow(ctx, query)
	// Each execution must be inspected if arguments may be options, if the statement may change the session or a
	// transaction, or if an observer gets Passed events.
	settings := s.settings
	if plan.Verdict != guard.Pass || len(plan.Settings) > 0 || settings.kinds.Has(Passed) ||
		!settings.profile.NoOptions && len(settings.tables) > 0 || s.follows(query) ||
		s.MayExecute(query) || trusted.HoldOf(ctx, query) != nil {
		return "", false
	}
	return settings.placed(ctx, query), true
}

// A Form is the SQL string that a statement is prepared with, for one token per table, which is the most common case,
// or for the tokens of Prepare's context.
type Form struct {
	Text  string
	Added []rewrite.Arg // the guard's arguments

	Escapes lex.Escapes // see [Request.Escapes]

	// Inputs is the number of the application's arguments if database/sql must check it, because the driver doesn't;
	// else -1.
	Inputs int
}

// PrepareForm returns the form in which a statement is prepared, or the reason if the statement must not be prepared.
func (s *Conn) PrepareForm(ctx context.Context, query string, plan *rewrite.Plan) (Form, error) {
	e := s.apart(Request{Query: query}, plan, false)
	var reason error
	if plan.Verdict == guard.Guard && e.checksLedger() &&
		(s.session.LacksFunction() || !e.rewriter().Wrote(plan)) {
		e.read.Query = query
		reason = e.know(ctx, session.Moment{InTx: s.inTx})
	}
	if v := s.settings.planKind(ctx); v != 0 && plan.Verdict == guard.Guard {
		e.plan = e.rewriter().PlanFor(query, v) // the executions likely have the same serial and takeover
	}
	if decided, err := e.classifyStatement(ctx); decided != guarded {
		return Form{Text: e.sent.Query, Escapes: e.sent.Escapes, Inputs: -1}, err
	}
	plain := Form{Text: query, Escapes: e.read.Escapes, Inputs: -1}
	switch {
	case e.Observes(): // the guard's error must not reach the application: see observe
		return plain, nil
	case reason != nil:
	case e.plan.Verdict == guard.Refuse:
		reason = s.settings.refused(&e.plan.Refusal)
	case e.plan.MultiStatement > 0:
		reason = s.settings.multiStatementError(e.plan)
	case !e.plan.Params:
		return plain, nil
	case e.locksOther() && !s.session.Knows() && s.settings.profile.Session.OpenTx != "":
		return plain, nil // this server may not understand the guard
	default:
		text, added, err := e.likely(ctx)
		if err == nil {
			return Form{text, added, e.read.Escapes, s.inputs(e.plan, added)}, nil
		}
		reason = s.settings.unrendered(err)
	}
	return plain, e.refusePrepared(ctx, reason)
}

// likely returns the statement's form for the tokens of Prepare's context if these are several, or a token that the
// statement doesn't need: some drivers make database/sql prepare a statement for one execution, with the same context.
// Otherwise likely returns the form for one token per table ([rewrite.Plan].Default).
func (e *Execution) likely(ctx context.Context) (text string, added []rewrite.Arg, err error) {
	tokens := TokensFrom(ctx)
	if len(tokens) > 0 && e.with.tokens.choose(e, tokens) == nil && len(e.with.tokens.all) > 0 &&
		(len(e.with.tokens.all) > 1 || e.plan.Tokenless) {
		text, added, err = e.plan.Render(rewrite.Values{Tables: e.with.tokens.values(e)})
		if err == nil && len(added) > 0 {
			return text, added, nil
		}
	}
	return e.plan.Default()
}

// inputs is [Form.Inputs]. The guard numbers the placeholders, and a driver may not count numbered placeholders. Then
// database/sql must count the arguments, because a missing one would be NULL.
func (s *Conn) inputs(plan *rewrite.Plan, added []rewrite.Arg) int {
	if p := s.settings.profile; len(added) == 0 || p.Errors.CountsArgs.Is() || p.SkipsArgCheck {
		return -1
	}
	return plan.Inputs
}

// PrepareFailed returns the application's error if preparing a form failed with err.
func (s *Conn) PrepareFailed(ctx context.Context, query string, plan *rewrite.Plan, f Form, err error) error {
	s.FollowRollback(err) // a deadlock of metadata locks
	e := s.apart(Request{Query: query}, plan, false)
	e.sent.Query = f.Text
	err = e.outdated(err)
	if refused := s.refuses(ctx); refused != nil {
		err = refused
	} else {
		err = e.explain(ctx, err)
	}
	e.reportFailure(ctx, err)
	return err
}
