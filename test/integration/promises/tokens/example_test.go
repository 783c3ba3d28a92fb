package tokens_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

// There are two holders of the books. The second takes over while the first is paused.
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
	// holder 1 writes 30: stale: true, error: sqlfence: stale fencing token: table "books": another holder has taken over "books" (its token is 2, this write's is 1); stop working, don't retry
}

// openStore opens a file with the table books, in which a row has the price 10, and a Store with its ledger.
func openStore(rules ...sqlfence.Rule) (db *sql.DB, store *tokens.Store, remove func()) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	db, err = sqlfence.Open("sqlite", filepath.Join(dir, "shop.db"), sqlfence.WithTable("books", rules...))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	migration := sqlfence.Bypass(ctx, "migration")
	for _, text := range []string{
		"CREATE TABLE books (id integer PRIMARY KEY, price integer, fence_token bigint NOT NULL DEFAULT 0)",
		"INSERT INTO books (id, price) VALUES (1, 10)",
	} {
		if _, err := db.ExecContext(migration, text); err != nil {
			log.Fatal(err)
		}
	}
	if store, err = tokens.New(db); err != nil {
		log.Fatal(err)
	}
	if err := store.Setup(ctx); err != nil {
		log.Fatal(err)
	}
	return db, store, func() {
		db.Close()
		os.RemoveAll(dir)
	}
}

// A write under a name that isn't in the ledger is ErrUnknownName. Ensure adds the name
// before it has a token.
func ExampleStore_Ensure() {
	ctx := context.Background()
	db, store, remove := openStore()
	defer remove()

	write := func() error {
		made := sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: 1}) // this token was never issued
		_, err := db.ExecContext(made, "UPDATE books SET price = 20 WHERE id = 1")
		return err
	}
	fmt.Println("unknown name:", errors.Is(write(), sqlfence.ErrUnknownName))
	if err := store.Ensure(ctx, "books", "pens"); err != nil {
		log.Fatal(err)
	}
	fmt.Println("not issued:", errors.Is(write(), sqlfence.ErrNotIssued))
	// Output:
	// unknown name: true
	// not issued: true
}

// After a restore from a copy that may lack the last tokens, Repair makes all names
// continue above a number that none of them had reached.
func ExampleStore_Repair() {
	ctx := context.Background()
	_, store, remove := openStore()
	defer remove()

	if _, err := store.Issue(ctx, "books"); err != nil {
		log.Fatal(err)
	}
	if _, err := store.Repair(ctx, 5_000_000); err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"books", "pens"} {
		token, err := store.Issue(ctx, name)
		fmt.Println(token, err)
	}
	// Output:
	// books:000000005000001 <nil>
	// pens:000000005000001 <nil>
}

// A row has a made-up token, and every token that is issued later is stale. Rotate retires the name in favour of a new
// name, whose tokens begin at 1.
func ExampleStore_Rotate() {
	ctx := context.Background()
	db, store, remove := openStore(sqlfence.RowFence("fence_token"), sqlfence.Resource("books-2")) // after Rotate, with the new name
	defer remove()
	damage := sqlfence.Bypass(ctx, "example")
	if _, err := db.ExecContext(damage, "UPDATE books SET fence_token = 800000000000000"); err != nil {
		log.Fatal(err)
	}
	if _, err := store.Issue(ctx, "books"); err != nil {
		log.Fatal(err)
	}

	rows, err := store.Rotate(ctx, "books", tokens.Mark{Table: "books", Column: "fence_token"})
	fmt.Println("marks set back:", rows, err)
	_, err = store.Issue(ctx, "books")
	fmt.Println("the old name is retired:", errors.Is(err, sqlfence.ErrTokenLimit))

	token, err := store.Issue(ctx, "books-2")
	if err != nil {
		log.Fatal(err)
	}
	_, err = db.ExecContext(sqlfence.WithFence(ctx, token), "UPDATE books SET price = 20 WHERE id = 1")
	fmt.Println("a write under", token, err)
	// Output:
	// marks set back: 1 <nil>
	// the old name is retired: true
	// a write under books-2:000000000000002 <nil>
}
