package tokens

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/nfc"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Store issues tokens and keeps the ledger in one database. It is safe for
// use by several goroutines at once, holds no resources when idle, and needs no
// closing. Share one Store for a database: concurrent calls of [Store.Issue]
// are coalesced within a Store.
type Store struct {
	db      *sql.DB
	dialect *dialect
	logger  *slog.Logger // nil: slog.Default() at the time of logging
	issuing coalescer

	timelines sqltext.Timelines
}

// New returns a Store on db, which may be fenced by sqlfence or not, and stays
// the caller's to close. It sends nothing to the database.
//
// By default the dialect is found from the driver (an error if it can't be, see
// [WithDialect]), and warnings go to [slog.Default].
func New(db *sql.DB, opts ...Option) (*Store, error) {
	c, err := configure(db, opts)
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, dialect: c.dialect, logger: c.logger}
	s.issuing.take, s.issuing.db = s.take, db
	return s, nil
}

// Ensure makes the names known to the ledger, those that are not already, with
// no token issued yet: their first Issue gives 1. It is needed only where a
// name may be used before its first Issue or Adopt; until then the database
// refuses its writes with [sqlfence.ErrUnknownName]. All names are added, or
// none. An invalid name is refused as [sqlfence.ValidateName] does.
func (s *Store) Ensure(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	names = slices.Clone(names)
	for i := range names {
		var err error
		if names[i], err = normalize(names[i]); err != nil {
			return err
		}
	}
	// In order, so that two calls that share names can't deadlock.
	slices.Sort(names)
	list, err := json.Marshal(names)
	if err != nil {
		return fmt.Errorf("tokens: ensure: %w", err)
	}
	if err := s.exec(ctx, s.dialect.ensure, string(list)); err != nil {
		return fmt.Errorf("tokens: ensure: %w", err)
	}
	return nil
}

// Current returns the newest token that has been issued or adopted for name.
// For a name that the ledger knows, but that has had no token yet, it is a
// Token with the Value 0, which every guarded write refuses.
//
// The answer may be out of date by the time it is read: it is for people and
// diagnostics. Only the guard in the write itself can tell whether a token is
// stale.
//
// Errors: [sqlfence.ErrUnknownName] if the ledger has no such name,
// [sqlfence.ErrTokenLimit] if it holds a value over [sqlfence.MaxToken], one
// that says so if it holds a negative value, what [sqlfence.ValidateName] says
// of an invalid name, or the database's own.
func (s *Store) Current(ctx context.Context, name string) (sqlfence.Token, error) {
	name, err := normalize(name)
	if err != nil {
		return sqlfence.Token{}, err
	}
	value, err := s.read(ctx, name)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return sqlfence.Token{}, fmt.Errorf("%w: %q", sqlfence.ErrUnknownName, name)
	case err != nil:
		return sqlfence.Token{}, fmt.Errorf("tokens: current %q: %w", name, err)
	case value > sqlfence.MaxToken:
		return sqlfence.Token{}, errLimit(name, value)
	}
	return sqlfence.Token{Name: name, Value: value}, nil
}

// Adopt raises the ledger to a token that another service has granted, and
// makes its name known if it isn't. From then on writes with a lower token are
// refused where the [sqlfence.Ledger] guards. An equal or higher token is
// adopted; a lower one changes nothing and is a [*sqlfence.StaleError] (which
// [errors.Is] finds to be [sqlfence.ErrStale]) with the newer token in Current.
// An invalid token is refused as [sqlfence.Token.Validate] does.
//
// The source of the tokens has to be durable by itself: a service that forgets some
// in a failover gives them again, and the ledger can't tell. See also [Store.Repair].
//
// Give a name one source of tokens, Issue or a foreign one: a service whose
// numbers are overtaken by Issue finds all its tokens stale.
func (s *Store) Adopt(ctx context.Context, token sqlfence.Token) error {
	if err := token.Validate(); err != nil {
		return err
	}
	token.Name = nfc.String(token.Name)
	current, err := s.query(ctx, s.dialect.adopt, token.Name, token.Value)
	if err != nil {
		return fmt.Errorf("tokens: adopt %q: %w", token.Name, err)
	}
	if current > token.Value {
		return &sqlfence.StaleError{Table: sqltext.LedgerTable, Token: token, Current: current}
	}
	s.warn(token)
	return nil
}

// read returns the stored value of name, which is not negative.
func (s *Store) read(ctx context.Context, name string) (int64, error) {
	value, err := s.query(ctx, s.dialect.current, name)
	if err == nil && value < 0 {
		err = errNegative(value)
	}
	return value, err
}

// normalize returns the form of a name in which it is stored.
func normalize(name string) (string, error) {
	return nfc.String(name), sqlfence.ValidateName(name)
}

// warn logs a token that is near the end of the range.
func (s *Store) warn(token sqlfence.Token) {
	if token.Value < sqlfence.WarnToken {
		return
	}
	s.log().Warn("tokens: fencing tokens are running out",
		"name", token.Name, "token", token.Value, "limit", int64(sqlfence.MaxToken))
}

func (s *Store) log() *slog.Logger {
	if s.logger == nil {
		return slog.Default()
	}
	return s.logger
}

func errNegative(value int64) error {
	return fmt.Errorf("the table %s holds the negative token %d, which no one has issued: correct it by hand", sqltext.LedgerTable, value)
}

func errLimit(name string, current int64) error {
	return fmt.Errorf("%w: %q stands at %d, the highest is %d", sqlfence.ErrTokenLimit, name, current, int64(sqlfence.MaxToken))
}
