package sqlfence

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
)

// An Observer receives events about statements on registered tables (see [WithObserver]). It runs on the statement's
// goroutine before the call returns, so it must be fast and safe for concurrent use. It must not panic, nor use the
// statement's connection or transaction. ctx is the statement's, but without a [Bypass], so that the observer's own
// statements are guarded.
type Observer func(ctx context.Context, e Event)

// An Event is what an [Observer] receives. The observer must not change it.
type Event struct {
	Kind EventKind

	// Query is the application's statement, or BEGIN, COMMIT, SAVEPOINT or, for a refused batch of pgx, BATCH; empty
	// for a refused connection.
	Query string

	Sent string // the last statement sent; empty if none was sent

	// Tables are the registered tables that the statement writes to, or the table of the error. A Guarded event leaves
	// out a table written without a token, which has a separate Unfenced event.
	Tables []string

	Tokens []Token // the compared tokens, in no particular order

	// Reason is the reason of [Bypass] or [WithoutGuards], or for Unfenced "Optional" or "UnfencedInserts".
	Reason string

	Err      error         // for Refused, WouldRefuse and Unanswered
	Duration time.Duration // for Guarded: until the driver returned
	Dialect  Dialect
	Cache    CacheUse // see [WithStatementCache]
}

// A CacheUse describes how a statement used its connection's statement cache.
type CacheUse int

const (
	// Uncached: the statement didn't use the cache.
	Uncached CacheUse = iota
	// CacheHit: the statement was already prepared.
	CacheHit
	// CacheMiss: the statement was prepared and stored.
	CacheMiss
	// CacheEviction: the statement was prepared and replaced the least recently used one.
	CacheEviction
)

// String returns "hit", "miss" or "eviction", or "" for [Uncached].
func (u CacheUse) String() string {
	switch u {
	case CacheHit:
		return "hit"
	case CacheMiss:
		return "miss"
	case CacheEviction:
		return "eviction"
	}
	return ""
}

// Verb parses the statement, and returns INSERT, UPDATE, DELETE or MERGE for a write, also after WITH or EXPLAIN, else
// the first word in capitals, or "" if parsing fails.
func (e Event) Verb() string { return lang.Verb(e.Dialect, e.Query) }

// Fingerprint parses the statement, and returns the text without comments and values: ? for constants and
// placeholders, (?) for their lists. If parsing fails, the result is the first word and "…".
func (e Event) Fingerprint() string { return lang.Fingerprint(e.Dialect, e.Query) }

// An EventKind is the kind of an [Event]. The zero value is none.
type EventKind int

const (
	// Refused: a statement failed with this package's error, or verify.OnConnect refused a connection.
	Refused EventKind = iota + 1
	// WouldRefuse: [Observe] mode sent a statement that [Enforce] would have refused.
	WouldRefuse
	// Bypassed: a statement that would have been guarded or refused was sent under [Bypass].
	Bypassed
	// RawAccess: sql.Conn.Raw passed on the unguarded base connection.
	RawAccess
	// Unfenced: a write was sent without a token, because [Optional] or [UnfencedInserts] allows it.
	Unfenced
	// Guarded: a guarded statement was executed. For a query the event comes when its rows are closed.
	Guarded
	// Passed: a statement that writes to no registered table was sent unchanged.
	Passed
	// Unanswered: a guarded write, or its COMMIT, was sent without a response, with [ErrUnknownOutcome].
	Unanswered
)

var kindNames = [...]string{Refused: "refused", WouldRefuse: "would refuse", Bypassed: "bypassed",
	RawAccess: "raw access", Unfenced: "unfenced", Guarded: "guarded", Passed: "passed", Unanswered: "unanswered"}

// String returns the kind's name in lower case.
func (k EventKind) String() string {
	if !k.isKnown() {
		return "unknown"
	}
	return kindNames[k]
}

func (k EventKind) isKnown() bool { return k >= Refused && k <= Unanswered }

func newListener(fn Observer, asked []EventKind) (core.Listener, error) {
	l := core.Listener{Report: func(ctx context.Context, e core.Event) { fn(ctx, publicEvent(e)) },
		Kinds: core.DefaultKinds}
	if len(asked) > 0 {
		l.Kinds = 0
	}
	for _, k := range asked {
		if !k.isKnown() {
			return l, fmt.Errorf("WithObserver: unknown kind of event %d", k)
		}
		l.Kinds |= 1 << k
	}
	return l, nil
}

// logEvent logs an event. times, unless 0, is the number of counted writes.
func logEvent(ctx context.Context, logger *slog.Logger, e Event, times int64) {
	level := slog.LevelInfo
	switch e.Kind {
	case Refused, WouldRefuse, Unanswered:
		level = slog.LevelWarn
	case Unfenced:
		level = slog.LevelDebug
	}
	if !logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("query", e.Query)}
	if times > 0 {
		attrs = append(attrs, slog.Int64("times", times))
	}
	if e.Reason != "" {
		attrs = append(attrs, slog.String("reason", e.Reason))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
		attrs = append(attrs, e.about()...)
		if verb := e.Verb(); verb != "" {
			attrs = append(attrs, slog.String("statement", verb))
		}
	}
	logger.LogAttrs(ctx, level, "sqlfence: "+e.Kind.String(), attrs...)
}
