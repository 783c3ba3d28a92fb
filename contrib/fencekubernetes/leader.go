package fencekubernetes

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

// WithLeader returns a context with the token of an election that this process has won, for OnStartedLeading of
// client-go: one more than the record's leaderTransitions, which count up each time that another identity takes the
// lock. The token is adopted first, so from then on the database refuses that of each leader before where the table
// has [sqlfence.Ledger].
//
// The name is that of the tokens: the table's, or its [sqlfence.Resource]; one name belongs to one object of one
// cluster. If the object is deleted it counts anew, and its tokens are ErrStale until they have passed the old ones:
// take another name then.
//
// Errors: [sqlfence.ErrStale] if another identity leads, or none; those of [tokens.Store.Adopt], ErrStale among them
// if a later leader has adopted; and those of the API.
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

// apart returns a lock that reads the same record. client-go's keeps what it reads for its next Update, and the elector
// uses it at the same time.
func apart(lock resourcelock.Interface) resourcelock.Interface {
	if of, ok := lock.(*resourcelock.LeaseLock); ok {
		return &resourcelock.LeaseLock{LeaseMeta: of.LeaseMeta, Client: of.Client, LockConfig: of.LockConfig}
	}
	return lock
}
