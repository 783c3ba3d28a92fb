package sqlfence_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

func ExampleToken() {
	token := sqlfence.Token{Name: "books", Value: 42}
	fmt.Println(token)
	fmt.Println(token.Fence())
	// Output:
	// books:000000000000042
	// 000000000000042
}

func ExampleToken_MarshalText() {
	job := struct {
		ID    int
		Token sqlfence.Token
	}{7, sqlfence.Token{Name: "books", Value: 42}}
	text, err := json.Marshal(job)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
	// Output: {"ID":7,"Token":"books:000000000000042"}
}

// The text form survives queues, headers and columns, and is read back strictly.
func ExampleParseToken() {
	token, err := sqlfence.ParseToken("books/42:000000000000007")
	fmt.Println(token.Name, token.Value, err)

	_, err = sqlfence.ParseToken("books:7")
	fmt.Println(err)
	// Output:
	// books/42 7 <nil>
	// sqlfence: invalid argument: token "books:7": the fence must be exactly 15 digits
}

func ExampleWithFence() {
	ctx := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books", Value: 41})
	ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: "shops", Value: 7})  // another one
	ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: 42}) // instead of 41

	books, _ := sqlfence.FenceFrom(ctx, "books")
	shops, _ := sqlfence.FenceFrom(ctx, "shops")
	_, ok := sqlfence.FenceFrom(ctx, "authors")
	fmt.Println(books, shops, ok)
	// Output: books:000000000000042 shops:000000000000007 false
}

// Writes without a token, and unguardable writes are refused before they reach the database.
func ExampleOpenDB() {
	var connector = &fakedb.Recorder{} // your driver's connector
	db, err := sqlfence.OpenDB(connector,
		sqlfence.WithDialect(sqlfence.SQLite), // only for a driver that sqlfence doesn't know
		sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()

	_, err = db.ExecContext(ctx, "UPDATE books SET price = ? WHERE id = ?", 30, 1)
	fmt.Println(errors.Is(err, sqlfence.ErrNoFence))

	ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: 42})
	_, err = db.ExecContext(ctx, "REPLACE INTO books SELECT * FROM old")
	var unguardable *sqlfence.UnguardableError
	fmt.Println(errors.As(err, &unguardable))
	fmt.Println(unguardable.Reason)

	_, err = db.ExecContext(ctx, "UPDATE books SET price = ? WHERE id = ?", 30, 1)
	fmt.Println(err)
	// Output:
	// true
	// true
	// which rows OR REPLACE deletes can't be told without a list of columns and VALUES; write INSERT ... ON CONFLICT
	// <nil>
}

// The database creates the keys of new readers, so no context can have a token for them.
func ExampleUnfencedInserts() {
	var connector = &fakedb.Recorder{} // your driver's connector
	db, err := sqlfence.OpenDB(connector, sqlfence.WithDialect(sqlfence.Postgres),
		sqlfence.WithTable("readers", sqlfence.RowFence("fence_token"), sqlfence.Key("id"), sqlfence.UnfencedInserts()))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()

	_, err = db.ExecContext(ctx, "INSERT INTO readers (name) VALUES ($1)", "Ann")
	fmt.Println(err)

	_, err = db.ExecContext(ctx, "UPDATE readers SET name = $1 WHERE id = $2", "Anne", 7)
	fmt.Println(errors.Is(err, sqlfence.ErrNoFence))

	ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: "readers/7", Value: 42})
	_, err = db.ExecContext(ctx, "UPDATE readers SET name = $1 WHERE id = $2", "Anne", 7)
	fmt.Println(err)
	// Output:
	// <nil>
	// true
	// <nil>
}

func ExampleBypass() {
	observe := func(_ context.Context, e sqlfence.Event) { fmt.Println(e.Kind, "-", e.Reason, "-", e.Query) }
	db, err := sqlfence.OpenDB(&fakedb.Recorder{}, sqlfence.WithDialect(sqlfence.SQLite),
		sqlfence.WithTable("books"), sqlfence.WithObserver(observe))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx := sqlfence.Bypass(context.Background(), "migration 12")
	if _, err := db.ExecContext(ctx, "UPDATE books SET price = 0 WHERE price IS NULL"); err != nil {
		log.Fatal(err)
	}
	// Output: bypassed - migration 12 - UPDATE books SET price = 0 WHERE price IS NULL
}

// Observe mode shows what would be refused, before anything is.
func ExampleWithMode() {
	observe := func(_ context.Context, e sqlfence.Event) {
		fmt.Println(e.Kind, "-", errors.Is(e.Err, sqlfence.ErrNoFence), "-", e.Query)
	}
	db, err := sqlfence.OpenDB(&fakedb.Recorder{}, sqlfence.WithDialect(sqlfence.SQLite), sqlfence.WithTable("books"),
		sqlfence.WithMode(sqlfence.Observe), sqlfence.WithObserver(observe))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	_, err = db.ExecContext(context.Background(), "DELETE FROM books")
	fmt.Println(err)
	// Output:
	// would refuse - true - DELETE FROM books
	// <nil>
}

// Code that writes without contexts is fenced by a source of tokens. An error of the source
// refuses the write; package lease has a source for a process that leads.
func ExampleWithTokens() {
	held := map[string]sqlfence.Token{"books": {Name: "books", Value: 42}}
	source := func(_ context.Context, names []string) (tokens []sqlfence.Token, err error) {
		for _, name := range names {
			token, ok := held[name]
			if !ok {
				return nil, fmt.Errorf("no lease of %s", name)
			}
			tokens = append(tokens, token)
		}
		return tokens, nil
	}
	var connector = &fakedb.Recorder{} // your driver's connector
	db, err := sqlfence.OpenDB(connector, sqlfence.WithDialect(sqlfence.SQLite), sqlfence.WithTokenSource(source),
		sqlfence.WithTable("books", sqlfence.RowFence("fence_token")),
		sqlfence.WithTable("shops", sqlfence.RowFence("fence_token")))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	_, err = db.Exec("UPDATE books SET price = 30")
	fmt.Println(err)
	_, err = db.Exec("UPDATE shops SET open = true")
	fmt.Println(err)
	// Output:
	// <nil>
	// sqlfence: no fencing token: table "shops": the token source: no lease of shops
}
