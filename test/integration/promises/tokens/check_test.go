package tokens_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Check returns the error that a guarded write with the token would get.
func TestCheck(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		store := setupStore(t, db)
		ctx := t.Context()
		check := func(name string, value int64) error {
			return store.Check(ctx, sqlfence.Token{Name: name, Value: value})
		}
		harness.WantError(t, check("books", 1), sqlfence.ErrUnknownName)
		if err := store.Ensure(ctx, "books"); err != nil {
			t.Fatal(err)
		}
		if err, found := check("books", 1), (*sqlfence.NotIssuedError)(nil); !errors.As(err, &found) || found.Current != 0 {
			t.Errorf("before the first token: %v", err)
		}
		for range 3 {
			token, err := store.Issue(ctx, "books")
			if err == nil {
				err = store.Check(ctx, token)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		newest, err := store.Current(ctx, "books")
		if err != nil {
			t.Fatal(err)
		}
		if err, found := check("books", newest.Value-1), (*sqlfence.StaleError)(nil); !errors.As(err, &found) || found.Current != newest.Value {
			t.Errorf("an older token: %v", err)
		}
		harness.WantError(t, check("books", newest.Value+1), sqlfence.ErrNotIssued)
		harness.WantError(t, check("books", 0), sqlfence.ErrInvalid)
		harness.WantError(t, check("books", sqlfence.MaxToken+1), sqlfence.ErrTokenLimit)
		if _, err := store.Rotate(ctx, "books"); err != nil {
			t.Fatal(err)
		}
		harness.WantError(t, check("books", newest.Value), sqlfence.ErrStale)
	})
}
