package fencekubernetes

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
)

// A Lock is a resourcelock.Interface on a lease of package lease. The database's clock decides when a leader's time is
// over, so the clocks of the nodes needn't agree. A Lock is safe for concurrent use.
//
// While the lease is free or has ended, Get reports that no record exists, so the next elector creates a record at once
// instead of waiting for the lease's duration by the elector's clock.
//
// A leader that has lost its lease, for example by a pause, doesn't get the lease again before its elector has noticed
// the loss and has stopped leading. Another process may have led meanwhile, and the first leader would write outdated
// data under a new token.
type Lock struct {
	key, identity string

	mu     sync.Mutex
	leases *lease.Leases
	held   *lease.Lease
	leads  bool // according to the elector's events
}

var _ resourcelock.Interface = (*Lock)(nil)

// NewLock returns the lock of a lease's key for a process. A process that restarts with the same identity continues
// with its lease. Errors: [sqlfence.ErrInvalid] for an empty identity, and those of [lease.NormalizeKey].
func NewLock(key, identity string) (*Lock, error) {
	key, err := lease.NormalizeKey(key)
	switch {
	case err != nil:
		return nil, fmt.Errorf("fencekubernetes: %w", err)
	case identity == "":
		return nil, fmt.Errorf("fencekubernetes: no identity: %w", sqlfence.ErrInvalid)
	}
	return &Lock{key: key, identity: identity}, nil
}

// Use sets the leases of the lock. Call it before the election runs. Use is separate from NewLock, because opening the
// database may need the lock's Tokens, and leases need the open database.
func (l *Lock) Use(leases *lease.Leases) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases = leases
}

// Tokens is a source for [sqlfence.WithTokenSource]. If names contains the lock's key, Tokens returns the token of the
// [lease.Lease] that this process's elector acquired last. If that lease has ended, or the elector has acquired none,
// the error is a [*lease.NotLeaderError] (see [lease.TokensOf]).
func (l *Lock) Tokens(_ context.Context, names []string) ([]sqlfence.Token, error) {
	_, held, _ := l.now()
	return lease.TokensOf(held, l.key, names)
}

var errUnused = fmt.Errorf("fencekubernetes: the lock has no leases: call Use: %w", sqlfence.ErrInvalid)

// Get implements resourcelock.Interface.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	leases, _, _ := l.now()
	if leases == nil {
		return nil, nil, errUnused
	}
	info, ok, err := leases.Lookup(ctx, l.key)
	switch {
	case err != nil:
		return nil, nil, err
	case !ok:
		return nil, nil, apierrors.NewNotFound(resource, l.key)
	}
	left := time.Until(info.ExpiresAt).Seconds()
	return &resourcelock.LeaderElectionRecord{
		HolderIdentity:       info.Holder,
		LeaseDurationSeconds: max(1, int(math.Ceil(left))),
		AcquireTime:          metav1.NewTime(info.AcquiredAt),
		RenewTime:            metav1.NewTime(time.Now()),
		LeaderTransitions:    int(info.Token.Value - 1),
	}, fmt.Appendf(nil, "%s until %d", info.Token, info.ExpiresAt.UnixMicro()), nil
}

// Create implements resourcelock.Interface: it takes the lease if it is free.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// Update implements resourcelock.Interface: it takes a free lease, and extends or releases this process's lease.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	leases, held, leads := l.now()
	ttl := time.Duration(record.LeaseDurationSeconds) * time.Second
	switch {
	case leases == nil:
		return errUnused
	case record.HolderIdentity == "":
		return l.release(ctx, held)
	case record.HolderIdentity != l.identity:
		return fmt.Errorf("fencekubernetes: the record is of %q: %w", record.HolderIdentity, sqlfence.ErrInvalid)
	case held != nil && held.Err() == nil:
		if err := held.Extend(ctx, ttl); err == nil || held.Err() == nil {
			return err
		}
	}
	if leads && held != nil {
		return fmt.Errorf("fencekubernetes: the elector of %q has to stop leading first: %w", l.identity, held.Err())
	}
	taken, ok, err := leases.TryAcquire(ctx, l.key, lease.Resume(l.identity), lease.TTL(ttl), lease.Refresh())
	switch {
	case err != nil:
		return err
	case !ok:
		return apierrors.NewConflict(resource, l.key, lease.ErrHeld)
	}
	l.hold(taken)
	return nil
}

func (l *Lock) release(ctx context.Context, held *lease.Lease) error {
	l.hold(nil)
	if held == nil {
		return nil
	}
	if err := held.Release(ctx); !errors.Is(err, lease.ErrNotHeld) {
		return err
	}
	return nil
}

// stopped is the event of an elector that has stopped leading. The elector's only other event is that it leads. If a
// version of client-go renames the event, a process that has lost the lease can't lead again before a restart.
const stopped = "stopped leading"

// RecordEvent implements resourcelock.Interface. It records nothing (use [lease.WithObserver]), but follows whether the
// elector leads.
func (l *Lock) RecordEvent(event string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leads = event != stopped
}

// Identity implements resourcelock.Interface.
func (l *Lock) Identity() string { return l.identity }

// Describe implements resourcelock.Interface.
func (l *Lock) Describe() string { return "the lease " + l.key + " in the database" }

func (l *Lock) now() (leases *lease.Leases, held *lease.Lease, leads bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leases, l.held, l.leads
}

func (l *Lock) hold(held *lease.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = held
}

// resource is the resource in errors of Kubernetes's kinds; client-go checks only the kind of error.
var resource = schema.GroupResource{Group: "sqlfence", Resource: "leases"}
