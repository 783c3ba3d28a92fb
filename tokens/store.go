package tokens

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/cleanup"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/nfc"
	facts "github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/setuperr"
	"github.com/sqlfence/sqlfence/internal/share"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Store issues tokens and keeps the ledger of one database. It is safe for concurrent use and needs no closing. The
// zero Store can't be used. Share one Store, because concurrent calls of [Store.Issue] share statements.
type Store struct {
	db      *sql.DB
	cleanup *cleanup.Queue // work that continues after its caller has gone
	dialect *dialect
	options *config
	issuing coalescer               // shares statements among the calls for one name
	sharing share.Batcher[*request] // shares statements among names

	timelines  sqltext.Timelines
	server     atomic.Pointer[facts.Capabilities] // nil until Hold has asked for them
	savepoints atomic.Bool                        // the server shows by savepoints alone whether a transaction is open
}

// New returns a Store on db. It sends nothing, and the caller closes db. By default the driver decides the dialect, and
// warnings go to [slog.Default]. The error is [sqlfence.ErrInvalid] and lists all faults.
func New(db *sql.DB, opts ...Option) (*Store, error) {
	c, err := configure(db, opts)
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, cleanup: cleanup.New(db), dialect: c.dialect, options: c}
	s.issuing.take, s.issuing.db = s.take, db
	s.sharing.Width, s.sharing.Send = c.dialect.writers, s.takeAll
	if c.dialect.shared == nil {
		s.sharing.Off()
	}
	return s, nil
}

// Ensure adds missing names to the ledger without a token, all or none. Only names that are used before their first
// Issue or Adopt need it. An invalid name is [sqlfence.ErrInvalid].
func (s *Store) Ensure(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	names, err := normalizeAll(names)
	if err != nil {
		return err
	}
	slices.Sort(names) // so that two calls that share names can't deadlock
	if err := s.dialect.ensure(ctx, s, names); err != nil {
		return fmt.Errorf("tokens: ensure: %w", s.explain(ctx, err))
	}
	return nil
}

// Current returns the newest token that was issued or adopted for name, for display: only the guard within a write
// decides. The Value is 0 for a name that is in the ledger and has no token.
//
// Errors: [sqlfence.ErrUnknownName] for a name that isn't in the ledger, [sqlfence.ErrTokenLimit] for a name that
// [Store.Rotate] has retired, an untyped error for a negative
// value, [sqlfence.ErrStandby] from a standby, [sqlfence.ErrInvalid] for the name.
func (s *Store) Current(ctx context.Context, name string) (sqlfence.Token, error) {
	name, err := normalize(name)
	if err != nil {
		return sqlfence.Token{}, err
	}
	value, err := s.stored(ctx, "current", name)
	switch {
	case err != nil:
		return sqlfence.Token{}, err
	case value > sqlfence.MaxToken:
		return sqlfence.Token{}, errLimit(name, value)
	}
	return sqlfence.Token{Name: name, Value: value}, nil
}

// Check returns nil if token is the newest of its name. Call Check right before an effect outside of the database, such
// as a mail; another process can still take over in between. A guarded write needs no Check.
//
// Errors: [*sqlfence.StaleError], [*sqlfence.NotIssuedError] for a token above the newest, [sqlfence.ErrUnknownName],
// [sqlfence.ErrStandby] from a standby, [sqlfence.ErrInvalid] or [sqlfence.ErrTokenLimit] for the token.
func (s *Store) Check(ctx context.Context, token sqlfence.Token) error {
	if err := token.Validate(); err != nil {
		return err
	}
	token.Name = nfc.String(token.Name)
	current, err := s.stored(ctx, "check", token.Name)
	switch {
	case err != nil:
		return err
	case token.Value < current: // also where the name is retired
		return &sqlfence.StaleError{Table: sqltext.LedgerTable, Token: token, Current: current}
	case token.Value > current:
		return &sqlfence.NotIssuedError{Table: sqltext.LedgerTable, Token: token, Current: current}
	}
	return nil
}

