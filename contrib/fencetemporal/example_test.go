package fencetemporal_test

import (
	"context"
	"log"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fencetemporal"
	"github.com/sqlfence/sqlfence/tokens"
)

// The activity writes the row of the order that is its argument.
func Example() {
	db, err := sqlfence.Open("pgx", "postgres://localhost/shop",
		sqlfence.WithTable("orders", sqlfence.Key("id"), sqlfence.Ledger()))
	if err != nil {
		log.Fatal(err)
	}
	store, err := tokens.New(db)
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.Dial(client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fence := fencetemporal.Interceptor(store, func(_ context.Context, args []any) string {
		return "orders/" + args[0].(string)
	})
	w := worker.New(c, "shop", worker.Options{Interceptors: []interceptor.WorkerInterceptor{fence}})
	w.RegisterActivity(func(ctx context.Context, order string) error {
		_, err := db.ExecContext(ctx, "UPDATE orders SET state = 'shipped' WHERE id = $1", order)
		return err // ErrStale if a later attempt has begun
	})
	if err := w.Run(worker.InterruptCh()); err != nil {
		log.Fatal(err)
	}
}
