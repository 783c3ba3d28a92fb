package tokens_test

import (
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// An SQL string of the application has begun a transaction on the pool's connection and left it open. A token that is
// issued there must not be rolled back, so the call is refused or commits.
func TestTokensInATransactionThatATextHasBegun(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b)
		if b.Name == "pq" || b.Dialect == sqlfence.MySQL && !s.IsMariaDB(t) {
			t.Skip("neither the driver nor the server says that it is open")
		}
		db := b.Raw(t, s.Source)
		db.SetMaxOpenConns(1)
		store, err := tokens.New(db)
		if err != nil {
			t.Fatal(err)
		}
		newest, err := store.Issue(t.Context(), "books")
		if err != nil {
			t.Fatal(err)
		}
		calls := map[string]func() (int64, error){
			"Issue": func() (int64, error) {
				token, err := store.Issue(t.Context(), "books")
				return token.Value, err
			},
			"IssueMany": func() (int64, error) {
				all, err := store.IssueMany(t.Context(), "books", "pens")
				if err != nil {
					return 0, err
				}
				return all[0].Value, nil
			},
			"Adopt": func() (int64, error) {
				token := sqlfence.Token{Name: "books", Value: newest.Value + 10}
				return token.Value, store.Adopt(t.Context(), token)
			},
		}
		for name, call := range calls {
			if _, err := db.ExecContext(t.Context(), "BEGIN"); err != nil {
				t.Fatal(err)
			}
			value, failed := call()
			_, _ = db.ExecContext(t.Context(), "ROLLBACK") // fails if it is another connection
			now, err := store.Issue(t.Context(), "books")
			if err != nil {
				t.Fatal(err)
			}
			if failed == nil && now.Value <= value {
				t.Errorf("%s: the token %d, and then %d", name, value, now.Value)
			}
			if (failed != nil) != (b.Dialect == sqlfence.SQLite) {
				t.Errorf("%s: %v", name, failed)
			}
			newest = now
		}
	})
}
