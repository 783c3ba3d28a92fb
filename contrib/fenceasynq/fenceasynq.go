// Package fenceasynq gives each attempt of a task of asynq a fencing token, so that the database refuses what an
// attempt writes after a later one has begun.
//
// asynq gives a task to another worker when the first one's lease in Redis has run out, which 30 s without a heartbeat
// are enough for. The first worker may have been paused, or cut off from Redis alone; when it goes on, it writes over
// what the other has written.
//
//	db, err := sqlfence.Open("pgx", dsn, sqlfence.WithTable("orders", sqlfence.Key("id"), sqlfence.Ledger()))
//	store, err := tokens.New(db)
//	mux := asynq.NewServeMux()
//	mux.Use(fenceasynq.Middleware(store, func(task *asynq.Task) string { return "orders/" + orderOf(task) }))
//	server := asynq.NewServer(redis, asynq.Config{IsFailure: fenceasynq.IsFailure})
//
// An attempt that was refused isn't counted as a failure of the task. If its lease has run out, asynq doesn't look at
// what it returns, and the task is the later attempt's. If it hasn't, it was another task that has taken the name over,
// or an attempt that has begun late, and asynq runs the task again. asynq compares a lease with the worker's own clock,
// so the clocks of all servers must agree.
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
// the token's name: that of what the task writes, such as the row "orders/42", as the store keeps each name until it is
// deleted ([tokens.Store.Delete]). Two tasks with one name take it from each other; if they may run at the same time,
// have each take a lease (package lease) in place of this. With an empty name the attempt gets no token.
//
// An attempt that gets no token because of an error fails with it, and the handler isn't called.
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

// IsFailure is for [asynq.Config]: a refusal by a token ([sqlfence.ErrStale]) and a lease that another holds
// ([lease.ErrHeld]) are no failures of a task. asynq runs such a task again, without counting that as a retry. Only a
// task without a retry left is archived, as asynq asks for those first.
func IsFailure(err error) bool {
	return err != nil && !errors.Is(err, sqlfence.ErrStale) && !errors.Is(err, lease.ErrHeld)
}
