package tokens_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/memdb"
	"github.com/sqlfence/sqlfence/tokens"
)

// openShop opens a database with the table books, one row of which has the price 10.
// It is one in memory that takes SQLite's SQL.
func openShop(rules ...sqlfence.Rule) *sql.DB {
	db, err := sqlfence.OpenDB(memdb.New().Connector(memdb.Full),
		sqlfence.WithDialect(sqlfence.SQLite), sqlfence.WithTable("books", rules...))
	if err != nil {
		log.Fatal(err)
	}
	migration := sqlfence.Bypass(context.Background(), "migration")
	for _, text := range []string{
		"CREATE TABLE books (id integer PRIMARY KEY, price integer, fence_token bigint NOT NULL DEFAULT 0)",
		"INSERT INTO books (id, price) VALUES (1, 10)",
	} {
		if _, err := db.ExecContext(migration, text); err != nil {
			log.Fatal(err)
		}
	}
	return db
}

// openStore opens a shop with a Store whose table is there.
func openStore(rules ...sqlfence.Rule) (*sql.DB, *tokens.Store) {
	db := openShop(rules...)
	store, err := tokens.New(db)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Setup(context.Background()); err != nil {
		log.Fatal(err)
	}
	return db, store
}

// Two holders of the books: the second one takes over while the first is paused.
func ExampleStore() {
	ctx := context.Background()
	db := openShop() // by sqlfence.Open, with sqlfence.WithTable("books")
	defer db.Close()
	store, err := tokens.New(db)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Setup(ctx); err != nil {
		log.Fatal(err)
	}

	first, err := store.Issue(ctx, "books")
	if err != nil {
		log.Fatal(err)
	}
	second, err := store.Issue(ctx, "books")
	if err != nil {
		log.Fatal(err)
	}
	for _, token := range []sqlfence.Token{second, first} {
		_, err := db.ExecContext(sqlfence.WithFence(ctx, token), "UPDATE books SET price = price + 1 WHERE id = 1")
		fmt.Printf("the holder of %v writes; stale: %v\n", token, errors.Is(err, sqlfence.ErrStale))
	}
	// Output:
	// the holder of books:000000000000002 writes; stale: false
	// the holder of books:000000000000001 writes; stale: true
}

// Each token of a name is higher than the one before; every name has its own numbers.
func ExampleStore_Issue() {
	ctx := context.Background()
	db, store := openStore()
	defer db.Close()

	for _, name := range []string{"books", "books", "pens"} {
		token, err := store.Issue(ctx, name)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(token)
	}
	// Output:
	// books:000000000000001
	// books:000000000000002
	// pens:000000000000001
}

// Another lock service issues the tokens, here up to 4711. Adopt makes the ledger follow.
func ExampleStore_Adopt() {
	ctx := context.Background()
	db, store := openStore()
	defer db.Close()

	granted := sqlfence.Token{Name: "books", Value: 4711} // an etcd revision, for example
	if err := store.Adopt(ctx, granted); err != nil {
		log.Fatal(err)
	}
	_, err := db.ExecContext(sqlfence.WithFence(ctx, granted), "UPDATE books SET price = 20 WHERE id = 1")
	fmt.Println("the write:", err)

	err = store.Adopt(ctx, sqlfence.Token{Name: "books", Value: 4700}) // an older one
	var stale *sqlfence.StaleError
	if errors.As(err, &stale) {
		fmt.Println("too late, the newest is", stale.Current)
	}
	// Output:
	// the write: <nil>
	// too late, the newest is 4711
}

// A write under a name that isn't in the ledger is ErrUnknownName. Ensure adds the name
// before it has a token.
func ExampleStore_Ensure() {
	ctx := context.Background()
	db, store := openStore()
	defer db.Close()

	write := func() error {
		made := sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: 1}) // nobody issued it
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

// Use Current for display: when its answer arrives, there may be a newer token.
func ExampleStore_Current() {
	ctx := context.Background()
	db, store := openStore()
	defer db.Close()

	_, err := store.Current(ctx, "books")
	fmt.Println(errors.Is(err, sqlfence.ErrUnknownName))
	if _, err := store.Issue(ctx, "books"); err != nil {
		log.Fatal(err)
	}
	newest, err := store.Current(ctx, "books")
	fmt.Println(newest, err)
	// Output:
	// true
	// books:000000000000001 <nil>
}

// After a restore from a copy that may lack the last tokens, Repair makes all names
// continue above a number that none of them had reached.
func ExampleStore_Repair() {
	ctx := context.Background()
	db, store := openStore()
	defer db.Close()

	if _, err := store.Issue(ctx, "books"); err != nil {
		log.Fatal(err)
	}
	if err := store.Repair(ctx, 5_000_000); err != nil {
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

// A row has a made-up token and refuses all others from then on. Rotate retires the name
// in favour of a new one, whose tokens begin at 1.
func ExampleStore_Rotate() {
	ctx := context.Background()
	db, store := openStore(sqlfence.RowFence("fence_token"), sqlfence.Resource("books-2")) // after Rotate, with the new name
	defer db.Close()
	damage := sqlfence.Bypass(ctx, "example")
	if _, err := db.ExecContext(damage, "UPDATE books SET fence_token = 800000000000000"); err != nil {
		log.Fatal(err)
	}
	if _, err := store.Issue(ctx, "books"); err != nil {
		log.Fatal(err)
	}

	rows, err := store.Rotate(ctx, "books", tokens.Mark{Table: "books", Column: "fence_token"})
	fmt.Println("rows reset:", rows, err)
	_, err = store.Issue(ctx, "books")
	fmt.Println("the old name is retired:", errors.Is(err, sqlfence.ErrTokenLimit))

	token, err := store.Issue(ctx, "books-2")
	if err != nil {
		log.Fatal(err)
	}
	_, err = db.ExecContext(sqlfence.WithFence(ctx, token), "UPDATE books SET price = 20 WHERE id = 1")
	fmt.Println("a write under", token, err)
	// Output:
	// rows reset: 1 <nil>
	// the old name is retired: true
	// a write under books-2:000000000000001 <nil>
}
