package sealed_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A table is sealed, unsealed and sealed again while programs write to it. Each write is applied once, if the programs
// send it again after a temporary error, and no negative token is stored in the unsealed table.
func TestRolloutWithWriters(t *testing.T) {
	const writers, turns = 6, 4
	eachBase(t, func(t *testing.T, b harness.Base) {
		l := newUnsealed(t, b)
		for i := range writers {
			l.exec(t, fmt.Sprintf("INSERT INTO books (id, price) VALUES (%d, 0)", 100+i))
		}
		ctx, cancel := context.WithCancel(holding(t, 7))
		var group, began sync.WaitGroup
		began.Add(writers)
		applied := make([]int, writers)
		for i := range writers {
			db := l.db
			if i%2 == 1 { // one of two programs
				db = l.open(t)
			}
			group.Go(func() {
				begin := sync.OnceFunc(began.Done)
				defer begin()
				for ctx.Err() == nil {
					if err := write(context.WithoutCancel(ctx), db, i, applied[i]); err != nil {
						t.Errorf("writer %d, write %d: %v", i, applied[i], err)
						return
					}
					applied[i]++
					begin()
				}
			})
		}
		began.Wait()
		for range turns {
			l.seal(t)
			if err := schema.Unseal(t.Context(), l.db); err != nil {
				t.Error(err)
			}
		}
		l.seal(t)
		cancel()
		group.Wait()
		for i, n := range applied {
			var price int
			if err := l.plain.QueryRow(fmt.Sprintf("SELECT price FROM books WHERE id = %d", 100+i)).Scan(&price); err != nil || price != n || n == 0 {
				t.Errorf("writer %d: %d writes are in the row, want %d (%v)", i, price, n, err)
			}
		}
		var negative int
		if err := l.plain.QueryRow("SELECT COUNT(*) FROM books WHERE fence_token < 0").Scan(&negative); err != nil || negative > 0 {
			t.Errorf("%d negative marks (%v)", negative, err)
		}
	})
}

// write adds 1 to the price of a writer's row, in one of the ways to write, and adds and deletes another row.
func write(ctx context.Context, db *sql.DB, writer, n int) error {
	statements := []string{
		fmt.Sprintf("UPDATE books SET price = price + 1 WHERE id = %d", 100+writer),
		fmt.Sprintf("INSERT INTO books (id) VALUES (%d)", 1000+writer),
		fmt.Sprintf("DELETE FROM books WHERE id = %d", 1000+writer),
	}
	if n%2 == 0 {
		for _, query := range statements {
			if err := again(func() error { _, err := db.ExecContext(ctx, query); return err }); err != nil {
				return fmt.Errorf("%s: %w", query, err)
			}
		}
		return nil
	}
	return sqlfence.Retry(ctx, db, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
		for _, query := range statements {
			if _, err := tx.ExecContext(ctx, query); err != nil {
				return fmt.Errorf("%s: %w", query, err)
			}
		}
		return nil
	})
}

// again sends a statement until its error isn't temporary.
func again(send func() error) (err error) {
	for range 20 {
		err = send()
		if passing := (interface{ Temporary() bool })(nil); !errors.As(err, &passing) || !passing.Temporary() {
			break
		}
	}
	return err
}

// If a table was sealed or unsealed since the pool last wrote to it, a write in a transaction gets a temporary error.
// The next transaction knows the table's state.
func TestSealMetInATransaction(t *testing.T) {
	eachBase(t, func(t *testing.T, b harness.Base) {
		l := newUnsealed(t, b)
		ctx := holding(t, 7)
		const query = "UPDATE books SET price = price + 1 WHERE id = 1"
		for _, change := range []func(context.Context, *sql.DB) error{
			func(context.Context, *sql.DB) error { return nil },
			schema.Seal,
			func(ctx context.Context, db *sql.DB) error { return schema.Unseal(ctx, db) },
		} {
			if err := change(t.Context(), l.open(t)); err != nil { // by another program
				t.Fatal(err)
			}
			runs := 0
			err := sqlfence.Retry(ctx, l.db, sqlfence.RetryOptions{}, func(ctx context.Context, tx *sql.Tx) error {
				runs++
				_, err := tx.ExecContext(ctx, query)
				return err
			})
			if err != nil || runs > 2 {
				t.Errorf("%d runs: %v", runs, err)
			}
			prepared, err := l.db.PrepareContext(ctx, query)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := prepared.ExecContext(ctx); err != nil {
				t.Error(err)
			}
			_ = prepared.Close()
		}
		l.want(t, "1:16@7 2:10@7 3:10@0")
	})
}

// Statements that were prepared before the seal continue to work, after one temporary error.
func TestPreparedBeforeTheSeal(t *testing.T) {
	eachBase(t, func(t *testing.T, b harness.Base) {
		l := newUnsealed(t, b)
		ctx := holding(t, 7)
		prepared, err := l.db.PrepareContext(ctx, "UPDATE books SET price = price + 1 WHERE id = 1")
		if err != nil {
			t.Fatal(err)
		}
		defer prepared.Close()
		for _, change := range []func(context.Context, *sql.DB) error{nil, schema.Seal, func(ctx context.Context, db *sql.DB) error { return schema.Unseal(ctx, db) }, schema.Seal} {
			if change != nil {
				if err := change(t.Context(), l.open(t)); err != nil {
					t.Fatal(err)
				}
			}
			failed := 0
			for range 3 {
				err := again(func() error {
					_, err := prepared.ExecContext(ctx)
					if err != nil {
						failed++
					}
					return err
				})
				if err != nil || failed > 1 {
					t.Errorf("%d errors, the last one %v", failed, err)
				}
			}
		}
		l.want(t, "1:22@7 2:10@7 3:10@0")
	})
}
