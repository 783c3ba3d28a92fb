package sqlfence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/sqlfence/sqlfence/rewrite"
)

// settings are the options of one database, checked. It is shared by the
// connections and safe for concurrent use.
type settings struct {
	profile   profile
	mode      Mode
	tables    []*table
	serials   bool // some table has a serial
	locks     bool // some table has locks
	ledgers   bool // some table has a ledger
	rewriter  *rewrite.Rewriter
	observers []Observer
	logger    *slog.Logger
	source    TokenSource // nil for none

	statements int // that a connection keeps; -1 for the driver's default
}

// newSettings checks the options together; its error has all of their faults. bases
// are where the base driver may be recognised.
func newSettings(opts []Option, bases ...any) (*settings, error) {
	var o options
	for _, opt := range opts {
		if opt == nil {
			o.fail(errors.New("nil option"))
			continue
		}
		opt(&o)
	}
	if slices.ContainsFunc(bases, isFenced) {
		o.fail(errors.New("the driver is fenced already"))
	}
	p, err := resolve(o.dialect, bases...)
	if err != nil {
		o.fail(err)
	}
	s := &settings{profile: p, mode: o.mode, tables: o.tables, observers: o.observers, logger: o.logger, source: o.source, statements: -1}
	if o.statements != nil {
		s.statements = *o.statements
	}
	s.addTables(&o)
	if len(o.faults) > 0 {
		return nil, &optionsError{o.faults}
	}
	return s, nil
}

// addTables checks the tables and makes the rewriter for them. Where the dialect is
// unknown, which is a fault already, their names can't be read.
func (s *settings) addTables(o *options) {
	var rules []rewrite.Table
	for _, t := range o.tables {
		faults := t.check(s.profile.database)
		for _, fault := range faults {
			o.fail(fmt.Errorf("table %.80q: %w", t.name, fault))
		}
		if len(faults) > 0 {
			continue
		}
		t.asked = []string{t.tokenName("")}
		rules = append(rules, t.rules)
		s.serials = s.serials || t.rules.Serial != ""
		s.locks = s.locks || t.rules.Lock.By != ""
		s.ledgers = s.ledgers || t.rules.Ledger
	}
	if s.profile.database == nil {
		return
	}
	var err error
	if s.rewriter, err = rewrite.New(s.profile.dialect(), rules); err != nil {
		o.fail(err)
	}
}

// optionsError has the faults of the options of one database. It is ErrInvalid.
type optionsError struct{ faults []error }

func (e *optionsError) Error() string        { return fmt.Sprintf("sqlfence: %v", errors.Join(e.faults...)) }
func (e *optionsError) Is(target error) bool { return target == ErrInvalid }
func (e *optionsError) Unwrap() []error      { return e.faults }

func isFenced(base any) bool {
	switch base.(type) {
	case *fencedDriver, *connector:
		return true
	}
	return false
}

// report passes an event to the observers and the log.
func (s *settings) report(ctx context.Context, e Event) {
	if e.Kind == Bypassed {
		ctx = Bypass(ctx, "") // it is for the statement, not for what an observer does
	}
	for _, o := range s.observers {
		o(ctx, e)
	}
	if s.logger != nil {
		s.log(ctx, e)
	}
}
