// Readme is the first program of the README: a process that comes back too late is refused.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	_ "modernc.org/sqlite"
)

func main() {
	ctx := context.Background()
	db, err := sqlfence.Open("sqlite", "file:shop.db?_txlock=immediate&_pragma=busy_timeout(5000)",
		sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
	check(err)
	defer db.Close()
	_, err = db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS books
		(id integer PRIMARY KEY, price integer, fence_token bigint NOT NULL DEFAULT 0)`)
	check(err)
	leases, err := lease.New(db)
	check(err)
	check(leases.Setup(ctx)) // creates the tables of leases and tokens

	setPrice := func(ctx context.Context, price int) error { // any statement, of any library
		_, err := db.ExecContext(ctx, `INSERT INTO books (id, price) VALUES (1, $1)
			ON CONFLICT (id) DO UPDATE SET price = excluded.price`, price)
		return err
	}
	var first context.Context
	check(leases.Do(ctx, "books", func(ctx context.Context) error { // one holder at a time; its writes carry a token
		first = context.WithoutCancel(ctx) // as a process that is paused here doesn't see its lease end
		return setPrice(ctx, 20)
	}))
	check(leases.Do(ctx, "books", func(ctx context.Context) error { return setPrice(ctx, 30) }))

	err = setPrice(first, 10) // the first holder wakes up
	fmt.Println("stale:", errors.Is(err, sqlfence.ErrStale))
	fmt.Println(err)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
