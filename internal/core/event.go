package core

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// A telling is what an execution tells observers.
type telling struct {
	events []Event       // to be reported once the statement is sent
	took   time.Duration // of a guarded statement, from sending to the answer
	timed  bool          // took is set, and is to be reported
	cache  CacheUse      // of the text that was sent last
}

// event returns an event about the Execution as it is now, with the Execution's own tokens.
func (e *Execution) event(kind EventKind) Event {
	return Event{Kind: kind, Query: e.asked.Query, Tables: e.registry.names(e.plan),
		Tokens: e.with.held.all, Cache: e.told.cache}
}

// NoteCache notes how the connection's cache of statements was used.
func (e *Execution) NoteCache(use CacheUse) { e.told.cache = use }

// refusal returns an event about a refusal.
func (e *Execution) refusal(kind EventKind, reason error) Event {
	event := e.event(kind)
	event.Err = reason
	return event
}

// note keeps an event until the statement is sent.
func (e *Execution) note(event Event) {
	event.Tokens = slices.Clone(event.Tokens)
	e.told.events = append(e.told.events, event)
}

// notePassed notes that the statement needs no guard, if an observer listens for that.
func (e *Execution) notePassed() {
	if e.conn.settings.told.Has(Passed) {
		e.note(Event{Kind: Passed, Query: e.asked.Query})
	}
}

// noteUnfenced notes which of the tables are written without a token, by the rule that allows it.
func (e *Execution) noteUnfenced() {
	if !e.conn.settings.told.Has(Unfenced) {
		return
	}
	for _, rule := range []string{"Optional", "UnfencedInserts"} {
		allows := func(i int) bool { return e.isUnfenced(i) && e.table(i).Optional == (rule == "Optional") }
		if tables := e.tablesWhere(allows); len(tables) > 0 {
			event := e.event(Unfenced)
			event.Tables, event.Tokens, event.Reason = tables, nil, rule
			e.note(event)
		}
	}
}

// isUnfenced reports whether the plan's table i needs no token and there is none for it.
func (e *Execution) isUnfenced(i int) bool {
	t := e.table(i)
	return (t.Optional || t.Rules.UnfencedInserts) && t.Rules.Fenced() && len(e.with.held.of(i)) == 0
}

func (e *Execution) tablesWhere(is func(i int) bool) (names []string) {
	for i := range e.plan.Tables {
		if is(i) {
			names = append(names, e.table(i).Name)
		}
	}
	return names
}

// report reports why the statement was refused.
func (e *Execution) report(ctx context.Context, event Event) {
	e.conn.reported = event.Err
	e.conn.settings.report(ctx, event)
}

// reportFailure reports the error that the application gets, if that is one of sqlfence's and no event has it yet.
// Statements of sqlfence's packages have observers of their own.
func (e *Execution) reportFailure(ctx context.Context, err error) {
	if !e.conn.unreported(err) || trusted.Is(ctx, e.read.Query) {
		return
	}
	event := e.refusal(failureKind(err), err)
	event.Sent = e.sent.Query
	e.report(ctx, event)
}

// failureKind is the kind of the event of an error.
func failureKind(err error) EventKind {
	if errors.Is(err, ErrUnknownOutcome) {
		return Unanswered
	}
	return Refused
}

// unreported reports whether an error is one of sqlfence's that no event has.
func (s *Conn) unreported(err error) bool {
	return err != nil && s.settings.factory.Sentinel(err) != nil && (s.reported == nil || !errors.Is(err, s.reported))
}

// ReportFailure reports the error of what isn't an execution, if that is one of sqlfence's and no event has it yet.
// database/sql gives a driver no text for the beginning and the end of a transaction: query is BEGIN or COMMIT then.
func (s *Conn) ReportFailure(ctx context.Context, query string, err error) {
	if s.unreported(err) {
		s.reported = err
		s.settings.ReportFailure(ctx, query, err)
	}
}

// ReportFailure reports one of sqlfence's errors; query is empty where a connection was refused.
func (s *Settings) ReportFailure(ctx context.Context, query string, err error) {
	s.report(ctx, Event{Kind: failureKind(err), Query: query, Err: err})
}

// reportSent reports the pending events once the statement was sent and ended with err. On ErrSkip it
// drops them: database/sql will retry through Prepare.
func (e *Execution) reportSent(ctx context.Context, err error) {
	if basedriver.IsSkip(err) {
		return
	}
	// Where the application gets an error of sqlfence's, the event with that error is the only one but for a Bypass's.
	err = e.conn.Explain(ctx, err)
	failed := err != nil && e.registry.factory.Sentinel(err) != nil && !trusted.Is(ctx, e.read.Query)
	for _, event := range e.told.events {
		if failed && event.Kind != Bypassed {
			continue
		}
		event.Sent = e.sent.Query
		e.conn.settings.report(ctx, event)
	}
	e.told.events = nil
}

// begin returns when the guarded statement begins to be sent, if that is of interest.
func (e *Execution) begin() (t time.Time) {
	if e.conn.settings.told.Has(Guarded) {
		t = time.Now()
	}
	return t
}

// end notes that the database has executed the statement with its guard, which
// counts only if there was no reason to refuse it.
func (e *Execution) end(began time.Time) {
	refuses := func(event Event) bool { return event.Kind == WouldRefuse }
	if !began.IsZero() && (!e.registry.observed || !slices.ContainsFunc(e.told.events, refuses)) {
		e.told.took, e.told.timed = time.Since(began), true
	}
}

// ReportGuarded reports that the statement was executed with its guard, once.
func (e *Execution) ReportGuarded(ctx context.Context) {
	if !e.told.timed {
		return
	}
	e.told.timed = false
	event := e.event(Guarded)
	if e.registry.optional {
		event.Tables = e.tablesWhere(func(i int) bool { return !e.isUnfenced(i) })
	}
	if len(event.Tables) > 0 {
		event.Sent, event.Duration = e.sent.Query, e.told.took
		e.conn.settings.report(ctx, event)
	}
}
