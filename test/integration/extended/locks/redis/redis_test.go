package redis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fenceredis"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/extended/locks/paused"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/integration/zombie"
	"github.com/sqlfence/sqlfence/tokens"
)

var service = paused.Service{
	Start: func(t *testing.T) string {
		program := need.Program(t, "redis-server")
		address, port := harness.FreeAddress(t)
		harness.Run(t, address, program, "--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir(), "--save", "",
			"--appendonly", "yes", "--appendfsync", "always")
		return address
	},
	Lock: func(ctx context.Context, address string, store *tokens.Store) (context.Context, func() error, error) {
		client := redis.NewClient(&redis.Options{Addr: address})
		lock, err := obtain(ctx, client, time.Second)
		if err != nil {
			return nil, nil, err
		}
		held, err := fenceredis.WithLock(ctx, store, "report", client, lock)
		return held, func() error {
			if err := lock.Release(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, redislock.ErrLockNotHeld) {
				return err
			}
			return client.Close()
		}, err
	},
}

// obtain waits until it gets the lock.
func obtain(ctx context.Context, client *redis.Client, ttl time.Duration) (*redislock.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, harness.Patience)
	defer cancel()
	return redislock.Obtain(ctx, client, "locks/report", ttl, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(5 * time.Millisecond), Metadata: "of a test"})
}

// A lock that has ended before its holder asks for a fencing number gets no number. Otherwise this number would be
// higher than the next holder's.
func TestEndedLock(t *testing.T) {
	address := service.Start(t)
	b, dsn := zombie.NewBase(t)
	store := harness.NewStore(t, b.Fenced(t, dsn))
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: address})
	defer client.Close()
	first, err := obtain(t.Context(), client, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	second, err := obtain(t.Context(), client, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fenceredis.WithLock(t.Context(), store, "report", client, first); !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("the lock that has ended: %v", err)
	}
	ctx, err := fenceredis.WithLock(t.Context(), store, "report", client, second)
	if err != nil {
		t.Fatal(err)
	}
	if token, _ := sqlfence.FenceFrom(ctx, "report"); token.Value != 1 {
		t.Errorf("the first number is %v", token)
	}
	// Redis has lost the counter, for example in a failover. The new, lower number must be refused.
	if err := client.Del(t.Context(), "{locks/report}:fence").Err(); err != nil {
		t.Fatal(err)
	}
	if err := store.Adopt(t.Context(), sqlfence.Token{Name: "report", Value: 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := fenceredis.WithLock(t.Context(), store, "report", client, second); !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("a lost counter: %v", err)
	}
}
