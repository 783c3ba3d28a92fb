package sqlfence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// settings are the options of one database, checked. It is shared by the
// connections and safe for concurrent use.
type settings struct {
	profile   profile
	schema    string    // of sqlfence's own tables, as the database stores it; empty for where the session finds them
	registry            // all tables
	enforced  *registry // those that aren't observed; nil if nothing is enforced
	bypass    string    // the reason of WithBypass; empty for none
	observers []listener
	logger    *slog.Logger
	source    TokenSource // nil for none
	unheard   bool        // what Observe lets through goes to the default logger
	told      kinds       // of events that an observer listens for

	wanted session.Wants // of what connections know

	statements int // that a connection keeps; -1 for the driver's default
	verifies   bool
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
	s := &settings{profile: p, bypass: o.bypass, observers: o.observers, logger: o.logger, source: o.source, statements: -1, verifies: o.verify}
	if o.statements != nil {
		s.statements = *o.statements
	}
	s.wanted.Untested, s.wanted.Nothing = o.untested, slices.ContainsFunc(bases, basedriver.IsMock)
	s.findSchema(&o)
	s.addTables(&o)
	s.listen(o.mode == Observe || s.observed)
	if len(o.faults) > 0 {
		return nil, &optionsError{o.faults}
	}
	return s, nil
}

// findSchema reads the name of the schema.
func (s *settings) findSchema(o *options) {
	if s.profile.database == nil || o.schema == "" {
		return
	}
	schema, name, err := lang.SpellName(s.profile.dialect(), o.schema)
	switch {
	case err != nil:
		o.fail(fmt.Errorf("WithSchema(%.80q): %w", o.schema, err))
	case schema != "":
		o.fail(fmt.Errorf("WithSchema(%.80q): a schema's name has one part", o.schema))
	case s.profile.text().FindElsewhere("", sqltext.LedgerTable) == "":
		o.fail(fmt.Errorf("WithSchema: in %v each file has sqlfence's tables for its own", s.profile.dialect()))
	default:
		s.schema = name
	}
}

// placed returns a statement with sqlfence's tables in the schema of the options, if it is one of its packages.
func (s *settings) placed(ctx context.Context, query string) string {
	if s.schema == "" || !trusted.Is(ctx, query) {
		return query
	}
	return sqltext.Place(s.profile.text(), s.schema, query)
}

// addTables checks the tables and makes their registries. Where the dialect is
// unknown, which is a fault already, their names can't be read.
func (s *settings) addTables(o *options) {
	enforced := new(registry)
	for _, t := range o.tables {
		faults := t.check(s.profile.database)
		for _, fault := range faults {
			o.fail(fmt.Errorf("table %.80q: %w", t.name, fault))
		}
		if len(faults) > 0 {
			continue
		}
		t.asked = []string{t.tokenName("")}
		if !t.modeSet {
			t.mode = o.mode
		}
		s.add(t)
		if t.mode == Enforce {
			enforced.add(t)
		}
	}
	if s.profile.database == nil {
		return
	}
	if err := s.prepare(s.profile.dialect(), s.schema); err != nil {
		o.fail(err)
		return
	}
	s.wants()
	switch {
	case o.mode == Observe && len(enforced.tables) == 0: // sqlfence's own tables are observed, too
	case !s.observed:
		s.enforced = &s.registry
	default:
		s.enforced = enforced
		if err := enforced.prepare(s.profile.dialect(), s.schema); err != nil {
			o.fail(err)
		}
	}
}

// observes reports whether some refusals are only reported.
func (s *settings) observes() bool { return s.enforced != &s.registry }

// bypassReason returns why a statement with this context isn't guarded, and whether
// there is such a reason.
func (s *settings) bypassReason(ctx context.Context) (string, bool) {
	if reason, ok := bypassReason(ctx); ok {
		return reason, true
	}
	return s.bypass, s.bypass != ""
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
