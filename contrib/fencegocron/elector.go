package fencegocron

import (
	"context"

	"github.com/go-co-op/gocron/v2"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
)

// An Elector is a [gocron.Elector]: the jobs run in the leader of an election, which the program runs (see
// [lease.Election.Run]). An Elector is safe for concurrent use.
type Elector struct{ election *lease.Election }

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns an Elector.
func NewElector(e *lease.Election) *Elector { return &Elector{e} }

// IsLeader returns nil if this process leads, or a *lease.NotLeaderError.
func (e *Elector) IsLeader(context.Context) error {
	_, err := e.election.Lease()
	return err
}

// Task returns a task. run gets a context with the token of the current leadership, and the context ends with the
// leadership. If this process doesn't lead, the task fails with a *lease.NotLeaderError, and run isn't called. A run
// that continues into a later leadership of this process, after another process has led, can write nothing.
func (e *Elector) Task(run func(ctx context.Context) error) gocron.Task {
	return gocron.NewTask(func(ctx context.Context) error {
		l, err := e.election.Lease()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancelCause(sqlfence.WithFence(ctx, l.Token()))
		defer cancel(nil)
		led := l.Context()
		defer context.AfterFunc(led, func() { cancel(context.Cause(led)) })()
		return run(ctx)
	})
}
