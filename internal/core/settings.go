package core

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// Settings are the checked options of one database. All connections share them. They are safe for concurrent use.
type Settings struct {
	profile profile
	// schema of sqlfence's tables, as the database stores it; empty if the search path finds them
	schema        string
	registry                // all tables
	enforced      *registry // tables that aren't observed; nil if nothing is enforced
	bypass        string    // the reason of WithoutGuards; empty without this option
	observers     []Listener
	logger        *slog.Logger
	source        Source // nil without WithTokenSource
	logsByDefault bool   // the default logger gets the writes that Observe mode lets through
	kinds         Kinds  // kinds of events for the observers and the log
	tally         tally  // counts the writes that Observe mode lets through, for the log

	wanted session.Wants // facts that connections query

	statements int          // statements that a connection caches; -1 means the driver's default
	onConnect  func() Check // returns the check of new connections; nil without a check
}

// NewSettings checks the options together. Its error names all invalid options, and is [ErrInvalid]. bases are values
// that may identify the base driver. The factory makes the errors and log records of the database.
func NewSettings(o *Options, factory ErrorFactory, bases ...any) (*Settings, error) {
	p, err := resolve(o.Dialect, bases...)
	if err != nil {
		o.Fail(err)
	}
	s := &Settings{profile: p, bypass: o.Bypass, observers: o.Observers, logger: o.Logger, source: o.Source,
		statements: -1, registry: registry{factory: factory}}
	if o.Bypass == "" {
		s.onConnect = o.OnConnect
	}
	if o.Statements != nil {
		s.statements = *o.Statements
	}
	s.wanted.Untested, s.wanted.Nothing = o.Untested, slices.ContainsFunc(bases, basedriver.IsMock)
	s.findSchema(o)
	s.addTables(o)
	s.listen(o.Mode == Observe || s.observed)
	if len(o.errs) > 0 {
		return nil, &optionsError{o.errs}
	}
	return s, nil
}

// findSchema reads the schema's name from the options.
func (s *Settings) findSchema(o *Options) {
	if s.profile.Database == nil || o.Schema == "" {
		return
	}
	schema, name, err := lang.SpellName(s.profile.Dialect, o.Schema)
	switch {
	case err != nil:
		o.Fail(fmt.Errorf("WithSchema(%.80q): %w", o.Schema, err))
	case schema != "":
		o.Fail(fmt.Errorf("WithSchema(%.80q): a schema's name has one part", o.Schema))
	case s.profile.Text.FindElsewhere("", sqltext.LedgerTable) == "":
		o.Fail(fmt.Errorf("WithSchema: in %v each file has sqlfence's tables for its own", s.profile.Dialect))
	default:
		s.schema = name
	}
}

// placed qualifies sqlfence's tables in a statement of sqlfence's packages with the options' schema. It returns any
// other statement unchanged.
func (s *Settings) placed(ctx context.Context, query string) string {
	if s.schema == "" || !trusted.Is(ctx, query) {
		return query
	}
	return sqltext.Place(s.profile.Text, s.schema, query)
}

// addTables checks the tables and makes their registries. If the dialect is unknown, which is an error already, the
// names can't be read.
func (s *Settings) addTables(o *Options) {
	enforced := &registry{factory: s.factory}
	found := make([][]error, len(o.Tables))
	for i, t := range o.Tables {
		t.factory = s.factory
		found[i] = t.check(s.profile.Database)
	}
	for i, t := range o.Tables {
		faults := found[i]
		if len(faults) == 0 && t.ClaimOf != "" && s.profile.Database != nil {
			if err := t.findClaims(s.profile.Dialect, o.Tables); err != nil {
				faults = append(faults, err)
			}
		}
		for _, fault := range faults {
			o.Fail(fmt.Errorf("table %.80q: %w", t.Name, fault))
		}
		if len(faults) > 0 {
			continue
		}
		t.sourceNames = []string{t.tokenName("")}
		if !t.ModeSet {
			t.Mode = o.Mode
		}
		s.add(t)
		if t.Mode == Enforce {
			enforced.add(t)
		}
	}
	s.exemptObserved(o, enforced)
	if s.profile.Database != nil {
		s.prepareTables(o, enforced)
	}
}

