package sqlfence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

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
	Kind  EventKind
	Query string // as the application wrote it

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

	// Reason is the reason passed to [Bypass] or [WithBypass]; empty for other kinds.
	Reason string

	// Err is the error that the statement was, or would have been, refused with. Nil for
	// other kinds than Refused and WouldRefuse.
	Err error

	// Duration is the time from sending the statement to the driver's answer, of a query
	// until it returned its rows. Only Guarded has it.
	Duration time.Duration

	// Dialect is the database's.
	Dialect Dialect
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
	// Refused: the statement was refused, and changed nothing.
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
)

var kindNames = [...]string{Refused: "refused", WouldRefuse: "would refuse", Bypassed: "bypassed",
	RawAccess: "raw access", Unfenced: "unfenced", Guarded: "guarded", Passed: "passed"}

// String returns the name of the kind, in lower case.
func (k EventKind) String() string {
	if !k.isKnown() {
		return "unknown"
	}
	return kindNames[k]
}

func (k EventKind) isKnown() bool { return k >= Refused && k <= Passed }

// kinds is a set of kinds of events.
type kinds uint16

// unasked are the kinds that an observer gets which names none. The others are about
// most of a program's statements.
const unasked = kinds(1<<Refused | 1<<WouldRefuse | 1<<Bypassed | 1<<RawAccess | 1<<Unfenced)

func (s kinds) has(k EventKind) bool { return s>>k&1 != 0 }

// A listener is an observer with the kinds of events that it gets.
type listener struct {
	tell  Observer
	kinds kinds
}

func newListener(fn Observer, asked []EventKind) (listener, error) {
	l := listener{fn, unasked}
	if len(asked) > 0 {
		l.kinds = 0
	}
	for _, k := range asked {
		if !k.isKnown() {
			return l, fmt.Errorf("WithObserver: unknown kind of event %d", k)
		}
		l.kinds |= 1 << k
	}
	return l, nil
}

// listen notes what is listened for. What Observe lets through is logged in any case: it is why there is the mode.
func (s *settings) listen(observes bool) {
	if s.logger != nil {
		s.told = unasked
	}
	for _, o := range s.observers {
		s.told |= o.kinds
	}
	if s.unheard = observes && !s.told.has(WouldRefuse); s.unheard {
		s.told |= 1 << WouldRefuse
	}
}

// report passes an event to the observers and the log.
func (s *settings) report(ctx context.Context, e Event) {
	e.Dialect = s.profile.dialect()
	if e.Kind == Bypassed {
		ctx = context.WithValue(ctx, bypassKey{}, nil) // it is for the statement, not for what an observer does
	}
	for _, o := range s.observers {
		if o.kinds.has(e.Kind) {
			o.tell(ctx, e)
		}
	}
	switch {
	case s.logger != nil && unasked.has(e.Kind):
		s.log(ctx, s.logger, e)
	case s.unheard && e.Kind == WouldRefuse:
		s.log(ctx, slog.Default(), e)
	}
}

// log writes an event to the log.
func (s *settings) log(ctx context.Context, logger *slog.Logger, e Event) {
	level := slog.LevelInfo
	switch e.Kind {
	case Refused, WouldRefuse:
		level = slog.LevelWarn
	case Unfenced:
		level = slog.LevelDebug
	}
	if !logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("query", e.Query)}
	if e.Reason != "" {
		attrs = append(attrs, slog.String("reason", e.Reason))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
		attrs = append(attrs, refusalAttrs(e.Err)...)
		if verb := e.Verb(); verb != "" {
			attrs = append(attrs, slog.String("statement", verb))
		}
	}
	logger.LogAttrs(ctx, level, "sqlfence: "+e.Kind.String(), attrs...)
}

// refusalAttrs returns what a refusal is about: the table, what the write carried, and
// what the database holds.
func refusalAttrs(err error) (attrs []slog.Attr) {
	var about interface{ attrs() []slog.Attr }
	if errors.As(err, &about) {
		attrs = about.attrs()
	}
	return attrs
}

// tableOf returns the table that a refusal is about; empty if that is unknown.
func tableOf(err error) string {
	for _, a := range refusalAttrs(err) {
		if a.Key == "table" {
			return a.Value.String()
		}
	}
	return ""
}

func (e *StaleError) attrs() []slog.Attr {
	return []slog.Attr{slog.String("table", e.Table), slog.String("token", e.Token.String()), slog.Int64("current", e.Current)}
}

func (e *NotIssuedError) attrs() []slog.Attr {
	return []slog.Attr{slog.String("table", e.Table), slog.String("token", e.Token.String()), slog.Int64("current", e.Current)}
}

func (e *ConflictError) attrs() []slog.Attr {
	return []slog.Attr{slog.String("table", e.Table), slog.Int64("serial", e.Expected), slog.Int64("current", e.Current)}
}

func (e *LockedError) attrs() []slog.Attr {
	return []slog.Attr{slog.String("table", e.Table), slog.String("current", e.By)}
}

func (e *UnguardableError) attrs() []slog.Attr { return tableAttr(e.Table) }
func (e *ColumnError) attrs() []slog.Attr      { return tableAttr(e.Table) }
func (e *tokenError) attrs() []slog.Attr       { return tableAttr(e.table) }

func (e *sourceError) attrs() []slog.Attr { return tableAttr(e.table) }

func (e *refusal) attrs() []slog.Attr {
	attrs := tableAttr(e.table)
	if e.token.Name != "" {
		attrs = append(attrs, slog.String("token", e.token.String()))
	}
	return attrs
}

func tableAttr(table string) []slog.Attr {
	if table == "" {
		return nil
	}
	return []slog.Attr{slog.String("table", table)}
}
