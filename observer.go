package sqlfence

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
)

// An Observer receives events about statements on registered tables: by default those
// that were refused, those that [Observe] mode let through although [Enforce] would have
// refused them, those that [Bypass] let through, and writes of [Optional] tables without a
// token. [WithObserver] can limit it to some kinds of events, or add those about statements
// that were guarded or needed no guard.
//
// It is called on the statement's goroutine before the statement's call returns, so several
// goroutines may call it at once; it must be safe for that, and quick. It must not panic,
// nor use the connection or transaction that the statement was sent on. The context is the
// statement's, without its Bypass.
type Observer func(ctx context.Context, e Event)

// An Event is what an [Observer] receives. It must not be changed.
type Event struct {
	Kind EventKind

	// Query is as the application wrote it: BEGIN, COMMIT or SAVEPOINT for what database/sql or pgx does by a method,
	// BATCH for a batch of pgx's that is refused whole, and empty for a connection.
	Query string

	// Sent is the text that the base driver got last; empty if nothing was sent.
	Sent string

	// Tables are the registered tables that the statement writes to, by the names that they
	// were registered with. Of a statement that can't be guarded it is the one that the
	// reason is about, if there is one, or a table of sqlfence's own; of Unfenced, those
	// that are written without a token; of Guarded, the others.
	Tables []string

	// Tokens are those of the context that the statement was compared with, in no
	// particular order; none if it was refused before they were looked for, or for want of one.
	Tokens []Token

	// Reason is the reason passed to [Bypass] or [WithoutGuards]; of Unfenced the name of the rule that allows the
	// write, "Optional" or "UnfencedInserts"; empty for other kinds.
	Reason string

	// Err is the error that the statement was, or would have been, refused with, or that it has no answer. Nil for
	// other kinds than Refused, WouldRefuse and Unanswered.
	Err error

	// Duration is the time from sending the statement to the driver's answer, of a query
	// until it returned its rows. Only Guarded has it.
	Duration time.Duration

	// Dialect is the database's.
	Dialect Dialect

	// Cache says how the statement cache of the connection was used for what was sent (see [WithStatementCache]).
	Cache CacheUse
}

// A CacheUse is what the statement cache of a connection did for a statement.
type CacheUse int

const (
	// Uncached: the cache had no part in it. The statement was sent by its text, as always where no statements are
	// kept, or was prepared by the application, or wasn't sent.
	Uncached CacheUse = iota
	// CacheHit: the connection had kept the statement prepared.
	CacheHit
	// CacheMiss: it was prepared, and is kept.
	CacheMiss
	// CacheEviction: it was prepared, and is kept in the place of the one that was used longest ago.
	CacheEviction
)

// String returns "hit", "miss" or "eviction"; the empty text for [Uncached].
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

// Verb returns which kind of statement it is about, in capitals: INSERT, UPDATE, DELETE or MERGE also
// where that is the first write behind WITH or EXPLAIN; else the first word, and the empty text for a
// statement that can't be read. It is for logs and metrics, and reads the statement at each call.
func (e Event) Verb() string { return lang.Verb(e.Dialect, e.Query) }

// Fingerprint returns the statement without its values: constants and placeholders are ?, lists and
// rows of them (?), and comments are left out. So it is the same text for statements that differ in
// these only. Of a statement that can't be read it is the first word with "…" behind it, as the rest may
// hold values. It reads the statement at each call.
func (e Event) Fingerprint() string { return lang.Fingerprint(e.Dialect, e.Query) }

// An EventKind is the kind of an [Event]. The zero value is none.
type EventKind int

const (
	// Refused: the statement was refused, and changed nothing. Every statement that fails with an error of this
	// package's is Refused or Unanswered, once, also if the database lacks what the guard needs ([ErrNotSetUp]).
	// A connection that verify.OnConnect refuses is Refused as well.
	Refused EventKind = iota + 1
	// WouldRefuse: [Observe] mode let a statement through that [Enforce] would have refused.
	WouldRefuse
	// Bypassed: a statement that would have been guarded or refused was sent as written under [Bypass].
	Bypassed
	// RawAccess: the base driver's connection was handed out through sql.Conn.Raw,
	// which isn't guarded. Query is empty.
	RawAccess
	// Unfenced: a write of [Optional] tables, or one that adds rows by [UnfencedInserts], was sent
	// with a context that carries no token for them. They weren't compared with any.
	Unfenced
	// Guarded: a statement was executed with its guard. Of a query it is told when its rows are
	// closed, if none of them was refused. An observer gets it only if [WithObserver] names
	// it.
	Guarded
	// Passed: a statement that writes to no registered table was sent as it was written. An
	// observer gets it only if [WithObserver] names it.
	Passed
	// Unanswered: a guarded write, or the COMMIT of one, was sent and has no answer. It may have been applied: Err is
	// [ErrUnknownOutcome].
	Unanswered
)

var kindNames = [...]string{Refused: "refused", WouldRefuse: "would refuse", Bypassed: "bypassed",
	RawAccess: "raw access", Unfenced: "unfenced", Guarded: "guarded", Passed: "passed", Unanswered: "unanswered"}

// String returns the name of the kind, in lower case.
func (k EventKind) String() string {
	if !k.isKnown() {
		return "unknown"
	}
	return kindNames[k]
}

func (k EventKind) isKnown() bool { return k >= Refused && k <= Unanswered }

func newListener(fn Observer, asked []EventKind) (core.Listener, error) {
	l := core.Listener{Tell: func(ctx context.Context, e core.Event) { fn(ctx, publicEvent(e)) }, Kinds: core.Unasked}
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

// logEvent writes an event to a log, with the number of writes that it stands for, if that isn't 0.
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
