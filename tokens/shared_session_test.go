package tokens_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/tokens"
)

// On MySQL a second query reads the issued token if the ledger has triggers. A proxy that shares sessions may send the
// query to another session, which has the number of an earlier token. Then no token is returned.
func TestTokenOfAnotherSessionIsNotReturned(t *testing.T) {
	for _, answer := range []any{int64(7), int64(1<<50 + 7), int64(0), nil} {
		db := sql.OpenDB(fakedb.New(func(_ context.Context, c fakedb.Call) (fakedb.Response, error) {
			switch {
			case strings.HasPrefix(c.Query, "SELECT LAST_INSERT_ID()"):
				return fakedb.Response{Rows: [][]any{{answer}}}, nil
			case strings.Contains(c.Query, "SELECT @sqlfence_issued"):
				if answer == nil {
					return fakedb.Response{Rows: [][]any{{nil}}}, nil
				}
				return fakedb.Response{Rows: [][]any{{"ABCDEFGHIJKLMNOP 1:7 2:7"}}}, nil
			}
			return fakedb.Response{Affected: 1, HasID: true}, nil
		}))
		defer db.Close()
		store := newStore(t, db, tokens.WithDialect(sqlfence.MySQL))
		if token, err := store.Issue(t.Context(), "books"); err == nil || answer != nil && !strings.Contains(err.Error(), "another session") {
			t.Fatalf("%v: Issue returned %v, %v", answer, token, err)
		}
		if err := store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: 7}); err == nil || answer != nil && !strings.Contains(err.Error(), "another session") {
			t.Errorf("%v: Adopt: %v", answer, err)
		}
		if issued, err := store.IssueMany(t.Context(), "books", "pens"); err == nil || !strings.Contains(err.Error(), "another session") {
			t.Errorf("%v: IssueMany returned %v, %v", answer, issued, err)
		}
	}
}
