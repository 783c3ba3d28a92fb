package tokens

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Issue returns a token for name that is newer than all before it, and adds the name to
// the ledger if it is missing. The first token is 1; on PostgreSQL it is higher in a
// cluster that was ever promoted or restored, and tokens there leave gaps. The token is durable. Once Issue has
// returned, tables with [sqlfence.Ledger] refuse older tokens.
//
// Concurrent calls for one name are coalesced: while a statement runs, new callers wait
// and then share the next one, each with a token of its own. A name uses one connection.
// On PostgreSQL and SQLite those for other names are coalesced, too, if there are many: a statement for
// several names waits for none that another transaction holds.
// When a statement has no answer after 100 ms, the next one is sent on another
// connection, and so on after 200 ms and 400 ms, so that a dead connection doesn't stop
// the other callers: at most three times, and with [sql.DB.SetMaxOpenConns] on no more
// than a quarter of the pool. A shared statement carries no values of the callers'
// contexts, and is cancelled only when all callers have gone.
//
// When its context ends, a call returns at once with the context's error. After any error but
// ErrTokenLimit a token may have been taken; it is then lost. The servers of MySQL and MariaDB
// don't notice that a client has gone, so there a statement that was given up is ended by another
// connection. If none can be had within 2 s, the process ends first, or the KILL doesn't reach the
// server, the statement may take its token later: within innodb_lock_wait_timeout, once it has the
// ledger's row.
//
// Errors: [sqlfence.ErrTokenLimit], with nothing written, if the name has reached
// [sqlfence.MaxToken] (of coalesced calls, as many succeed as tokens are left); an
// untyped error if the ledger has a negative value; [sqlfence.ErrInvalid] for an invalid
// name; or the database's.
func (s *Store) Issue(ctx context.Context, name string) (sqlfence.Token, error) {
	name, err := normalize(name)
	if err != nil {
		return sqlfence.Token{}, err
	}
	began := time.Now()
	value, calls, err := s.issuing.issue(ctx, name)
	e := Event{Names: []string{name}, Calls: int(calls)}
	switch {
	case err == nil:
		e.Tokens = []sqlfence.Token{{Name: name, Value: value}}
		s.observe(ctx, began, e)
		return e.Tokens[0], nil
	case !errors.Is(err, sqlfence.ErrTokenLimit):
		err = fmt.Errorf("tokens: issue %q: %w", name, s.explain(ctx, err))
	}
	e.Err = err
	s.observe(ctx, began, e)
	return sqlfence.Token{}, err
}

// take takes n tokens, or as many as are left.
func (s *Store) take(ctx context.Context, name string, n int64) (taking, error) {
	a := &asking{Name: name, Count: n}
	at, settled, err := s.sharing.Share(ctx, name, a)
	switch {
	case err != nil: // the batch may still write to a
		return taking{}, err
	case settled:
		s.warn(sqlfence.Token{Name: name, Value: a.last})
		return taking{a.last, n, a.calls}, nil
	}
	defer at.Leave()
	last, taken, err := s.takeAlone(ctx, name, n)
	return taking{last, taken, n}, err
}

// takeAlone is take by a statement of its own.
func (s *Store) takeAlone(ctx context.Context, name string, n int64) (last, taken int64, err error) {
	for {
		last, err = s.dialect.issue(ctx, s, name, n)
		if err == nil {
			s.warn(sqlfence.Token{Name: name, Value: last})
			return last, n, nil
		}
		if sqltext.IsRaised(s.dialect, err, sqltext.Seen) {
			if err := s.Ensure(ctx, name); err != nil {
				return 0, 0, err
			}
			continue
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return 0, 0, narrow(err)
		}
		// The statement took none: n tokens don't fit under the limit.
		left, err := s.left(ctx, name)
		switch {
		case err != nil:
			return 0, 0, err
		case n <= left:
			// They do fit, and a token never falls: something else kept it from writing.
			return 0, 0, errNotStored
		}
		n = left
	}
}

// left returns how many tokens a name has left, or why it has none.
func (s *Store) left(ctx context.Context, name string) (n int64, err error) {
	current, err := s.queryFloored(ctx, s.dialect.reached, name)
	switch {
	case err != nil:
		return 0, err
	case current < 0:
		return 0, errNegative(current)
	case current >= sqlfence.MaxToken:
		return 0, errLimit(name, current)
	}
	return sqlfence.MaxToken - current, nil
}

// narrow explains an error of a column that a token doesn't fit in.
func narrow(err error) error {
	if dberr.SQLState(err) == dberr.OutOfRange {
		return fmt.Errorf("the column token of %s is too narrow, make it a bigint: %w", sqltext.LedgerTable, err)
	}
	return err
}

var errNotStored = errors.New("the statement stored no token in the table " + sqltext.LedgerTable +
	"; look for a trigger or a rule on it")
