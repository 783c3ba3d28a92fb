package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// vtgate may delete the rows of a DELETE with a LIMIT by their keys, without the guard. So on Vitess the DELETE is
// refused, under each rule that compares the token in the condition. An UPDATE compares the token in SET.
func TestDeleteWithLimitIsRefusedOnVitess(t *testing.T) {
	for front, refused := range map[string]bool{"8.4.0": false, "8.4.6-Vitess": true} {
		for _, rules := range [][]sqlfence.Rule{
			{sqlfence.RowFence("fence_token")}, {sqlfence.Claim("attempt"), sqlfence.Key("id")},
			{sqlfence.EditLock("who", "since", "till")},
		} {
			sent := ""
			db, err := sqlfence.OpenDB(fakedb.New(func(_ context.Context, c fakedb.Call) (fakedb.Response, error) {
				switch {
				case strings.HasPrefix(c.Query, "SELECT @@version"):
					return fakedb.Response{Rows: [][]any{{front, ""}}}, nil
				case strings.HasPrefix(c.Query, "DELETE"), strings.HasPrefix(c.Query, "UPDATE"):
					sent = c.Query
				}
				return fakedb.Response{Affected: 1}, nil
			}), sqlfence.WithDialect(sqlfence.MySQL), sqlfence.WithTable("books", rules...))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			ctx := sqlfence.WithEditor(sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 5},
				sqlfence.Token{Name: "books/1", Value: 5}), "ada")
			for query, limited := range map[string]bool{
				"DELETE FROM books LIMIT 1":                               true,
				"DELETE FROM books WHERE price > 1 ORDER BY id LIMIT 1":   true,
				"DELETE FROM books WHERE price > 1":                       false,
				"UPDATE books SET price = 1 WHERE price > 1 LIMIT 1":      false,
				"DELETE FROM books WHERE id IN (SELECT n FROM x LIMIT 1)": false,
			} {
				sent = ""
				_, err := db.ExecContext(ctx, query)
				if refused := refused && limited; errors.Is(err, sqlfence.ErrUnguardable) != refused || (sent == "") != refused {
					t.Errorf("%s, %v, %s: sent %q, %v", front, rules, query, sent, err)
				}
			}
		}
	}
}

// Behind vtgate the catalogue has the names of MySQL's databases, not of keyspaces. So a view in the table's place is
// found by its name alone.
func TestViewInAnyKeyspaceIsFoundOnVitess(t *testing.T) {
	for front, want := range map[string]error{"8.4.0": nil, "8.4.6-Vitess": sqlfence.ErrUnguardable} {
		db, err := sqlfence.OpenDB(fakedb.New(func(_ context.Context, c fakedb.Call) (fakedb.Response, error) {
			switch {
			case strings.HasPrefix(c.Query, "SELECT @@version"):
				return fakedb.Response{Rows: [][]any{{front, ""}}}, nil
			case strings.Contains(c.Query, "'VIEW'"):
				return fakedb.Response{Rows: [][]any{{"view", "vt_main_0", "books", "1"}}}, nil
			}
			return fakedb.Response{Affected: 1}, nil
		}), sqlfence.WithDialect(sqlfence.MySQL), sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 5})
		if _, err := db.ExecContext(ctx, "UPDATE main.books SET price = 1"); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", front, err, want)
		}
		if _, err := db.ExecContext(ctx, "UPDATE books SET price = 1"); !errors.Is(err, sqlfence.ErrUnguardable) {
			t.Errorf("%s, without a schema: %v, want a refusal", front, err)
		}
	}
}
