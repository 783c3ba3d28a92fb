package sqlfence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/sqlfence/sqlfence/rewrite"
)

// A fence is what the options of one database say, checked. It is shared by the
// connections and safe for concurrent use.
type fence struct {
	profile   profile
	mode      Mode
	tables    []*table
	serials   bool // some table has a serial
	locks     bool // some table has locks
	rewriter  *rewrite.Rewriter
	observers []Observer
	logger    *slog.Logger
}

// newFence checks the options. bases are where the base driver may be recognised.
func newFence(opts []Option, bases ...any) (*fence, error) {
	var c config
	for _, opt := range opts {
		if opt == nil {
			c.fail(errors.New("nil option"))
			continue
		}
		opt(&c)
	}
	if slices.ContainsFunc(bases, isFenced) {
		c.fail(errFenced)
	}
	p, err := resolve(c.dialect, bases...)
	if err != nil {
		c.fail(err)
	}
	if len(c.errs) > 0 {
		return nil, fmt.Errorf("sqlfence: %w", errors.Join(c.errs...))
	}
	f := &fence{profile: p, mode: c.mode, tables: c.tables, observers: c.observers, logger: c.logger}
	rules := make([]rewrite.Table, len(c.tables))
	for i, t := range c.tables {
		if err := t.resolve(p.dialect); err != nil {
			return nil, fmt.Errorf("sqlfence: table %.80q: %w", t.name, err)
		}
		rules[i] = t.rules
		f.serials = f.serials || t.rules.Serial != ""
		f.locks = f.locks || t.rules.Lock.By != ""
	}
	if f.rewriter, err = rewrite.New(p.dialect, rules); err != nil {
		return nil, fmt.Errorf("sqlfence: %w", err)
	}
	return f, nil
}

func isFenced(base any) bool {
	switch base.(type) {
	case *fencedDriver, *connector:
		return true
	}
	return false
}

// report tells the observers and the log.
func (f *fence) report(ctx context.Context, e Event) {
	if e.Kind == Bypassed {
		ctx = Bypass(ctx, "") // it is for the statement, not for what an observer does
	}
	for _, o := range f.observers {
		o(ctx, e)
	}
	if f.logger == nil {
		return
	}
	level := slog.LevelInfo
	switch e.Kind {
	case Refused:
		level = slog.LevelDebug
	case WouldRefuse:
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{slog.String("query", e.Query)}
	if e.Reason != "" {
		attrs = append(attrs, slog.String("reason", e.Reason))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	f.logger.LogAttrs(ctx, level, "sqlfence: "+e.Kind.String(), attrs...)
}
