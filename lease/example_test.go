package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/lease"
)

// openShop opens a database with the table books, which needs the token named books. The database is a fake of
// PostgreSQL.
func openShop(opts ...sqlfence.Option) *sql.DB {
	s := &server{locks: map[int64]int{}}
	answer := func(ctx context.Context, c fakedb.Call) (fakedb.Response, error) {
		if strings.Contains(c.Query, "INTO books") || strings.Contains(c.Query, "UPDATE books") {
			return fakedb.Response{Affected: 1}, nil
		}
		return s.answer(ctx, c)
	}
	db, err := sqlfence.OpenDB(fakedb.New(answer), append(opts, sqlfence.WithDialect(sqlfence.Postgres), sqlfence.WithTable("books"))...)
	if err != nil {
		log.Fatal(err)
	}
	return db
}

// openLeases opens a shop with the leases' tables, and its Leases.
func openLeases() (*sql.DB, *lease.Leases) {
	db := openShop()
	leases, err := lease.New(db, lease.WithDefaults(lease.Timeout(time.Minute)))
	if err != nil {
		log.Fatal(err)
	}
	if err := leases.Setup(context.Background()); err != nil {
		log.Fatal(err)
	}
	return db, leases
}

// One process at a time sets prices.
func Example() {
	ctx := context.Background()
	db := openShop() // by sqlfence.Open, with sqlfence.WithTable("books")
	defer db.Close()
	leases, err := lease.New(db)
	if err != nil {
		log.Fatal(err)
	}
	if err := leases.Setup(ctx); err != nil { // once, or by your own migration
		log.Fatal(err)
	}

	err = leases.Do(ctx, "books", func(ctx context.Context) error {
		_, err := db.ExecContext(ctx, "UPDATE books SET price = $1 WHERE id = $2", 30, 1)
		return err
	})
	fmt.Println("with the lease:", err)

	_, err = db.ExecContext(ctx, "UPDATE books SET price = $1 WHERE id = $2", 40, 1)
	fmt.Println("without a lease:", errors.Is(err, sqlfence.ErrNoFence))
	// Output:
	// with the lease: <nil>
	// without a lease: true
}

