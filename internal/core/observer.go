package core

import (
	"context"
	"log/slog"
	"time"

	"github.com/sqlfence/sqlfence/internal/dialect"
)

// An Event is the public package's Event.
type Event struct {
	Kind     EventKind
	Query    string
	Sent     string
	Tables   []string
	Tokens   []Token
	Reason   string
	Err      error
	Duration time.Duration
	Cache    CacheUse
	Dialect  dialect.Dialect
	Settings *Settings // settings of the database that the event is about
}

// An EventKind is the kind of an [Event]. Its zero value is no kind.
type EventKind int

// The kinds of events. Package sqlfence documents them.
const (
	Refused EventKind = iota + 1
	WouldRefuse
	Bypassed
	RawAccess
	Unfenced
	Guarded
	Passed
	Unanswered
)

// A CacheUse is the public package's CacheUse.
type CacheUse int

// The uses of a statement cache. Package sqlfence documents them.
const (
	Uncached CacheUse = iota
	CacheHit
	CacheMiss
	CacheEviction
)

// Kinds is a set of kinds of events.
type Kinds uint16

// DefaultKinds are the kinds for an observer that names no kinds. The other kinds are about most of a program's
// statements.
const DefaultKinds = Kinds(1<<Refused | 1<<WouldRefuse | 1<<Bypassed | 1<<RawAccess | 1<<Unfenced |
	1<<Unanswered)

// Has reports whether the set contains k.
func (s Kinds) Has(k EventKind) bool { return s>>k&1 != 0 }

// A Listener is an observer with the kinds of events that it gets.
type Listener struct {
	Report func(ctx context.Context, e Event)
	Kinds  Kinds
}

// listen records the kinds of events that observers and the log get. Writes that Observe mode lets through are always
// logged, because the log is the purpose of Observe mode.
func (s *Settings) listen(observes bool) {
	if s.logger != nil {
		s.kinds = DefaultKinds
	}
	for _, o := range s.observers {
		s.kinds |= o.Kinds
	}
	if s.logsByDefault = observes && !s.kinds.Has(WouldRefuse); s.logsByDefault {
		s.kinds |= 1 << WouldRefuse
	}
}

// report passes an event to the observers and the log.
func (s *Settings) report(ctx context.Context, e Event) {
	e.Dialect, e.Settings = s.profile.Dialect, s
	if e.Kind == Bypassed {
		ctx = context.WithValue(ctx, bypassKey{}, nil) // the observer's own statements must not be bypassed
	}
	for _, o := range s.observers {
		if o.Kinds.Has(e.Kind) {
			o.Report(ctx, e)
		}
	}
	switch {
	case e.Kind == WouldRefuse && s.logger != nil:
		s.logObserved(ctx, s.logger, e)
	case e.Kind == WouldRefuse && s.logsByDefault:
		s.logObserved(ctx, slog.Default(), e)
	case s.logger != nil && DefaultKinds.Has(e.Kind):
		s.factory.Log(ctx, s.logger, e, 0)
	}
}
