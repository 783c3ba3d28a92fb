package tokens

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// manySize is how many names [Store.IssueMany] takes. On PostgreSQL each takes up two of the 6,400 locks that all
// sessions share by default.
const manySize = 100

// IssueMany returns a new token for each of up to 100 names, in their order. Either all names get a token or none,
// unless a trigger of the application suppresses the write of a row, which is an error. After an error of the
// connection or of ctx, tokens may have been issued; they are lost.
//
// Concurrent calls don't deadlock, because each call locks its names in byte order. If a call deadlocks with a
// transaction that writes under the names, IssueMany repeats the call.
//
// Errors: [sqlfence.ErrInvalid] for a name, for a repeated name, and for more than 100 names; otherwise those of Issue.
func (s *Store) IssueMany(ctx context.Context, names ...string) ([]sqlfence.Token, error) {
	names, inOrder, err := distinct(names)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	began := time.Now()
	values, err := s.takeEach(ctx, inOrder)
	if err != nil {
		if !errors.Is(err, sqlfence.ErrTokenLimit) {
			err = fmt.Errorf("tokens: issue for %d names: %w", len(names), s.explain(ctx, err))
		}
		s.observe(ctx, began, Event{Names: names, Calls: 1, Err: err})
		return nil, err
	}
	issued := make([]sqlfence.Token, len(names))
	for i, name := range names {
		issued[i] = sqlfence.Token{Name: name, Value: values[name]}
		s.warn(issued[i])
	}
	s.observe(ctx, began, Event{Names: names, Tokens: issued, Calls: 1})
	return issued, nil
}

// distinct returns the names as they are stored: in the order given, and in byte order.
func distinct(given []string) (names, inOrder []string, err error) {
	if len(given) > manySize {
		return nil, nil, fmt.Errorf("%w: tokens for %d names, at most %d are issued at once", sqlfence.ErrInvalid,
			len(given), manySize)
	}
	if names, err = normalizeAll(given); err != nil {
		return nil, nil, err
	}
	inOrder = slices.Sorted(slices.Values(names))
	for i, name := range inOrder {
		if i > 0 && inOrder[i-1] == name {
			return nil, nil, fmt.Errorf("%w: the name %q comes twice", sqlfence.ErrInvalid, name)
		}
	}
	return names, inOrder, nil
}

// takeEach issues a token for each name. The names must be sorted.
func (s *Store) takeEach(ctx context.Context, names []string) (values map[string]int64, err error) {
	for {
		err = dberr.Resend(ctx, dberr.IsRolledBack, func() (err error) {
			values, err = s.dialect.each(ctx, s, names)
			return err
		})
		switch {
		case sqltext.IsThrown(s.dialect, err, sqltext.OldSnapshot):
			if err := s.Ensure(ctx, names...); err != nil {
				return nil, err
			}
			continue
		case sqltext.IsThrown(s.dialect, err, full):
			return nil, s.whyFull(ctx, names)
		case err != nil:
			return nil, narrow(err)
		}
		for _, name := range names {
			if values[name] < 1 {
				return nil, errNotStored
			}
		}
		return values, nil
	}
}

// whyFull returns why one of the names has no token left.
func (s *Store) whyFull(ctx context.Context, names []string) error {
	for _, name := range names {
		if _, err := s.left(ctx, name); err != nil {
			return err
		}
	}
	return errNotStored
}

// queryEach returns the result of a query with two columns, a name and a value, by name. NULL becomes the zero value.
func queryEach[T any](
	ctx context.Context, db dialectopt.Queries, query string, args ...any,
) (map[string]T, error) {
	values := make(map[string]T)
	err := dialectopt.EachRow(ctx, db, func(rows *sql.Rows) error {
		var name string
		var value sql.Null[T]
		err := rows.Scan(&name, &value)
		values[name] = value.V
		return err
	}, query, args...)
	return values, err
}
