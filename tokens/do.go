package tokens

import (
	"context"

	"github.com/sqlfence/sqlfence"
)

// Do issues a token for name, and calls f with a context that carries it in addition to those of ctx: what f
// writes with it is refused once another token of name has been issued. It is for work that the last to begin it
// is to do, and takes no lock: an earlier f goes on until one of its writes is [sqlfence.ErrStale]. Where
// one at a time has to work and the others wait, use package lease.
//
// It returns the error of [Store.Issue], with f not called, or else f's error as it is.
func (s *Store) Do(ctx context.Context, name string, f func(ctx context.Context) error) error {
	token, err := s.Issue(ctx, name)
	if err != nil {
		return err
	}
	return f(sqlfence.WithFence(ctx, token))
}
