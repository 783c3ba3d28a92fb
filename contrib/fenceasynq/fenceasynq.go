// Package fenceasynq gives each attempt of a task of asynq a fencing token, so that the database refuses the writes of
// an attempt after a later attempt has begun.
//
// asynq gives a task to a second worker when the first worker's lease in Redis has expired, after 30 s without a
// heartbeat. The first worker may only have been paused, or cut off from Redis: when it continues, it overwrites the
// second worker's data.
//
//	db, err := sqlfence.Open("pgx", dsn, sqlfence.WithTable("orders", sqlfence.Key("id"), sqlfence.Ledger()))
//	store, err := tokens.New(db)
//	mux := asynq.NewServeMux()
//	mux.Use(fenceasynq.Middleware(store, func(task *asynq.Task) string { return "orders/" + orderOf(task) }))
//	server := asynq.NewServer(redis, asynq.Config{IsFailure: fenceasynq.IsFailure})
//
// A refused attempt isn't counted as a failure of the task. If the attempt's lease in Redis has expired, asynq ignores
// its result, and the task belongs to the later attempt. If the lease is live, a different task or a late attempt has
// taken the name over, and asynq runs the task again. asynq compares a lease with the worker's clock, so the clocks of
// all servers must agree.
package fenceasynq

import (
	"context"
	"errors"
	"fmt"

	"github.com/hibiken/asynq"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/tokens"
)

// Middleware returns middleware that issues a token to each attempt and adds it to the attempt's context. name returns
// the token's name, which should be the name of the written data, such as the row "orders/42", because the store keeps
// each name until it is deleted ([tokens.Store.Delete]). Two tasks with one name make each other's tokens stale; tasks
// that may run at the same time should take leases instead (package lease). With an empty name the attempt gets no
// token.
//
// If the store returns an error, the attempt fails with this error, and the handler isn't called.
func Middleware(store *tokens.Store, name func(*asynq.Task) string) asynq.MiddlewareFunc {
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			if name := name(task); name != "" {
				token, err := store.Issue(ctx, name)
				if err != nil {
					return fmt.Errorf("fenceasynq: the token of a task %s: %w", task.Type(), err)
				}
				ctx = sqlfence.WithFence(ctx, token)
			}
			return next.ProcessTask(ctx, task)
		})
	}
}

// IsFailure is for [asynq.Config]: a refused token ([sqlfence.ErrStale]) and a lease of another holder
// ([lease.ErrHeld]) are no failures of a task. asynq runs the task again, without counting a retry. But asynq archives
// a task that has no retry left, because asynq checks the retries before IsFailure.
func IsFailure(err error) bool {
	return err != nil && !errors.Is(err, sqlfence.ErrStale) && !errors.Is(err, lease.ErrHeld)
}
