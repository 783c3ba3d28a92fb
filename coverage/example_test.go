package coverage_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/coverage"
	"github.com/sqlfence/sqlfence/internal/memdb"
)

// A shop that is being converted: books are enforced, authors are observed.
func Example() {
	seen := coverage.New()
	db, err := sqlfence.OpenDB(memdb.New().Connector(memdb.Full), sqlfence.WithDialect(sqlfence.SQLite), seen.Option(),
		sqlfence.WithTable("books", sqlfence.RowFence("fence_token")),
		sqlfence.WithTable("authors", sqlfence.RowFence("fence_token"), sqlfence.InMode(sqlfence.Observe)))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	migration := sqlfence.Bypass(ctx, "migration")
	for _, text := range []string{
		"CREATE TABLE books (id integer PRIMARY KEY, price integer, fence_token integer)",
		"CREATE TABLE authors (id integer PRIMARY KEY, name text, fence_token integer)",
	} {
		if _, err := db.ExecContext(migration, text); err != nil {
			log.Fatal(err)
		}
	}

	holder := sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: 7})
	for id := range 3 {
		if _, err := db.ExecContext(holder, "INSERT INTO books (id, price) VALUES (?, ?)", id, 10); err != nil {
			log.Fatal(err)
		}
	}
	// No token for authors is in reach here.
	if _, err := db.ExecContext(ctx, "INSERT INTO authors (id, name) VALUES (?, 'Ada')", 1); err != nil {
		log.Fatal(err)
	}
	var n int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM books WHERE price = 10").Scan(&n); err != nil {
		log.Fatal(err)
	}

	report := seen.Report()
	if err := report.WriteText(os.Stdout); err != nil {
		log.Fatal(err)
	}
	fmt.Println()
	fmt.Println(report.Check())
	// Output:
	// guarded  refused  observed  unfenced  bypassed  passed  table
	// –        –        1         –         –         –       authors
	// 3        –        –         –         –         –       books
	//
	// guarded  refused  observed  unfenced  bypassed  passed  statement
	// –        –        1         –         –         –       INSERT INTO authors (id, name) VALUES (?)
	//                                                           1× sqlfence: no fencing token: table "authors": the context carries no token called "authors"; add one with WithFence
	// 3        –        –         –         –         –       INSERT INTO books (id, price) VALUES (?)
	// –        –        –         –         –         1       CREATE TABLE authors (id integer PRIMARY KEY, name text, fence_token integer)
	// –        –        –         –         –         1       CREATE TABLE books (id integer PRIMARY KEY, price integer, fence_token integer)
	// –        –        –         –         –         1       SELECT count(*) FROM books WHERE price = ?
	//
	// coverage: 1 not guarded:
	//   INSERT INTO authors (id, name) VALUES (?): sqlfence: no fencing token: table "authors": the context carries no token called "authors"; add one with WithFence
}
