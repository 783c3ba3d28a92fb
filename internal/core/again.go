package core

import (
	"context"
	"strings"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/session"
)

// mostTurns is how often a statement is sent at most. A seal may come or go while it waits for a lock, also between the
// error and the question that follows it, so that the same text is right again.
const mostTurns = 10

// enforce sends an execution with guards that hold. The session's known facts decide how a guard is
// written. Where the error says that a fact was wrong, enforce corrects the fact, writes the
// statement anew and sends it again. Nothing else is sent twice.
func enforce[T any](ctx context.Context, e *Execution, c Call[T]) (got T, err error) {
	if err := e.linked(ctx); err != nil {
		return got, err
	}
	began := e.begin()
	got, sent, err := attempt(ctx, e, c)
	for turn := 1; err != nil && !basedriver.IsSkip(err) && turn < mostTurns; turn++ {
		again, typed := e.correct(ctx, err)
		if again == refused {
			e.report(ctx, e.refusal(Refused, typed))
			return got, typed
		}
		if again != guarded {
			err = typed
			break
		}
		if got, sent, err = attempt(ctx, e, c); dberr.SQLState(err) == dberr.InFailedTransaction {
			err = typed // of a transaction that a statement has begun
			break
		}
	}
	if basedriver.IsSkip(err) { // no refusal: it is prepared next
		return got, err
	}
	if err == nil {
		e.conn.link.Touch()
		e.end(began)
	} else {
		err = e.staleFirst(ctx, err)
	}
	if !sent {
		err, _ = e.reported(ctx, err)
		return got, err
	}
	err, raised := e.answered(ctx, err)
	if !raised {
		e.reportSent(ctx, err)
	}
	return got, err
}

// tryLearning is try for Observe mode. Of the facts behind the text only one is corrected there: the unique keys of a
// REPLACE, which its first guard always raises.
func tryLearning[T any](ctx context.Context, e *Execution, c Call[T]) (T, error) {
	got, err := try(ctx, e, c)
	for turn := 1; turn < mostTurns && e.wrong(err) == session.Uniqueness; turn++ {
		if _, refusal := e.render(); refusal != nil {
			break
		}
		got, err = try(ctx, e, c)
	}
	return got, err
}

// attempt prepares the statement, where it is to be sent prepared, and sends it. Unless it was sent, nothing of it
// was executed.
func attempt[T any](ctx context.Context, e *Execution, c Call[T]) (got T, sent bool, err error) {
	if err := c.Prepare(ctx, e); err != nil {
		return got, false, err
	}
	if got, err = try(ctx, e, c); err != nil && !basedriver.IsSkip(err) {
		c.Failed(e, err)
	}
	return got, true, err
}

// correct looks at the error of a guarded statement that applied nothing. If a fact behind its text
// was wrong, correct sets it right and writes the statement anew, to be sent again. The outcome is guarded then; or
// refused, for the reason that typed is, where by the fact it can't be guarded. Else it is passed: where the error has
// ended its transaction, nothing can be sent, and typed says why; else typed is err.
func (e *Execution) correct(ctx context.Context, err error) (again outcome, typed error) {
	fact := e.wrong(err)
	switch s := e.conn; {
	case fact == session.NoFact:
		return passed, err
	case e.plan.Several > 0: // those before it may have been applied
		s.found.Forget(fact)
		return passed, err
	case s.endsTx() && fact != session.Uniqueness: // that guard is asked before the first row
		s.found.Forget(fact)
		typed = &outdated{fact, err}
		s.followRefusal(ctx, typed)
		return passed, typed
	case s.session.Correct(ctx, (*asking)(s), fact) != nil:
		return passed, err
	}
	e.planAgain(e.rewriter())
	e.judge()
	decided, refusal := e.render()
	switch {
	case decided == guarded:
		return guarded, &outdated{fact, err}
	case fact == session.Uniqueness:
		return refused, refusal
	}
	return passed, &outdated{fact, err}
}

// learnsKeys reports whether a REPLACE has raised the unique keys of its table, or that these have changed.
func (e *Execution) learnsKeys(err error) bool {
	replaced := e.plan.Replaces()
	if err == nil || replaced == nil || e.forges() {
		return false
	}
	m, ok := e.rewriter().ReadMarker(err, nil)
	return ok && m.Kind == guard.Reshaped &&
		e.conn.found.LearnKeys(e.conn.settings.profile.Session.Unique, *replaced, m.Found)
}

// wrong returns the fact behind the statement's text that, by its error, was wrong.
func (e *Execution) wrong(err error) session.Fact {
	if e.learnsKeys(err) {
		return session.Uniqueness
	}
	return e.conn.found.Wrong(err, session.Written{Query: e.sent.Query, Proven: e.with.seals.proves,
		Unproven: e.with.seals.unsealed, MaySeal: e.maySeal})
}

// endsTx reports whether an error has ended the transaction that is open, or nothing must go on behind it there.
func (s *Conn) endsTx() bool {
	return s.inTx && (s.settings.profile.Session.ErrorEndsTx.Is() || s.session.Leaks)
}

// outdated is the error of a guarded statement that was written by a fact which isn't so any more, and that can be
// run again in a new transaction.
type outdated struct {
	fact session.Fact
	err  error
}

func (e *outdated) Error() string {
	if e.fact == session.Function {
		return "sqlfence: the ledger's function was dropped, and guards do without it from now on; retry the " +
			"transaction: " + e.err.Error()
	}
	return e.err.Error()
}

func (e *outdated) Unwrap() error { return e.err }

// Temporary returns true: see [Retry].
func (e *outdated) Temporary() bool { return true }

// staleFirst returns the error of a guarded statement that failed with err: the guard's, if a
// holder that was replaced has met another error before its guard was asked. The database is
// asked once more, where that can tell: the statement was understood, and no transaction is
// over by the error. The guard of a plan that asks before the first row has been asked before
// any constraint.
func (e *Execution) staleFirst(ctx context.Context, err error) error {
	state := dberr.SQLState(err)
	switch s := e.conn; {
	case state == "", s.inTx, !e.enforces(), e.Observes(), !s.settings.asks:
		return err
	case strings.HasPrefix(state, dberr.ConstraintClass) && !e.plan.AsksLate:
		return err
	case !isOfRow(state):
		return err
	}
	if _, raised := e.classify(err); raised {
		return err
	}
	v := e.with.values
	v.Tables = e.with.held.values(e)
	question := e.plan.Question(v)
	if question == "" {
		return err
	}
	_, refused := (*asking)(e.conn).Query(ctx, question)
	if refused == nil {
		return err
	}
	if _, raised := e.classify(refused); !raised {
		return err // the question wasn't answered
	}
	return refused
}

// isOfRow reports whether an error is of a class that the rows, constraints and triggers of a
// statement have, which the database has understood.
func isOfRow(state string) bool {
	switch state[:min(2, len(state))] {
	case "0A", "08", "25", "26", "28", "3D", "3F", "40", "42", "53", "55", "57", "58", "F0", "XX":
		return false
	}
	return true
}