// The first holder is paused beyond the end of its lease. The second holder gets the next token. Then the first
// holder's lease is lost, and the database refuses its writes.
func ExampleLeases_Acquire() {
	db, leases := openLeases()
	defer db.Close()
	ctx := context.Background()

	first, err := leases.Acquire(ctx, "books", lease.TTL(20*time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("first:", first.Token())

	second, err := leases.Acquire(ctx, "books") // waits until the first lease ends
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("second:", second.Token())

	fmt.Println("first is stale:", errors.Is(first.Err(), sqlfence.ErrStale))
	_, err = db.ExecContext(second.Context(), "UPDATE books SET price = $1 WHERE id = $2", 30, 1)
	fmt.Println("second writes:", err)
	fmt.Println("second releases:", second.Release(ctx))
	// Output:
	// first: books:000000000000001
	// second: books:000000000000002
	// first is stale: true
	// second writes: <nil>
	// second releases: <nil>
}

// A process skips the work if another process has the lease.
func ExampleLeases_TryAcquire() {
	db, leases := openLeases()
	defer db.Close()
	ctx := context.Background()

	for _, process := range []string{"first", "second"} {
		l, ok, err := leases.TryAcquire(ctx, "nightly")
		if err != nil {
			log.Fatal(err)
		}
		if !ok {
			fmt.Println(process, "has nothing to do")
			continue
		}
		defer l.Release(ctx)
		fmt.Println(process, "works with", l.Token())
	}
	// Output:
	// first works with nightly:000000000000001
	// second has nothing to do
}

// Do extends the lease while the work runs, and ends the work's context if the lease is
// lost.
func ExampleLeases_Do() {
	db, leases := openLeases()
	defer db.Close()
	ctx := context.Background()

	err := leases.Do(ctx, "books", func(ctx context.Context) error {
		for id := 1; id <= 3 && ctx.Err() == nil; id++ {
			if _, err := db.ExecContext(ctx, "UPDATE books SET price = price + 1 WHERE id = $1", id); err != nil {
				return err
			}
		}
		return context.Cause(ctx)
	}, lease.TTL(time.Minute), lease.Heartbeat(10*time.Second))
	switch {
	case errors.Is(err, lease.ErrLeaseLost):
		fmt.Println("another process may have taken over:", err)
	case errors.Is(err, lease.ErrHeld):
		fmt.Println("another process is at work:", err)
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println("done")
	}
	// Output: done
}

// Every process starts a job by its own clock, but only one process runs the job, even if the job takes no time.
func ExampleMinHold() {
	db, leases := openLeases()
	defer db.Close()
	ctx := context.Background()

	for _, process := range []string{"first", "second"} {
		err := leases.Do(ctx, "hourly", func(context.Context) error {
			fmt.Println(process, "runs it")
			return nil
		}, lease.MinHold(55*time.Minute), lease.NoWait())
		switch {
		case errors.Is(err, lease.ErrHeld):
			fmt.Println(process, "leaves it to the other")
		case err != nil:
			log.Fatal(err)
		}
	}
	// Output:
	// first runs it
	// second leaves it to the other
}

// A job of several steps extends its lease before each step.
func ExampleLease_Extend() {
	db, leases := openLeases()
	defer db.Close()
	ctx := context.Background()

	l, err := leases.Acquire(ctx, "books", lease.TTL(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	before := l.ExpiresAt()
	if err := l.Extend(ctx, time.Hour); err != nil {
		log.Fatal(err)
	}
	fmt.Println("it ends later:", l.ExpiresAt().After(before))

	if err := l.Release(ctx); err != nil {
		log.Fatal(err)
	}
	err = l.Extend(ctx, time.Hour)
	fmt.Println("after its release:", err)
	// Output:
	// it ends later: true
	// after its release: lease: released
}

// A lease can be used by its lock id, which a process can pass to another process.
func ExampleLeases_Extend() {
	db, leases := openLeases()
	defer db.Close()
	ctx := context.Background()

	l, err := leases.Acquire(ctx, "books")
	if err != nil {
		log.Fatal(err)
	}
	lockID := l.LockID()

	until, err := leases.Extend(ctx, lockID, time.Hour)
	fmt.Println("in more than 50 minutes:", time.Until(until) > 50*time.Minute, err)
	fmt.Println("released:", leases.Release(ctx, lockID))
	_, err = leases.Extend(ctx, lockID, time.Hour)
	fmt.Println("extended again:", errors.Is(err, lease.ErrNotHeld))
	// Output:
	// in more than 50 minutes: true <nil>
	// released: <nil>
	// extended again: true
}

func ExampleLeases_Lookup() {
	db, leases := openLeases()
	defer db.Close()
	ctx := context.Background()

	if _, err := leases.Acquire(ctx, "books", lease.Holder("worker-7")); err != nil {
		log.Fatal(err)
	}
	info, ok, err := leases.Lookup(ctx, "books")
	fmt.Println(info.Holder, info.Token, ok, err)
	_, ok, err = leases.Lookup(ctx, "pens")
	fmt.Println(ok, err)
	// Output:
	// worker-7 books:000000000000001 true <nil>
	// false <nil>
}

func ExampleLeases_List() {
	db, leases := openLeases()
	defer db.Close()
	ctx := context.Background()

	for _, key := range []string{"pens", "books/42", "books/7"} {
		if _, err := leases.Acquire(ctx, key, lease.Holder("worker-7")); err != nil {
			log.Fatal(err)
		}
	}
	all, err := leases.List(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, info := range all {
		fmt.Println(info.Key, info.Holder)
	}
	// Output:
	// books/42 worker-7
	// books/7 worker-7
	// pens worker-7
}

// Sweep keeps the table small. Sweep doesn't change the next token.
func ExampleLeases_Sweep() {
	db, leases := openLeases()
	defer db.Close()
	ctx := context.Background()

	if err := leases.Do(ctx, "books", func(context.Context) error { return nil }); err != nil {
		log.Fatal(err)
	}
	fmt.Println(leases.Sweep(ctx))
	l, err := leases.Acquire(ctx, "books")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Token())
	// Output:
	// 1 <nil>
	// books:000000000000002
}

// A restarted worker gets its previous lease back, with an unchanged token.
func ExampleResume() {
	db, leases := openLeases()
	defer db.Close()
	ctx := context.Background()

	before, err := leases.Acquire(ctx, "books", lease.Resume("worker-7"))
	if err != nil {
		log.Fatal(err)
	}
	after, err := leases.Acquire(ctx, "books", lease.Resume("worker-7"), lease.Refresh())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(before.Token(), after.Token(), before.LockID() == after.LockID())

	_, err = leases.Acquire(ctx, "books", lease.Resume("worker-8"), lease.NoWait())
	var held *lease.HeldError
	if errors.As(err, &held) {
		fmt.Println("held by", held.Holder)
	}
	// Output:
	// books:000000000000001 books:000000000000001 true
	// held by worker-7
}

func ExampleNormalizeKey() {
	key, err := lease.NormalizeKey("cafe\u0301") // an e and an accent
	fmt.Printf("%q %v\n", key, err)
	_, err = lease.NormalizeKey("")
	fmt.Println(err)
	// Output:
	// "café" <nil>
	// lease: invalid argument: the key names its tokens: a token's name is empty
}
