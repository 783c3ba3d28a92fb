package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// A connection queries the session's sql_mode before the first guarded write, and again before an upsert after a SET.
// It refuses the write if a column would keep its first value, or without a response.
func TestUpsertsAskHowTheSessionAssigns(t *testing.T) {
	const upsert, update = "INSERT INTO books (id) VALUES (1) ON DUPLICATE KEY UPDATE price = 1", "UPDATE books SET price = 1"
	down := errors.New("no answer")
	for name, tt := range map[string]struct {
		rule    sqlfence.Rule
		mode    [][]any
		err     error
		queries []string

		asked, written int
		want           error
	}{
		"in order":            {rule: sqlfence.RowFence("fence_token"), queries: []string{upsert, update, upsert}, asked: 1, written: 3},
		"changed":             {rule: sqlfence.RowFence("fence_token"), queries: []string{upsert, "SET sql_mode = ''", upsert, upsert}, asked: 2, written: 3},
		"at once":             {rule: sqlfence.RowFence("fence_token"), mode: [][]any{{"sql_mode", "PIPES_AS_CONCAT,SIMULTANEOUS_ASSIGNMENT"}}, queries: []string{upsert, upsert}, asked: 1, want: sqlfence.ErrUnguardable},
		"no answer":           {rule: sqlfence.RowFence("fence_token"), err: down, queries: []string{upsert, upsert}, asked: 2, want: down},
		"no upsert":           {rule: sqlfence.RowFence("fence_token"), queries: []string{update, "SET sql_mode = ''", "INSERT INTO books (id) VALUES (1)"}, asked: 1, written: 2},
		"nothing is assigned": {rule: sqlfence.Ledger(), mode: [][]any{{"sql_mode", "SIMULTANEOUS_ASSIGNMENT"}}, queries: []string{upsert}, asked: 1, written: 1},
	} {
		t.Run(name, func(t *testing.T) {
			asked, written := 0, 0
			base := fakedb.New(func(_ context.Context, c fakedb.Call) (fakedb.Response, error) {
				switch {
				case strings.HasPrefix(c.Query, "SHOW VARIABLES"):
					asked++
					if tt.mode == nil {
						tt.mode = [][]any{{"sql_mode", "ANSI"}}
					}
					return fakedb.Response{Rows: tt.mode}, tt.err
				case strings.HasPrefix(c.Query, "SHOW COLUMNS"):
				case strings.Contains(c.Query, " books "):
					written++
				}
				return fakedb.Response{Affected: 1}, nil
			})
			db, err := sqlfence.OpenDB(base, sqlfence.WithDialect(sqlfence.MySQL), sqlfence.WithTable("books", tt.rule))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			ctx := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books", Value: 5})
			for _, query := range tt.queries {
				if _, err := db.ExecContext(ctx, query); !errors.Is(err, tt.want) {
					t.Errorf("%s: error = %v, want %v", query, err, tt.want)
				}
			}
			if asked != tt.asked || written != tt.written {
				t.Errorf("asked %d times and sent %d writes, want %d and %d", asked, written, tt.asked, tt.written)
			}
		})
	}
}
