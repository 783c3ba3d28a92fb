package tokens

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/poll"
	"github.com/sqlfence/sqlfence/internal/setuperr"
)

// listSize is how many names List reads at a time.
const listSize = 1000

// List returns the newest token of each name that begins with prefix, in the database's order of the names; of all
// names if prefix is empty. The Value is as it is stored: 0 for a name without a token yet, above
// [sqlfence.MaxToken] for one that [Store.Rotate] has retired. One below 0 was never issued: correct the row by hand.
//
//	for token, err := range store.List(ctx, "jobs/") {
//		...
//	}
//
// It reads 1,000 names at a time, each page by a query of its own; a name that is added or deleted meanwhile may be
// among them or not. Leave the loop to read no more. It is for display and diagnosis, as [Store.Current] is.
//
// After an error, which comes with the zero Token, the loop ends: [sqlfence.ErrInvalid] for a prefix that no name
// can begin with, or the database's. It takes the privilege SELECT.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[sqlfence.Token, error] {
	return func(yield func(sqlfence.Token, error) bool) {
		if prefix != "" {
			var err error
			if prefix, err = normalize(prefix); err != nil {
				yield(sqlfence.Token{}, err)
				return
			}
		}
		for after, more := "", true; more; {
			page, err := s.page(ctx, prefix, after)
			if err != nil {
				needs := setuperr.Ledger(s.dialect, s.options.Schema, "SELECT")
				yield(sqlfence.Token{}, fmt.Errorf("tokens: list: %w", dialectopt.Explain(ctx, s.db, err, needs)))
				return
			}
			for _, token := range page {
				if !yield(token, nil) {
					return
				}
				after = token.Name
			}
			more = len(page) == listSize
		}
	}
}

// page returns the first names that begin with prefix and come behind another.
func (s *Store) page(ctx context.Context, prefix, after string) (page []sqlfence.Token, err error) {
	err = s.reading(ctx, func(db dialectopt.Queries) error {
		page = page[:0]
		return dialectopt.EachRow(ctx, db, func(rows *sql.Rows) error {
			var t sqlfence.Token
			err := rows.Scan(&t.Name, &t.Value)
			page = append(page, t)
			return err
		}, s.dialect.page, after, prefix)
	})
	return page, err
}

// Watch tells the newest token of name: first as it is, and then whenever it has changed, until the loop is left or
// ctx ends. While the ledger lacks the name its Value is 0; see [Store.List] for the others. It asks the
// database every interval, over 0, so what lies between two questions isn't seen. It is for display and diagnosis, as
// [Store.Current] is: a cache that is dropped by it may be out of date for an interval.
//
//	for token, err := range store.Watch(ctx, "books", time.Second) {
//		...
//	}
//
// Errors are [sqlfence.ErrInvalid] for the name or the interval, after which the loop ends; or the database's, each
// time that it can't be asked, with a zero Token that says nothing.
func (s *Store) Watch(ctx context.Context, name string, interval time.Duration) iter.Seq2[sqlfence.Token, error] {
	return func(yield func(sqlfence.Token, error) bool) {
		name, err := normalize(name)
		if err == nil && interval <= 0 {
			err = fmt.Errorf("%w: an interval of %v, want more than 0", sqlfence.ErrInvalid, interval)
		}
		if err != nil {
			yield(sqlfence.Token{}, err)
			return
		}
		ask := func(ctx context.Context) (sqlfence.Token, error) {
			value, err := s.query(ctx, s.dialect.current, name)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return sqlfence.Token{}, fmt.Errorf("tokens: watch %q: %w", name, s.explain(ctx, err))
			}
			return sqlfence.Token{Name: name, Value: value}, nil
		}
		poll.Changes(ctx, interval, ask, func(a, b sqlfence.Token) bool { return a == b })(yield)
	}
}
