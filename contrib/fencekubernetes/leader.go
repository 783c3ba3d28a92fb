package fencekubernetes

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

// WithLeader returns a context with the token of an election that this process has won, for OnStartedLeading of
// client-go: one more than the record's leaderTransitions, which increases whenever a different identity takes the
// lock. WithLeader adopts the token, so a table with [sqlfence.Ledger] refuses the tokens of earlier leaders from then
// on.
//
// The name is the table's name or its [sqlfence.Resource]; use each name for one object of one cluster. A deleted
// object counts from the beginning, so its tokens are ErrStale until the count exceeds the old tokens: choose a new
// name after a deletion.
//
// Errors: [sqlfence.ErrStale] if this identity doesn't lead; those of [tokens.Store.Adopt], such as ErrStale if a later
// leader has adopted its token; and those of the API.
func WithLeader(ctx context.Context, store *tokens.Store, name string, lock resourcelock.Interface) (context.Context,
	error) {
	record, _, err := apart(lock).Get(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("fencekubernetes: read %s: %w", lock.Describe(), err)
	case record.HolderIdentity != lock.Identity():
		return nil, fmt.Errorf("fencekubernetes: %q leads by %s, not %q: %w", record.HolderIdentity, lock.Describe(),
			lock.Identity(), sqlfence.ErrStale)
	}
	token := sqlfence.Token{Name: name, Value: int64(record.LeaderTransitions) + 1}
	if err := store.Adopt(ctx, token); err != nil {
		return nil, fmt.Errorf("fencekubernetes: %w", err)
	}
	return sqlfence.WithFence(ctx, token), nil
}

// apart returns a second lock on the record of lock, because client-go's lock caches each record for its next Update,
// and the elector uses lock concurrently.
func apart(lock resourcelock.Interface) resourcelock.Interface {
	if of, ok := lock.(*resourcelock.LeaseLock); ok {
		return &resourcelock.LeaseLock{LeaseMeta: of.LeaseMeta, Client: of.Client, LockConfig: of.LockConfig}
	}
	return lock
}
