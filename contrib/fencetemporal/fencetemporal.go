// Package fencetemporal gives each attempt of an activity of Temporal a fencing token, so that the database refuses the
// writes of an attempt after a later attempt has begun.
//
// Temporal begins a new attempt when an activity has sent no heartbeat in time, or runs for too long. The first worker
// may only have been paused, and can overwrite the data of the new attempt before the server reports that the first
// attempt has ended.
//
//	db, err := sqlfence.Open("pgx", dsn, sqlfence.WithTable("orders", sqlfence.Key("id"), sqlfence.Ledger()))
//	store, err := tokens.New(db)
//	fence := fencetemporal.Interceptor(store, func(ctx context.Context, args []any) string {
//		return "orders/" + args[0].(string) // the activity's own arguments
//	})
//	w := worker.New(client, "shop", worker.Options{Interceptors: []interceptor.WorkerInterceptor{fence}})
//
// The server ignores the result of an attempt after a new attempt has begun: a refused attempt is neither a failure of
// the activity, nor is it retried. If the refused attempt is still the current attempt, another holder has taken the
// token's name, and the server begins a new attempt by the retry policy.
package fencetemporal

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/tokens"
)

// Refused is the type of the [temporal.ApplicationError] for an activity that was refused, as workflows see it and
// retry policies name it.
const Refused = "sqlfence.Refused"

// Interceptor returns an interceptor that issues a token to each attempt of an activity, including local activities,
// and adds the token to the attempt's context. name returns the token's name, which should be the name of the written
// data, such as the row "orders/42", because the store keeps each name until it is deleted ([tokens.Store.Delete]).
// name gets the activity's context, for activity.GetInfo, and the activity's arguments. Two activities with one name
// make each other's tokens stale; activities that may run at the same time should take leases instead (package lease).
// With an empty name the attempt gets no token.
//
// If the store returns an error, the attempt fails with this error, and the activity isn't called. An activity's error
// that is [sqlfence.ErrStale] or [lease.ErrHeld] becomes a [temporal.ApplicationError] of the type Refused. The server
// may retry it, and it is benign: the SDK doesn't count and log it as a failure.
func Interceptor(store *tokens.Store, name func(ctx context.Context, args []any) string) interceptor.WorkerInterceptor {
	return &worker{store: store, name: name}
}

type worker struct {
	interceptor.WorkerInterceptorBase
	store *tokens.Store
	name  func(ctx context.Context, args []any) string
}

// InterceptActivity puts the interceptor in front of an activity.
func (w *worker) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	a := &activity{worker: w}
	a.Next = next
	return a
}

type activity struct {
	interceptor.ActivityInboundInterceptorBase
	worker *worker
}

// ExecuteActivity runs an attempt.
func (a *activity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	if name := a.worker.name(ctx, in.Args); name != "" {
		token, err := a.worker.store.Issue(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("fencetemporal: the token of an activity: %w", err)
		}
		ctx = sqlfence.WithFence(ctx, token)
	}
	result, err := a.Next.ExecuteActivity(ctx, in)
	if errors.Is(err, sqlfence.ErrStale) || errors.Is(err, lease.ErrHeld) {
		err = temporal.NewApplicationErrorWithOptions(err.Error(), Refused, temporal.ApplicationErrorOptions{
			Cause:    err,
			Category: temporal.ApplicationErrorCategoryBenign,
		})
	}
	return result, err
}
