package tokens

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/sqlfence/sqlfence"
)

// A Source provides a process's tokens to its writes. It is created before the database is opened:
//
//	source, err := tokens.NewSource("books")
//	db, err := sqlfence.Open("pgx", dsn, sqlfence.WithTable("books"), sqlfence.WithTokenSource(source.Tokens))
//	store, err := tokens.New(db)
//	err = source.Issue(ctx, store)
//
// Use a Source if a new process replaces an older one: after [Source.Issue], writes of the other processes are
// [sqlfence.ErrStale]. To wait until the older one has ended, use an Election of package lease. A Source is safe for
// concurrent use. The zero Source has no names.
type Source struct {
	names []string

	mu     sync.RWMutex
	newest map[string]sqlfence.Token
}

// NewSource returns a Source for up to 100 different names, or [sqlfence.ErrInvalid].
func NewSource(names ...string) (*Source, error) {
	names, _, err := distinct(names)
	return &Source{names: names, newest: make(map[string]sqlfence.Token, len(names))}, err
}

// Issue issues a token for each name by [Store.IssueMany]. Writes that begin afterwards carry the new tokens; a
// transaction that has written under an earlier token is refused. Call Issue again to take over again. After an error
// the earlier tokens stay.
func (c *Source) Issue(ctx context.Context, store *Store) error {
	issued, err := store.IssueMany(ctx, c.names...)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, token := range issued {
		if token.Value > c.newest[token.Name].Value { // another Issue may have been faster
			c.newest[token.Name] = token
		}
	}
	return nil
}

// Tokens is the source for [sqlfence.WithTokenSource]. Before the first [Source.Issue] it returns an error.
func (c *Source) Tokens(_ context.Context, names []string) (found []sqlfence.Token, err error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, name := range names {
		if name, err := normalize(name); err != nil || !slices.Contains(c.names, name) {
			continue
		} else if token, ok := c.newest[name]; ok {
			found = append(found, token)
		} else {
			return nil, fmt.Errorf("tokens: no token was issued for %q: call Source.Issue first", name)
		}
	}
	return found, nil
}
