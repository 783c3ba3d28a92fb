package vitess_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Callers from both keyspaces take one lease in turn, with the lease's table in the keyspace of one shard: two never hold
// the lease at once, and each has a higher token. A lease that isn't released ends with its ttl. Leases that end with
// their session are refused.
func TestLeasesInTheKeyspaceOfOneShard(t *testing.T) {
	plain := open(t, in(t, "plain", nil))
	for _, table := range []string{"fencing_leases", "fencing_tokens"} {
		exec(t, plain, "DROP TABLE IF EXISTS "+table)
	}
	var holders, last atomic.Int64
	var callers sync.WaitGroup
	for i, keyspace := range []string{"plain", "sharded", "plain", "sharded"} {
		db, err := sqlfence.Open("mysql", in(t, keyspace, nil), sqlfence.WithSchema("plain"))
		harness.CloseAtEnd(t, db, err)
		leases, err := lease.New(db)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := leases.Setup(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := leases.Acquire(t.Context(), "pens", lease.Ephemeral()); !errors.Is(err, lease.ErrNoSessions) {
				t.Errorf("Ephemeral: %v", err)
			}
			left, err := leases.Acquire(t.Context(), "books", lease.TTL(2*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			last.Store(left.Token().Value)
		}
		callers.Go(func() {
			for range 15 {
				err := leases.Do(t.Context(), "books", func(ctx context.Context) error {
					l, _ := lease.FromContext(ctx)
					if holders.Add(1) != 1 || l.Token().Value <= last.Load() {
						t.Errorf("%d hold the lease, the last with %v, after %d", holders.Load(), l.Token(), last.Load())
					}
					last.Store(l.Token().Value)
					_, err := plain.ExecContext(ctx, "SELECT 1")
					holders.Add(-1)
					return err
				})
				if err != nil {
					t.Errorf("Do: %v", err)
				}
			}
		})
	}
	callers.Wait()
	if last.Load() != 61 {
		t.Errorf("the last token is %d, want 61", last.Load())
	}
}
