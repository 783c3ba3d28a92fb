package tokens

import (
	"context"

	"github.com/sqlfence/sqlfence"
)

// Do issues a token for name and calls f with a context that carries it. The most recently started run wins: the
// writes of earlier runs are [sqlfence.ErrStale]. To run one at a time, use package lease. Do returns the error of
// [Store.Issue], without calling f, or the error of f.
func (s *Store) Do(ctx context.Context, name string, f func(ctx context.Context) error) error {
	token, err := s.Issue(ctx, name)
	if err != nil {
		return err
	}
	return f(sqlfence.WithFence(ctx, token))
}
