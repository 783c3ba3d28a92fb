package vitess_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// Many connections issue and adopt tokens concurrently, from both keyspaces, with a ledger in the keyspace of one shard. No token is issued twice, each caller's
// tokens increase, and Adopt accepts only a token above the issued ones.
func TestTokensAreIssuedOnceAndIncrease(t *testing.T) {
	plain := open(t, in(t, "plain", nil))
	exec(t, plain, "DROP TABLE IF EXISTS fencing_tokens")
	exec(t, plain, "CREATE TABLE fencing_tokens (name varbinary(512) NOT NULL PRIMARY KEY, token bigint NOT NULL)")
	const callers, each = 4, 15
	for name, dsn := range map[string]string{"plain": in(t, "plain", nil), "sharded": in(t, "sharded", nil),
		"no autocommit": in(t, "plain", map[string]string{"autocommit": "0"})} {
		t.Run(name, func(t *testing.T) {
			db, err := sqlfence.Open("mysql", dsn, sqlfence.WithTable("books", sqlfence.RowFence("fence_token")), sqlfence.WithSchema("plain"))
			harness.CloseAtEnd(t, db, err)
			store, err := tokens.New(db)
			if err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			seen := map[sqlfence.Token]bool{}
			note := func(token sqlfence.Token, last int64) {
				mu.Lock()
				defer mu.Unlock()
				if seen[token] || token.Value <= last {
					t.Errorf("%v was issued twice, or behind %d", token, last)
				}
				seen[token] = true
			}
			books, pens := "books of "+name, "pens of "+name
			var running sync.WaitGroup
			for range callers {
				running.Go(func() {
					last := map[string]int64{}
					for range each {
						token, err := store.Issue(t.Context(), books)
						if err != nil {
							t.Errorf("Issue: %v", err)
							return
						}
						note(token, last[books])
						last[books] = token.Value
						both, err := store.IssueMany(t.Context(), books, pens)
						if err != nil {
							t.Errorf("IssueMany: %v", err)
							return
						}
						for _, token := range both {
							note(token, last[token.Name])
							last[token.Name] = token.Value
						}
					}
				})
			}
			running.Wait()
			current, err := store.Current(t.Context(), books)
			if want := int64(2 * callers * each); err != nil || current.Value != want {
				t.Errorf("%d are issued, want %d: %v", current.Value, want, err)
			}
			if err := store.Adopt(t.Context(), sqlfence.Token{Name: books, Value: 1000}); err != nil {
				t.Error(err)
			}
			if err := store.Adopt(t.Context(), sqlfence.Token{Name: books, Value: 999}); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("Adopt of a lower one: %v", err)
			}
			if err := store.Adopt(t.Context(), sqlfence.Token{Name: "adopted by " + name, Value: 7}); err != nil {
				t.Error(err)
			}
			if err := store.Ensure(t.Context(), books, "ensured by "+name); err != nil {
				t.Error(err)
			}
			if next, err := store.Issue(t.Context(), books); err != nil || next.Value != 1001 {
				t.Errorf("%v, %v", next, err)
			}
		})
	}
}

// Setup succeeds in the keyspace of one shard, without triggers.
func TestSetup(t *testing.T) {
	if err := harness.NewStore(t, open(t, in(t, "plain", nil))).Setup(t.Context()); err != nil {
		t.Error(err)
	}
}
