package tokens_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

// Two holders of the books: the second takes over while the first is paused.
func ExampleStore() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	db, err := sqlfence.Open("sqlite3", filepath.Join(dir, "shop.db"), sqlfence.WithTable("books"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	migrate := sqlfence.Bypass(ctx, "migration")
	if _, err := db.ExecContext(migrate, "CREATE TABLE books (id integer PRIMARY KEY, price integer)"); err != nil {
		log.Fatal(err)
	}
	if _, err := db.ExecContext(migrate, "INSERT INTO books VALUES (1, 10)"); err != nil {
		log.Fatal(err)
	}

	store, err := tokens.New(db)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Setup(ctx); err != nil {
		log.Fatal(err)
	}
	for i := range 2 {
		token, err := store.Issue(ctx, "books")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("holder %d has %v\n", i+1, token)
	}

	write := func(token sqlfence.Token, price int) {
		_, err := db.ExecContext(sqlfence.WithFence(ctx, token), "UPDATE books SET price = ? WHERE id = 1", price)
		fmt.Printf("holder %d writes %d: stale: %v, error: %v\n", token.Value, price, errors.Is(err, sqlfence.ErrStale), err)
	}
	write(sqlfence.Token{Name: "books", Value: 2}, 20)
	write(sqlfence.Token{Name: "books", Value: 1}, 30)
	// Output:
	// holder 1 has books:000000000000001
	// holder 2 has books:000000000000002
	// holder 2 writes 20: stale: false, error: <nil>
	// holder 1 writes 30: stale: true, error: sqlfence: stale fencing token: table "books": token books:000000000000001, but 2 has been seen
}
