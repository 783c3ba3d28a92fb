package core

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// An eventLog holds the events of an execution that are reported to observers after the statement was sent.
type eventLog struct {
	events []Event       // events to report after the statement was sent
	took   time.Duration // time from sending a guarded statement to the response
	timed  bool          // took is set, and not yet reported
	cache  CacheUse      // how the statement cache was used for the SQL string that was sent last
}

// event returns an event about the execution's current state. Its Tokens share the execution's memory.
func (e *Execution) event(kind EventKind) Event {
	return Event{Kind: kind, Query: e.request.Query, Tables: e.registry.names(e.plan),
		Tokens: e.with.tokens.all, Cache: e.log.cache}
}

// NoteCache records how the connection's statement cache was used.
func (e *Execution) NoteCache(use CacheUse) { e.log.cache = use }

// refusal returns an event about a refused statement, with the reason as its error.
func (e *Execution) refusal(kind EventKind, reason error) Event {
	event := e.event(kind)
	event.Err = reason
	return event
}

// note keeps an event until the statement is sent.
func (e *Execution) note(event Event) {
	event.Tokens = slices.Clone(event.Tokens)
	e.log.events = append(e.log.events, event)
}

// notePassed keeps a Passed event if an observer listens for Passed events.
func (e *Execution) notePassed() {
	if e.conn.settings.kinds.Has(Passed) {
		e.note(Event{Kind: Passed, Query: e.request.Query})
	}
}

// noteUnfenced keeps an event with the tables that are written without a token, for each rule that allows such writes.
func (e *Execution) noteUnfenced() {
	if !e.conn.settings.kinds.Has(Unfenced) {
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

// isUnfenced reports whether the plan's table i allows writes without a token, and the execution has no token for it.
func (e *Execution) isUnfenced(i int) bool {
	t := e.table(i)
	return (t.Optional || t.Rules.UnfencedInserts) && t.Rules.Fenced() && len(e.with.tokens.of(i)) == 0
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

// reportFailure reports the application's error if it is one of sqlfence's errors and no event has reported it. It
// leaves out statements of sqlfence's own packages, such as lease, which has separate observers.
func (e *Execution) reportFailure(ctx context.Context, err error) {
	if !e.conn.unreported(err) || trusted.Is(ctx, e.read.Query) {
		return
	}
	event := e.refusal(failureKind(err), err)
	event.Sent = e.sent.Query
	e.report(ctx, event)
}

// failureKind returns the kind of the event that reports err.
func failureKind(err error) EventKind {
	if errors.Is(err, ErrUnknownOutcome) {
		return Unanswered
	}
	return Refused
}

// unreported reports whether err is one of sqlfence's errors and no event has reported it.
func (s *Conn) unreported(err error) bool {
	return err != nil && s.settings.factory.Sentinel(err) != nil && (s.reported == nil || !errors.Is(err, s.reported))
}

// ReportFailure reports an error outside of an execution, if it is one of sqlfence's errors and no event has reported
// it. query is BEGIN or COMMIT for a transaction, because database/sql passes a driver no SQL string for these.
func (s *Conn) ReportFailure(ctx context.Context, query string, err error) {
	if s.unreported(err) {
		s.reported = err
		s.settings.ReportFailure(ctx, query, err)
	}
}

// ReportFailure reports one of sqlfence's errors; query is empty if a connection was refused.
func (s *Settings) ReportFailure(ctx context.Context, query string, err error) {
	s.report(ctx, Event{Kind: failureKind(err), Query: query, Err: err})
}

// reportSent reports the pending events once the statement was sent and ended with err. On ErrSkip it reports nothing,
// because database/sql retries through Prepare.
func (e *Execution) reportSent(ctx context.Context, err error) {
	if basedriver.IsSkip(err) {
		return
	}
	// If the application gets one of sqlfence's errors, only Bypassed events are reported before the event with the
	// error.
	err = e.conn.Explain(ctx, err)
	failed := err != nil && e.registry.factory.Sentinel(err) != nil && !trusted.Is(ctx, e.read.Query)
	for _, event := range e.log.events {
		if failed && event.Kind != Bypassed {
			continue
		}
		event.Sent = e.sent.Query
		e.conn.settings.report(ctx, event)
	}
	e.log.events = nil
}

// begin returns the time before the guarded statement is sent, or zero if no observer gets Guarded events.
func (e *Execution) begin() (t time.Time) {
	if e.conn.settings.kinds.Has(Guarded) {
		t = time.Now()
	}
	return t
}

// end records that the database executed the statement with its guard. A statement with a WouldRefuse event doesn't
// count.
func (e *Execution) end(began time.Time) {
	refuses := func(event Event) bool { return event.Kind == WouldRefuse }
	if !began.IsZero() && (!e.registry.observed || !slices.ContainsFunc(e.log.events, refuses)) {
		e.log.took, e.log.timed = time.Since(began), true
	}
}

// ReportGuarded reports that the statement was executed with its guard, once.
func (e *Execution) ReportGuarded(ctx context.Context) {
	if !e.log.timed {
		return
	}
	e.log.timed = false
	event := e.event(Guarded)
	if e.registry.optional {
		event.Tables = e.tablesWhere(func(i int) bool { return !e.isUnfenced(i) })
	}
	if len(event.Tables) > 0 {
		event.Sent, event.Duration = e.sent.Query, e.log.took
		e.conn.settings.report(ctx, event)
	}
}
