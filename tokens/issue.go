package tokens

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/share"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Issue returns a new token for name, higher than all earlier tokens of the name, and adds the name to the ledger if it
// is missing. When Issue returns, the token is durable, and tables with [sqlfence.Ledger] refuse older tokens.
//
// Concurrent calls for one name share statements, so a tracer of the driver finds no span of a caller. If a statement
// gets no response within 100 ms, the next callers use another connection.
//
// When ctx ends, Issue returns at once. After any error except ErrTokenLimit, the database may have issued a token that
// no caller gets, on MySQL and MariaDB even after Issue has returned: it makes older tokens stale. Call Issue again.
//
// Errors: [sqlfence.ErrTokenLimit], if the name has reached [sqlfence.MaxToken] or was retired by [Store.Rotate]; an
// untyped error if the ledger has a negative value; [sqlfence.ErrInvalid] for the name.
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

// Do issues a token for name and calls f with a context that carries it. The most recently started run wins: the writes
// of earlier runs are [sqlfence.ErrStale]. To run one at a time, use package lease. Errors are those of [Store.Issue]
// and of f.
func (s *Store) Do(ctx context.Context, name string, f func(ctx context.Context) error) error {
	token, err := s.Issue(ctx, name)
	if err != nil {
		return err
	}
	return f(sqlfence.WithFence(ctx, token))
}

// take issues n tokens of name, or as many as are left.
func (s *Store) take(ctx context.Context, name string, n int64) (taking, error) {
	a := &request{Name: name, Count: n}
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

// takeAlone is take, but it never shares its statement with other names.
func (s *Store) takeAlone(ctx context.Context, name string, n int64) (last, taken int64, err error) {
	for {
		last, err = s.dialect.issue(ctx, s, name, n)
		if err == nil {
			s.warn(sqlfence.Token{Name: name, Value: last})
			return last, n, nil
		}
		if sqltext.IsThrown(s.dialect, err, sqltext.OldSnapshot) {
			if err := s.Ensure(ctx, name); err != nil {
				return 0, 0, err
			}
			continue
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return 0, 0, narrow(err)
		}
		// The statement took none, because n tokens don't fit under the limit.
		left, err := s.left(ctx, name)
		switch {
		case err != nil:
			return 0, 0, err
		case n <= left:
			return 0, 0, errNotStored
		}
		n = left
	}
}

// left returns how many tokens a name has left. If there are none, the error says why.
func (s *Store) left(ctx context.Context, name string) (n int64, err error) {
	current, err := s.queryBounded(ctx, s.dialect.reached, name)
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

// narrow explains the error of a column that is too small for a token.
func narrow(err error) error {
	if dberr.SQLState(err) == dberr.OutOfRange {
		return fmt.Errorf("the column token of %s is too narrow, make it a bigint: %w", sqltext.LedgerTable, err)
	}
	return err
}

var errNotStored = errors.New("the statement stored no token in the table " + sqltext.LedgerTable +
	"; look for a trigger or a rule on it")

// A request is a request for tokens of one name.
type request struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`

	last  int64 // 0 until it is settled
	calls int64 // number of callers that the statement has served
}

// takeAll sends one statement for several names. For a name without a row, with too few tokens, or locked by another
// transaction, the request stays unsettled, and its caller calls takeAlone. If the statement fails, all requests stay
// unsettled; tokens that the statement may have issued are lost.
func (s *Store) takeAll(ctx context.Context, batch []*share.Member[*request]) {
	all := make([]*request, len(batch))
	for i, m := range batch {
		all[i] = m.Call
	}
	values, ok, err := s.dialect.shared(ctx, s, all)
	if err != nil {
		return
	}
	if !ok {
		s.sharing.Off()
	}
	var calls int64
	for _, m := range batch {
		if values[m.Call.Name] > 0 {
			calls += m.Call.Count
		}
	}
	for _, m := range batch {
		m.Call.calls = calls
		m.Call.last = values[m.Call.Name]
		m.Settled = m.Call.last > 0
	}
}
