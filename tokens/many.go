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

// manySize is how many names [Store.IssueMany] takes: on PostgreSQL each takes up two locks of the
// server's, which has room for 6,400 of all sessions by default.
const manySize = 100

// IssueMany returns a token for each of up to 100 names, in the order of the names, by one statement:
// for what has to hold several resources at once, with [sqlfence.WithFence]. Each token is as one of
// [Store.Issue]: newer than all before it of its name, and durable. Of no names the result is empty, and
// nothing is sent. A name that comes twice is invalid, in another spelling, too: of two tokens of a name the
// first would be stale at once. On MySQL and MariaDB a second statement reads the tokens, and names that are
// not in the ledger yet are added by a transaction.
//
// Either every name gets a token, or none has one taken; after an error of the connection, or of a context
// that has ended, all may have been taken, and are lost. A trigger of your own that keeps a row from being
// written is the exception: the error says so, and the other names' tokens are lost.
//
// Calls aren't coalesced. They wait for each other, and for Issue, where they have a name in common, and for
// open transactions that have written under one of the names. Names are taken in the order of their bytes, so
// calls at once don't deadlock, whatever the order that they were given in. A transaction that writes
// under several of the names in another order can deadlock with a call: the database ends one of them, and a
// call that was ended is sent again.
//
// Errors: [sqlfence.ErrInvalid] for an invalid name, for one that comes twice and for more than 100;
// [sqlfence.ErrTokenLimit] if a name has reached [sqlfence.MaxToken]; an untyped error if the ledger has a
// negative value; or the database's. With those that are typed nothing is issued.
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

// distinct returns the names as they are stored, as they were given and in the order of their bytes.
func distinct(given []string) (names, inOrder []string, err error) {
	if len(given) > manySize {
		return nil, nil, fmt.Errorf("%w: tokens for %d names, at most %d are issued at once", sqlfence.ErrInvalid,
			len(given), manySize)
	}
	names = slices.Clone(given)
	for i := range names {
		if names[i], err = normalize(names[i]); err != nil {
			return nil, nil, err
		}
	}
	inOrder = slices.Sorted(slices.Values(names))
	for i, name := range inOrder {
		if i > 0 && inOrder[i-1] == name {
			return nil, nil, fmt.Errorf("%w: the name %q comes twice", sqlfence.ErrInvalid, name)
		}
	}
	return names, inOrder, nil
}

// takeEach takes a token of each name; names are in order.
func (s *Store) takeEach(ctx context.Context, names []string) (values map[string]int64, err error) {
	for {
		err = dberr.Resend(ctx, dberr.IsRolledBack, func() (err error) {
			values, err = s.dialect.each(ctx, s, names)
			return err
		})
		switch {
		case sqltext.IsRaised(s.dialect, err, sqltext.Seen):
			if err := s.Ensure(ctx, names...); err != nil {
				return nil, err
			}
			continue
		case sqltext.IsRaised(s.dialect, err, full):
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

// queryEach returns the pairs of a name and a value that a statement answers with; NULL is the zero value.
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
