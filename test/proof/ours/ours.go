// Package ours is sqlfence as a fence under test: a program that does with sqlfence what an
// application would, on every kind of table.
package ours

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/tokens"
)

// Main is the program. In Observe mode the program refuses nothing, which shows that a storm finds a missing guard.
func Main(observes bool) {
	w := &worker{observes: observes}
	if err := fence.Serve(os.Stdin, os.Stdout, w.answer); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// patience is how long a request may take, unless it says otherwise.
const patience = 5 * time.Second

type worker struct {
	observes bool
	database *database
	db       *sql.DB
	native   *native // it writes without database/sql
	store    *tokens.Store
	leases   *lease.Leases
	edited   *rowlock.Table
	held     sync.Map // *lease.Lease by lock id
	prepared sync.Map // *sql.Stmt by text
}

func (w *worker) answer(r fence.Request) fence.Answer {
	within := patience
	if r.Within > 0 {
		within = time.Duration(r.Within) * time.Millisecond
	}
	if r.Do == fence.Open {
		within = time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	a, err := w.do(ctx, r)
	if err != nil {
		a.Is, a.Error = outcome(err), err.Error()
	} else if a.Is == "" {
		a.Is = fence.OK
	}
	return a
}

func (w *worker) do(ctx context.Context, r fence.Request) (fence.Answer, error) {
	switch r.Do {
	case fence.Open:
		return fence.Answer{}, w.open(ctx, r)
	case fence.Acquire:
		return w.acquire(ctx, r)
	case fence.Extend:
		return fence.Answer{}, w.extend(ctx, r)
	case fence.Release:
		return fence.Answer{}, w.release(ctx, r)
	case fence.Issue:
		token, err := w.store.Issue(ctx, r.Name)
		return fence.Answer{Token: token.Value}, err
	case fence.Adopt:
		token := r.Tokens[0]
		return fence.Answer{Token: token.Value}, w.store.Adopt(ctx, sqlfence.Token(token))
	case fence.Write:
		return w.write(ctx, r)
	case fence.Claim:
		return w.claim(ctx, r)
	case fence.Read:
		return w.read(ctx, r)
	case fence.Edit:
		return w.edit(ctx, r)
	case fence.Leave:
		return fence.Answer{}, w.edited.Release(ctx, r.Steps[0].Row, r.User)
	}
	return fence.Answer{}, fmt.Errorf("can't %q", r.Do)
}

// outcome is what an error of sqlfence's says of a request.
func outcome(err error) string {
	switch {
	case errors.Is(err, sqlfence.ErrUnknownOutcome):
		return fence.Unknown
	case errors.Is(err, sqlfence.ErrStale):
		return fence.Stale
	}
	for _, refusal := range []error{
		sqlfence.ErrNotIssued, sqlfence.ErrNoFence, sqlfence.ErrOutOfScope, sqlfence.ErrUnguardable, sqlfence.ErrUnknownName,
		sqlfence.ErrConflict, sqlfence.ErrGone, sqlfence.ErrLocked, sqlfence.ErrInvalid, lease.ErrNotHeld,
	} {
		if errors.Is(err, refusal) {
			return fence.Refused
		}
	}
	return fence.Failed
}

func (w *worker) edit(ctx context.Context, r fence.Request) (a fence.Answer, err error) {
	e := rowlock.Edit{ID: r.Steps[0].Row, User: r.User, TTL: time.Duration(r.TTL) * time.Millisecond}
	l, err := w.edited.LoadLocked(ctx, e, "value", &a.Value)
	a.Mark = l.Serial
	return a, err
}

func (w *worker) acquire(ctx context.Context, r fence.Request) (fence.Answer, error) {
	l, ok, err := w.leases.TryAcquire(ctx, r.Name, lease.TTL(time.Duration(r.TTL)*time.Millisecond))
	if err != nil || !ok {
		return fence.Answer{Is: fence.Held}, err
	}
	w.held.Store(l.LockID(), l)
	return fence.Answer{Token: l.Token().Value, Lock: l.LockID()}, nil
}

func (w *worker) extend(ctx context.Context, r fence.Request) error {
	_, err := w.leases.Extend(ctx, r.Lock, time.Duration(r.TTL)*time.Millisecond)
	return err
}

func (w *worker) release(ctx context.Context, r fence.Request) error {
	if l, ok := w.held.LoadAndDelete(r.Lock); ok {
		return l.(*lease.Lease).Release(ctx)
	}
	return w.leases.Release(ctx, r.Lock) // of this process before it was killed
}
