package tidb_test

import (
	"database/sql"
	"errors"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

// all returns a database for each session that the server supports.
func all(t *testing.T, dsn string) map[string]*sql.DB {
	t.Helper()
	dbs := map[string]*sql.DB{}
	for _, list := range [][]session{sessions, others, uncommitted} {
		for _, s := range list {
			if db := s.fence(t, dsn, sqlfence.RowFence("fence_token")); db != nil {
				dbs[s.name] = db
			}
		}
	}
	return dbs
}

// Many connections issue and adopt tokens concurrently, in every session mode. No token is issued twice, each caller's
// tokens increase, and Adopt accepts only a token above the issued ones.
func TestTokensAreIssuedOnceAndIncrease(t *testing.T) {
	dsn, _ := setup(t)
	const callers, each = 4, 15
	for name, db := range all(t, dsn) {
		t.Run(name, func(t *testing.T) {
			store, err := tokens.New(db)
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Setup(t.Context()); err != nil {
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
