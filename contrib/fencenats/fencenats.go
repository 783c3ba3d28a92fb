// Package fencenats fences writes under a lock in a key-value bucket of NATS: the revision that created the key is a
// fencing token, and the database refuses an older revision.
//
//	revision, err := bucket.Create(ctx, "locks.books", nil) // or jetstream.ErrKeyExists
//	ctx, err = fencenats.WithRevision(ctx, store, "books", revision)
//	_, err = db.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1") // ErrStale if another has locked it since
//
// Revisions count the writes of a bucket. So each name must belong to one key of one bucket, and the bucket must not be
// deleted: a new bucket counts from 1, and its tokens are ErrStale until the revisions exceed the old tokens.
//
// The tokens are as durable as the bucket. By default a server of NATS acknowledges a write up to two minutes before
// its fsync, so a crash can lose the write, and two holders may get one revision. Set sync_interval to always.
package fencenats

import (
	"context"
	"fmt"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

// WithRevision returns a context with the token of a key that this process has created as its lock: the revision that
// Create of jetstream.KeyValue returned, also after Update has renewed it. The revision is higher than the revisions of
// earlier holders. WithRevision adopts the token, so a table with [sqlfence.Ledger] refuses the tokens of earlier
// holders from then on.
//
// Errors: those of [tokens.Store.Adopt], such as [sqlfence.ErrStale] if a later holder of the lock has adopted its
// token; [sqlfence.ErrInvalid] for the revision 0, and [sqlfence.ErrTokenLimit] for one over [sqlfence.MaxToken].
func WithRevision(ctx context.Context, store *tokens.Store, name string, revision uint64) (context.Context, error) {
	token := sqlfence.Token{Name: name, Value: int64(min(revision, sqlfence.MaxToken+1))}
	if err := store.Adopt(ctx, token); err != nil {
		return nil, fmt.Errorf("fencenats: %w", err)
	}
	return sqlfence.WithFence(ctx, token), nil
}