// Adopt advances the ledger to a token of another service, and adds the name if it is missing. Then tables with
// [sqlfence.Ledger] refuse lower tokens. Adopting the newest token again changes nothing. Don't use Issue for the same
// name. The service must be durable, because the ledger can't detect a token that was granted twice.
//
// Errors: [*sqlfence.StaleError] for a token below the newest, or for a new name at or below the lower bound of
// [Store.Delete] and [Store.Repair], which is then the error's Current; [sqlfence.ErrInvalid] or
// [sqlfence.ErrTokenLimit] for the token.
func (s *Store) Adopt(ctx context.Context, token sqlfence.Token) error {
	if err := token.Validate(); err != nil {
		return err
	}
	token.Name = nfc.String(token.Name)
	current, err := s.dialect.adopt(ctx, s, token)
	if errors.Is(err, sql.ErrNoRows) { // the name has no token, and may have had this one before it was deleted
		if current, err = s.query(ctx, render(s.dialect, "SELECT {served}")); err == nil {
			return &lowerBoundError{sqlfence.StaleError{Table: sqltext.LedgerTable, Token: token, Current: current}}
		}
	}
	if err != nil {
		return fmt.Errorf("tokens: adopt %q: %w", token.Name, s.explain(ctx, err))
	}
	if current > token.Value {
		return &sqlfence.StaleError{Table: sqltext.LedgerTable, Token: token, Current: current}
	}
	s.warn(token)
	return nil
}

// A lowerBoundError reports a first token that isn't above the lower bound. Its name has no token to compare with.
type lowerBoundError struct{ stale sqlfence.StaleError }

func (e *lowerBoundError) Error() string {
	return fmt.Sprintf("%v: adopt: %q has no token, and the first token of a name has to be above the floor, %d",
		sqlfence.ErrStale, e.stale.Token.Name, e.stale.Current)
}

func (e *lowerBoundError) Unwrap() error { return &e.stale }

// stored returns the stored value of name. Because Check and Current rely on the value, an answer of a standby, which
// may lag behind, and a negative value are errors.
func (s *Store) stored(ctx context.Context, method, name string) (int64, error) {
	found, value := false, sql.NullInt64{}
	err := s.reading(ctx, func(db session) error {
		found = false
		return dialectopt.Decide(ctx, db, s.dialect.server, func(row dialectopt.Row) error {
			found = true
			return row.Scan(&value)
		}, s.dialect.current, name)
	})
	switch {
	case err == nil && !found:
		return 0, fmt.Errorf("%w: %q", sqlfence.ErrUnknownName, name)
	case err == nil && value.Int64 < 0:
		err = errNegative(value.Int64)
	}
	if err != nil {
		return 0, fmt.Errorf("tokens: %s %q: %w", method, name, s.explain(ctx, err))
	}
	return value.Int64, nil
}

// explain returns err as a [sqlfence.SetupError] if the ledger, or a privilege on it or on other tables, is missing.
func (s *Store) explain(ctx context.Context, err error, others ...setuperr.Table) error {
	return dialectopt.Explain(ctx, s.db, err, append(others, s.needs("SELECT, INSERT, UPDATE"))...)
}

func (s *Store) needs(privileges string) setuperr.Table {
	return setuperr.Ledger(s.dialect, s.options.Schema, privileges)
}

// normalize returns the stored form of a name.
func normalize(name string) (string, error) {
	return nfc.String(name), sqlfence.Token{Name: name, Value: 1}.Validate()
}

func normalizeAll(names []string) (all []string, err error) {
	all = slices.Clone(names)
	for i := range all {
		if all[i], err = normalize(all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *Store) warn(token sqlfence.Token) { s.options.WarnOfLimit("tokens", token) }

func errNegative(value int64) error {
	return fmt.Errorf("the table %s holds the negative token %d, which was never issued: correct the row by hand",
		sqltext.LedgerTable, value)
}

func errLimit(name string, current int64) error {
	return fmt.Errorf("%w: %s", sqlfence.ErrTokenLimit, sqltext.Exhausted(name, current, sqlfence.MaxToken))
}
