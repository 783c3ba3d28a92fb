// Package fenceetcd fences writes under etcd's locks and elections: their revisions are fencing tokens, and the
// database refuses an older revision.
//
//	err := mutex.Lock(ctx)
//	ctx, err = fenceetcd.WithMutex(ctx, store, "books", session, mutex)
//	_, err = db.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1") // ErrStale if another has locked it since
//
// The name is the table's name or its [sqlfence.Resource]. Use each name for one lock of one cluster, because another
// cluster may reach the same revision. A cluster that was restored from a backup may count from a lower revision: its
// tokens are ErrStale until the revisions exceed the old tokens ([tokens.Store.Adopt]).
package fenceetcd

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

// errEnded is why a context has ended with its session. It is [sqlfence.ErrStale].
var errEnded = fmt.Errorf("fenceetcd: etcd's session has ended: %w", sqlfence.ErrStale)

// WithMutex returns a context with the token of a mutex that this process has locked in the session: the revision at
// which the process got the lock, which is higher than the revision of each earlier holder. WithMutex adopts the token,
// so a table with [sqlfence.Ledger] refuses the tokens of earlier holders from then on. The context ends with the
// session, with a cause that is [sqlfence.ErrStale]. A goroutine watches ctx until it ends: if a session takes many
// locks, give each lock a ctx that is cancelled after Unlock.
//
// Errors: [sqlfence.ErrInvalid] if the mutex isn't locked, or no longer; those of [tokens.Store.Adopt], such as
// ErrStale if a later holder of the lock has adopted its token.
func WithMutex(ctx context.Context, store *tokens.Store, name string, s *concurrency.Session,
	m *concurrency.Mutex) (context.Context, error) {
	header := m.Header()
	if header == nil || m.Key() == "\x00" { // as Unlock leaves it; the header stays
		return nil, fmt.Errorf("fenceetcd: the mutex isn't locked: %w", sqlfence.ErrInvalid)
	}
	return with(ctx, store, s, sqlfence.Token{Name: name, Value: header.GetRevision()})
}

// WithElection returns a context with the token of an election that this process has won in the session, by Campaign:
// the revision of the leader's key, which is higher than the revision of each earlier leader. The rest is as for
// [WithMutex].
func WithElection(ctx context.Context, store *tokens.Store, name string, s *concurrency.Session,
	e *concurrency.Election) (context.Context, error) {
	if e.Header() == nil || e.Key() == "" { // as Resign leaves it; the header stays
		return nil, fmt.Errorf("fenceetcd: the election isn't won, or was resigned: %w", sqlfence.ErrInvalid)
	}
	return with(ctx, store, s, sqlfence.Token{Name: name, Value: e.Rev()})
}

func with(ctx context.Context, store *tokens.Store, s *concurrency.Session, t sqlfence.Token) (context.Context, error) {
	select {
	case <-s.Done():
		return nil, errEnded
	default:
	}
	if err := store.Adopt(ctx, t); err != nil {
		return nil, fmt.Errorf("fenceetcd: %w", err)
	}
	ctx, cancel := context.WithCancelCause(sqlfence.WithFence(ctx, t))
	go func() {
		select {
		case <-s.Done():
			cancel(errEnded)
		case <-ctx.Done():
			cancel(context.Cause(ctx))
		}
	}()
	return ctx, nil
}
