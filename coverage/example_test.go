package coverage_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/coverage"
	"github.com/sqlfence/sqlfence/internal/nonce"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

func init() { nonce.Fix("nonce") }

// answer stands for SQLite with a row that the holder of token 7 has written.
func answer(_ context.Context, c fakedb.Call) (fakedb.Response, error) {
	if slices.Contains(c.Args, any(int64(6))) {
		return fakedb.Response{}, errors.New("bad JSON path: 'sqlfence:nonce:stale:0:7'")
	}
	return fakedb.Response{}, nil
}

// A shop that is being converted: books are enforced, authors observed, and some writes of
// orders have no token yet. Pens were forgotten.
func Example() {
	seen := coverage.New()
	db, err := sqlfence.OpenDB(fakedb.New(answer), sqlfence.WithDialect(sqlfence.SQLite), seen.Option(),
		sqlfence.WithTable("books", sqlfence.RowFence("fence_token")),
		sqlfence.WithTable("authors", sqlfence.RowFence("fence_token"), sqlfence.InMode(sqlfence.Observe)),
		sqlfence.WithTable("orders", sqlfence.RowFence("fence_token"), sqlfence.Optional()))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	migration := sqlfence.Bypass(ctx, "migration")
	old, holder := sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: 6}), sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: 7})
	for _, run := range []struct {
		ctx   context.Context
		query string
		args  []any
	}{
		{migration, "INSERT INTO authors (id, name) VALUES (?, ?)", []any{1, "Ada"}},
		{holder, "INSERT INTO books (id, price) VALUES (?, ?)", []any{1, 10}},
		{holder, "INSERT INTO books (id, price) VALUES (?, ?), (?, ?)", []any{2, 10, 3, 12}},
		{holder, "UPDATE books SET price = ? WHERE id = ?", []any{30, 1}},
		{old, "UPDATE books SET price = ? WHERE id = ?", []any{20, 1}}, // refused: stale
		{holder, "INSERT INTO books VALUES (4, 10, 0)", nil},           // refused: can't be guarded
		{ctx, "UPDATE authors SET name = 'Ada L.' WHERE id = 1", nil},  // let through: there is no token
		{ctx, "INSERT INTO orders (id, book) VALUES (?, ?)", []any{1, 1}},
		{ctx, "UPDATE pens SET price = ?", []any{2}}, // not registered
	} {
		_, err := db.ExecContext(run.ctx, run.query, run.args...)
		if err != nil && !errors.Is(err, sqlfence.ErrStale) && !errors.Is(err, sqlfence.ErrUnguardable) {
			log.Fatal(err)
		}
	}

	report := seen.Report()
	if err := report.WriteText(os.Stdout); err != nil {
		log.Fatal(err)
	}
	fmt.Println()
	fmt.Println(report.Check())
	// Output:
	// guarded  refused  observed  unfenced  bypassed  passed  table
	// –        –        1         –         1         –       authors
	// 3        2        –         –         –         –       books
	// –        –        –         1         –         –       orders
	//
	// guarded  refused  observed  unfenced  bypassed  passed  table that isn't registered
	// –        –        –         –         –         1       pens
	//
	// guarded  refused  observed  unfenced  bypassed  passed  statement
	// –        1        –         –         –         –       INSERT INTO books VALUES (?)
	//                                                           1× at byte 18: the fence column can't be added without a list of columns; name them: INSERT INTO table (column, ...)
	// –        –        –         1         –         –       INSERT INTO orders (id, book) VALUES (?)
	//                                                           1× no token for an Optional table
	// –        –        1         –         –         –       UPDATE authors SET name = ? WHERE id = ?
	//                                                           1× sqlfence: no fencing token: table "authors": the context carries no token called "authors"; add one with WithFence, or have a source give it (WithTokenSource)
	// 1        1        –         –         –         –       UPDATE books SET price = ? WHERE id = ?
	//                                                           1× sqlfence: stale fencing token
	// –        –        –         –         1         –       INSERT INTO authors (id, name) VALUES (?)
	//                                                           1× bypassed: migration
	// 2        –        –         –         –         –       INSERT INTO books (id, price) VALUES (?)
	// –        –        –         –         –         1       UPDATE pens SET price = ?
	//
	// coverage: 3 not guarded:
	//   INSERT INTO books VALUES (?): the fence column can't be added without a list of columns; name them: INSERT INTO table (column, ...)
	//   INSERT INTO orders (id, book) VALUES (?): no token for an Optional table
	//   UPDATE authors SET name = ? WHERE id = ?: sqlfence: no fencing token: table "authors": the context carries no token called "authors"; add one with WithFence, or have a source give it (WithTokenSource)
}
