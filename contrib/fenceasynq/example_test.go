package fenceasynq_test

import (
	"context"
	"log"

	"github.com/hibiken/asynq"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fenceasynq"
	"github.com/sqlfence/sqlfence/tokens"
)

// The payload of a task ship is the number of an order, and its attempts write the order's row.
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
	mux := asynq.NewServeMux()
	mux.Use(fenceasynq.Middleware(store, func(task *asynq.Task) string { return "orders/" + string(task.Payload()) }))
	mux.HandleFunc("ship", func(ctx context.Context, task *asynq.Task) error {
		_, err := db.ExecContext(ctx, "UPDATE orders SET state = 'shipped' WHERE id = $1", string(task.Payload()))
		return err // ErrStale if a later attempt has begun
	})
	server := asynq.NewServer(asynq.RedisClientOpt{Addr: "localhost:6379"}, asynq.Config{IsFailure: fenceasynq.IsFailure})
	if err := server.Run(mux); err != nil {
		log.Fatal(err)
	}
}
