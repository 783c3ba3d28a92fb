package vitess_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
)

// If several users request an edit lock of a row at once, exactly one gets it, on one shard and on two.
func TestRowLocks(t *testing.T) {
	for _, keyspace := range keyspaces {
		t.Run(keyspace, func(t *testing.T) {
			dsn, plain := setup(t, keyspace)
			db := fence(t, dsn, sqlfence.RowFence("fence_token"))
			books, err := rowlock.New(db, "books", rowlock.WithColumns("who", "since", "till"), rowlock.WithSerial("version"))
			if err != nil {
				t.Fatal(err)
			}
			reset(t, plain)
			for range 10 {
				var asking sync.WaitGroup
				var granted atomic.Int32
				var holder atomic.Value
				for user := range 4 {
					asking.Go(func() {
						user := fmt.Sprint("user", user)
						switch _, err := books.Request(t.Context(), rowlock.Edit{ID: 1, User: user, Serial: 1}); {
						case err == nil:
							granted.Add(1)
							holder.Store(user)
						case !errors.Is(err, sqlfence.ErrLocked):
							t.Errorf("Request: %v", err)
						}
					})
				}
				asking.Wait()
				lock, err := books.Current(t.Context(), 1)
				if err != nil || granted.Load() != 1 || fmt.Sprint(lock.By) != holder.Load() {
					t.Fatalf("%d have the lock, %v of them, and the row says %v: %v", granted.Load(), holder.Load(), lock.By, err)
				}
				if err := books.Release(t.Context(), 1, lock.By); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
