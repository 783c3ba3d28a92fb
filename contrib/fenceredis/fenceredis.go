// Package fenceredis fences writes under a lock in Redis, of package redislock: the lock gets a number as its fencing
// token, and the database refuses a lower number.
//
//	lock, err := locker.Obtain(ctx, "locks/books", time.Minute, nil)
//	ctx, err = fenceredis.WithLock(ctx, store, "books", client, lock)
//	_, err = db.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1") // ErrStale if another has locked it since
//
// The number comes from a counter next to the lock. A script increments the counter if this process still has the lock.
// So the tokens are as durable as the counter. A Redis that loses writes (a failover, appendfsync everysec or none) may
// issue a number twice. Until the counter exceeds the ledger's token, the database refuses the lower numbers, even of
// honest holders. A number that wasn't adopted before Redis lost it may have two holders. If such a loss matters, use a
// lease of package lease, which is stored in the database.
package fenceredis

import (
	"context"
	"fmt"
	"strings"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

// numberOf increments the counter, unless the lock is missing or has the value of a different holder.
var numberOf = redis.NewScript(`
	if redis.call("GET", KEYS[1]) ~= ARGV[1] then
		return 0
	end
	return redis.call("INCR", KEYS[2])`)

// WithLock returns a context with a token for a lock that this process has obtained: the next number of the counter
// "{key}:fence", with the lock's key. The number is higher than the numbers of earlier holders. WithLock adopts the
// token, so a table with [sqlfence.Ledger] refuses the tokens of earlier holders from then on.
//
// The name is the table's name or its [sqlfence.Resource]; use each name for one lock. Call WithLock once for each
// lock: a second call makes the first call's token stale.
//
// Errors: [sqlfence.ErrStale] if the lock has ended; those of [tokens.Store.Adopt], such as ErrStale if a later holder
// of the lock has adopted its token; and those of Redis.
func WithLock(ctx context.Context, store *tokens.Store, name string, client redis.Scripter,
	lock *redislock.Lock) (context.Context, error) {
	keys := []string{lock.Key(), counter(lock.Key())}
	number, err := numberOf.Run(ctx, client, keys, lock.Token()+lock.Metadata()).Int64()
	switch {
	case err != nil:
		return nil, fmt.Errorf("fenceredis: number of the lock %q: %w", lock.Key(), err)
	case number == 0:
		return nil, fmt.Errorf("fenceredis: the lock %q has ended: %w", lock.Key(), sqlfence.ErrStale)
	}
	token := sqlfence.Token{Name: name, Value: number}
	if err := store.Adopt(ctx, token); err != nil {
		return nil, fmt.Errorf("fenceredis: %w", err)
	}
	return sqlfence.WithFence(ctx, token), nil
}

// counter returns the counter's key. The counter is in the lock's cluster slot, which depends on the text in the first
// braces, or on the whole key. Source:
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags
func counter(key string) string {
	if _, tag, found := strings.Cut(key, "{"); found {
		if i := strings.IndexByte(tag, '}'); i > 0 {
			return key + ":fence"
		}
	}
	return "{" + key + "}:fence"
}
