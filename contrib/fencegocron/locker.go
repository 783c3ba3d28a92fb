package fencegocron

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-co-op/gocron/v2"

	"github.com/sqlfence/sqlfence/lease"
)

// A Locker is a [gocron.Locker] on leases. The key of a job's lease is the job's name. Heartbeats extend the lease
// while the job runs. A Locker is safe for concurrent use.
type Locker struct {
	leases *lease.Leases
	terms  []lease.Term

	mu   sync.Mutex
	held map[string]*lock // locks that no run has fetched yet
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker with these terms of its leases. Set [lease.MinHold] to a little less than the job's
// interval: otherwise a process with a slow clock runs the job again after another process has ended it. A process
// skips the job while another process runs it, so the terms [lease.Timeout], [lease.Retries], [lease.Backoff] and
// [lease.Interval] are invalid.
func NewLocker(leases *lease.Leases, terms ...lease.Term) *Locker {
	return &Locker{
		leases: leases,
		terms:  append([]lease.Term{lease.NoWait()}, terms...),
		held:   make(map[string]*lock),
	}
}

// Lock takes the lease of key, which gocron has from the job's name. The errors are those of [lease.Leases.Acquire].
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	k := &lock{locker: l, key: key, end: make(chan struct{}), ended: make(chan struct{})}
	begun := make(chan struct{})
	go func() {
		defer close(k.ended)
		k.err = l.leases.Do(ctx, key, func(ctx context.Context) error {
			k.ctx = ctx
			close(begun)
			<-k.end
			return nil
		}, l.terms...)
	}()
	select {
	case <-begun:
	case <-k.ended:
		return nil, k.err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[key] = k
	return k, nil
}

// Task returns the task of the job that is called name by gocron.WithName. The task calls run with the context of the
// lease that the scheduler has taken for the job: it carries the token, and ends with the lease. If the scheduler has
// taken no lease of this name from this Locker, the task fails with [lease.ErrNotHeld], without calling run.
func (l *Locker) Task(name string, run func(ctx context.Context) error) gocron.Task {
	return gocron.NewTask(func() error {
		k := l.take(name)
		if k == nil {
			return fmt.Errorf("fencegocron: the scheduler has taken no lease of %q for the task: %w", name, lease.ErrNotHeld)
		}
		return run(k.ctx)
	})
}

// take returns the lease of a job's run, and removes it from l.held: two runs of a job overlap in a process if the
// first run has lost its lease and continues, and the first run must not use the second run's lease.
func (l *Locker) take(key string) *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.held[key]
	delete(l.held, key)
	return k
}

// A lock is the lease of one run.
type lock struct {
	locker *Locker
	key    string
	ctx    context.Context // the lease's

	once  sync.Once
	end   chan struct{} // closed by Unlock
	ended chan struct{} // closed when the lease has ended
	err   error
}

// Unlock releases the lease. The error is a *lease.LostError if it was lost before.
func (k *lock) Unlock(context.Context) error {
	k.once.Do(func() {
		close(k.end)
		k.locker.mu.Lock()
		defer k.locker.mu.Unlock()
		if k.locker.held[k.key] == k {
			delete(k.locker.held, k.key)
		}
	})
	<-k.ended
	return k.err
}