// prepareTables prepares the registry of all tables, and that of the enforced tables if some tables are observed.
func (s *Settings) prepareTables(o *Options, enforced *registry) {
	if err := s.prepare(s.profile.Dialect, s.schema); err != nil {
		o.Fail(err)
		return
	}
	s.wants()
	switch {
	case o.Mode == Observe && len(enforced.tables) == 0: // sqlfence's own tables are also observed
	case !s.observed:
		s.enforced = &s.registry
	default:
		s.enforced = enforced
		if err := enforced.prepare(s.profile.Dialect, s.schema); err != nil {
			o.Fail(err)
		}
	}
}

// exemptObserved keeps enforced patterns from matching observed tables.
func (s *Settings) exemptObserved(o *Options, enforced *registry) {
	if !enforced.patterns {
		return
	}
	for _, t := range s.tables {
		switch {
		case t.Mode == Enforce:
		case t.Rules.Pattern:
			o.Fail(fmt.Errorf("table %.80q: another pattern is enforced; give all patterns one mode", t.Name))
		default:
			enforced.add(t.exempt())
		}
	}
}

// Dialect returns the database's dialect.
func (s *Settings) Dialect() dialect.Dialect { return s.profile.Dialect }

// Schema returns the schema of sqlfence's tables, as the database stores its name; empty if the session's search path
// finds the tables.
func (s *Settings) Schema() string { return s.schema }

// Remote reports whether the database is reached over a connection that can be lost.
func (s *Settings) Remote() bool { return s.profile.remote() }

// Misplaces reports whether pgx, in its simple protocol, might write an argument into a string literal of text, so that
// the argument ends the literal and an unplanned statement follows.
func (s *Settings) Misplaces(text string, args []driver.NamedValue, rows bool) bool {
	if s.profile.NoOptions || len(args) == 0 || len(s.tables) == 0 || !lang.Misplaces(s.profile.Dialect, text) {
		return false
	}
	options, _ := basedriver.FindOptions(args, rows)
	return options.Count < len(args)
}

// Tables returns the registered tables, in the order of registration. The caller must not modify them.
func (s *Settings) Tables() []*Table { return s.tables }

// Enforces reports whether stale writes of a registered table are refused. An empty name means any table.
func (s *Settings) Enforces(table string) bool {
	return s.enforced != nil && (table == "" || slices.ContainsFunc(s.enforced.tables, func(t *Table) bool {
		return t.Name == table && !t.Rules.Exempt
	}))
}

// ChecksConnections reports whether there is a check of new connections: see [Found.Check].
func (s *Settings) ChecksConnections() bool { return s.onConnect != nil }

// Logger returns the logger of the options; nil if the options set no logger.
func (s *Settings) Logger() *slog.Logger { return s.logger }

// Statements returns how many guarded statements a connection to a driver caches prepared, and whether it caches
// queries.
func (s *Settings) Statements(d basedriver.Driver) (most int, rows bool) {
	most = s.statements
	if most < 0 {
		most = d.Statements
	}
	if s.profile.remote() || s.enforced == nil || len(s.tables) == 0 {
		most = 0
	}
	return most, s.profile.KeepsRows
}

// observes reports whether some table is observed, so that some refusals are only reported to observers.
func (s *Settings) observes() bool { return s.enforced != &s.registry }

// bypassReason returns why a statement with this context isn't guarded; false if there is no reason.
func (s *Settings) bypassReason(ctx context.Context) (string, bool) {
	if reason, ok := bypassReason(ctx); ok {
		return reason, true
	}
	return s.bypass, s.bypass != ""
}

// optionsError holds the errors of one database's options. It is ErrInvalid.
type optionsError struct{ errs []error }

func (e *optionsError) Error() string        { return fmt.Sprintf("sqlfence: %v", errors.Join(e.errs...)) }
func (e *optionsError) Is(target error) bool { return target == ErrInvalid }
func (e *optionsError) Unwrap() []error      { return e.errs }
