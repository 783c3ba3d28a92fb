package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
)

// The first holder is paused beyond the end of its lease. The second holder gets the next token, and the first holder's
// write is refused.
func ExampleLeases_Acquire() {
	dir, err := os.MkdirTemp("", "lease")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlfence.Open("sqlite", "file:"+filepath.Join(dir, "example.db"), sqlfence.WithTable("books"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	leases, err := lease.New(db, lease.WithDefaults(lease.Timeout(time.Minute)))
	if err != nil {
		log.Fatal(err)
	}
	if err := leases.Setup(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE books (id integer PRIMARY KEY, price integer)"); err != nil {
		log.Fatal(err)
	}

	first, err := leases.Acquire(ctx, "books", lease.TTL(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("first: ", first.Token())
	_, ok, err := leases.TryAcquire(ctx, "books")
	fmt.Println("another at the same time:", ok, err)

	// Instead of a pause of a minute, the example shortens the lease. On a machine that stands still it may end before
	// the response arrives.
	if err := first.Extend(ctx, time.Second); err != nil && !errors.Is(err, lease.ErrLeaseLost) {
		log.Fatal(err)
	}
	second, err := leases.Acquire(ctx, "books", lease.Resume("second"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("second:", second.Token())
	fmt.Println("first: ", errors.Is(first.Err(), lease.ErrLeaseLost))

	late := context.WithoutCancel(first.Context()) // a holder that doesn't check its context
	_, err = db.ExecContext(late, "INSERT INTO books (id, price) VALUES (1, 20)")
	fmt.Println("first: ", errors.Is(err, sqlfence.ErrStale))
	_, err = db.ExecContext(second.Context(), "INSERT INTO books (id, price) VALUES (1, 30)")
	fmt.Println("second:", err)
	fmt.Println("second:", second.Release(ctx))
	// Output:
	// first:  books:000000000000001
	// another at the same time: false <nil>
	// second: books:000000000000002
	// first:  true
	// first:  true
	// second: <nil>
	// second: <nil>
}
