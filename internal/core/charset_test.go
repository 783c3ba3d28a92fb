package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// The connection's encoding is queried before the first guarded write. After a statement that may have changed the
// encoding, it is queried again before a statement with an argument that depends on it: a byte beyond ASCII before a
// quote. A connection without guarded writes queries it before any such statement. A statement is refused only if an
// unknown encoding may change its meaning.
func TestCharsetIsAskedFor(t *testing.T) {
	down := errors.New("no answer")
	const ascii, beyond, others = "UPDATE books SET title = ?", "UPDATE books SET title = ?, note = 'é'", "UPDATE others SET title = ?"
	type step struct {
		query string
		arg   any
		asked int // so far
		want  error
	}
	for name, tt := range map[string]struct {
		dialect sqlfence.Dialect
		rows    [][]any
		err     error
		steps   []step
	}{
		"ASCII": {steps: []step{{ascii, "x", 1, nil}, {ascii, int64(1), 1, nil}, {ascii, time.Now(), 1, nil}, {ascii, []byte("x"), 1, nil}, {ascii, nil, 1, nil},
			{"SET NAMES latin1", nil, 1, nil}, {ascii, "x", 1, nil}, {ascii, int64(1), 1, nil}, {ascii, time.Now(), 1, nil}, {ascii, []byte("x"), 1, nil}, {ascii, nil, 1, nil}}},
		"once":  {steps: []step{{ascii, "é", 1, nil}, {ascii, "\xff", 1, nil}, {beyond, "x", 1, nil}}},
		"bytes": {steps: []step{{ascii, []byte{0xBF}, 1, nil}}},
		"text":  {steps: []step{{beyond, "x", 1, nil}}},
		"other": {steps: []step{{ascii, json.RawMessage("1"), 1, nil}}},
		"changed": {steps: []step{{ascii, "é", 1, nil}, {"SELECT 1", nil, 1, nil}, {ascii, "é'", 1, nil}, {"SET CHARACTER SET latin1", nil, 1, nil}, {ascii, "é", 1, nil}, {"SELECT 1 = 1, 'é'", nil, 1, nil},
			{ascii, "é'", 2, nil}, {beyond, "x", 2, nil}}},
		"no guarded write yet": {steps: []step{{others, "é", 0, nil}, {others, "é\n", 1, nil}, {others, []byte("é\\"), 1, nil}}},
		"GBK":                  {rows: [][]any{{"character_set_client", "gbk"}, {"sql_mode", ""}}, steps: []step{{ascii, "x", 1, nil}, {ascii, "é'", 1, nil}, {beyond, "é'", 1, nil}, {"SET autocommit = 1", nil, 1, nil}, {ascii, "é", 1, nil}, {ascii, "é'", 2, nil}}},
		"unknown encoding":     {rows: [][]any{{"character_set_client", "swe7"}}, steps: []step{{ascii, "x", 1, nil}, {beyond, "x", 1, nil}, {beyond + " WHERE 'é\\' = ''", "x", 1, sqlfence.ErrUnguardable}}},
		"no answer":            {err: down, steps: []step{{ascii, "x", 1, down}, {ascii, "é", 2, down}}},
		"another database":     {dialect: sqlfence.SQLite, rows: [][]any{{"gbk"}}, steps: []step{{ascii, "é", 0, nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			base := fakedb.New(func(_ context.Context, c fakedb.Call) (fakedb.Response, error) {
				if strings.HasPrefix(c.Query, "SHOW VARIABLES") {
					asked++
					if tt.rows == nil {
						tt.rows = [][]any{{"character_set_client", "utf8mb4"}}
					}
					return fakedb.Response{Rows: tt.rows}, tt.err
				}
				return fakedb.Response{Affected: 1}, nil
			})
			if tt.dialect == 0 {
				tt.dialect = sqlfence.MySQL
			}
			db, err := sqlfence.OpenDB(base, sqlfence.WithDialect(tt.dialect), sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			db.SetMaxOpenConns(1)
			ctx := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books", Value: 5})
			for _, s := range tt.steps {
				var args []any
				if strings.Contains(s.query, "?") {
					args = append(args, s.arg)
				}
				if _, err := db.ExecContext(ctx, s.query, args...); !errors.Is(err, s.want) || s.want == nil && err != nil {
					t.Errorf("%s, %v: %v, want %v", s.query, s.arg, err, s.want)
				}
				if asked != s.asked {
					t.Errorf("%s, %v: asked %d times, want %d", s.query, s.arg, asked, s.asked)
				}
			}
		})
	}
}
