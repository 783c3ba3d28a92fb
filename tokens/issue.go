package tokens

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Issue gives out a token for name that is newer than every one before it, and
// makes the name known to the ledger if it isn't. The first token is 1 (on PostgreSQL
// in a cluster that has never been promoted or restored). It is durable. Once
// Issue has returned, older tokens are refused where the [sqlfence.Ledger]
// guards.
//
// Concurrent calls for one name are coalesced: while one statement is under
// way, newcomers wait and then share the next one, each with a token of its
// own. It takes one connection for a name; only where a statement is not answered
// within 100 ms the next one is sent on another connection, and then again after twice
// as long, so that a connection that has gone dead stops no other caller: at most three
// times, and with [sql.DB.SetMaxOpenConns] on at most a quarter of the pool's
// connections. The shared statement doesn't belong
// to one caller, so it carries none of their contexts' values, and it is
// cancelled only when all of them have gone.
//
// A call whose context ends returns at once with the context's error; its token
// may have been taken, and is then lost. The same holds for any other error of
// the database.
//
// Errors: [sqlfence.ErrTokenLimit], with nothing written, if the name stands at
// [sqlfence.MaxToken] (of coalesced calls as many succeed as tokens are left),
// one that says so if the ledger holds a negative value, what
// [sqlfence.ValidateName] says of an invalid name, or the database's own.
func (s *Store) Issue(ctx context.Context, name string) (sqlfence.Token, error) {
	name, err := normalize(name)
	if err != nil {
		return sqlfence.Token{}, err
	}
	value, err := s.issuing.issue(ctx, name)
	switch {
	case errors.Is(err, sqlfence.ErrTokenLimit):
		return sqlfence.Token{}, err
	case err != nil:
		return sqlfence.Token{}, fmt.Errorf("tokens: issue %q: %w", name, err)
	}
	return sqlfence.Token{Name: name, Value: value}, nil
}

// take takes n tokens, or as many as there are left, and returns the last one
// and how many it took.
func (s *Store) take(ctx context.Context, name string, n int64) (last, taken int64, err error) {
	for {
		last, err = s.queryFloored(ctx, s.dialect.issue, name, n)
		if err == nil {
			s.warn(sqlfence.Token{Name: name, Value: last})
			return last, n, nil
		}
		if sqltext.IsUnseen(err) {
			if err := s.Ensure(ctx, name); err != nil {
				return 0, 0, err
			}
			continue
		}
		if dberr.SQLState(err) == dberr.OutOfRange {
			return 0, 0, fmt.Errorf("the column token of %s is too narrow, make it a bigint: %w", sqltext.LedgerTable, err)
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return 0, 0, err
		}
		// The statement refused: n tokens don't fit under the limit.
		current, err := s.queryFloored(ctx, s.dialect.reached, name)
		switch {
		case err != nil:
			return 0, 0, err
		case current < 0:
			return 0, 0, errNegative(current)
		case current >= sqlfence.MaxToken:
			return 0, 0, errLimit(name, current)
		case current+n <= sqlfence.MaxToken:
			// They do fit, and a token never falls: someone else refused.
			return 0, 0, fmt.Errorf("the table %s took no token: look for a trigger or a rule on it", sqltext.LedgerTable)
		}
		n = sqlfence.MaxToken - current
	}
}
