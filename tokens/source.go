package tokens

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/sqlfence/sqlfence"
)

// A Source gives the writes of a process the tokens that were issued to it. It is made before the database is
// opened, so that [Source.Tokens] can be the database's source (see [sqlfence.WithTokenSource]); later [Source.Issue]
// has the tokens issued.
//
//	source, err := tokens.NewSource("books")
//	db, err := sqlfence.Open("pgx", dsn, sqlfence.WithTable("books"), sqlfence.WithTokenSource(source.Tokens))
//	store, err := tokens.New(db)
//	err = source.Issue(ctx, store)
//
// It is for a program that takes the place of an older run of its own: the process that has called Issue last
// writes, and writes of all others are [sqlfence.ErrStale] from then on. Where a process has to wait until
// another one has ended, use package lease's Election.
//
// The first write doesn't have them issued by itself: it holds a connection of the pool, and the issue would
// wait for another, which other first writes may hold (docs/adr/0042-a-source-is-issued-to-after-open.md).
//
// A Source is safe for use by several goroutines at once. The zero Source has no names.
type Source struct {
	names []string

	mu     sync.RWMutex
	newest map[string]sqlfence.Token
}

// NewSource returns a Source of tokens for up to 100 names, without tokens. An invalid name, one that comes twice
// and more than 100 are [sqlfence.ErrInvalid].
func NewSource(names ...string) (*Source, error) {
	names, _, err := distinct(names)
	return &Source{names: names, newest: make(map[string]sqlfence.Token, len(names))}, err
}

// Issue has a token issued for each name, by [Store.IssueMany], and gives it to the writes that begin from then on;
// a transaction that has written under the one before is refused (see [sqlfence.WithTokenSource]). Call it again to
// take over again, in the same database. Errors are those of IssueMany; the tokens from before then stay.
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

// Tokens returns the tokens of those names that the Source has, as [sqlfence.WithTokenSource] asks for them. Before the
// first [Source.Issue] it returns an error, which refuses the write.
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
