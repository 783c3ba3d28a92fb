package database

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/sqlfence/sqlfence/lease"
)

// A listener receives PostgreSQL's notifications, so that waiting callers needn't poll for a lease. Every process with
// leases must have one, because only then its releases send notifications.
type listener string // a data source name

func (dsn listener) Listen(ctx context.Context, channel string, notify func(payload string)) error {
	conn, err := pgx.Connect(ctx, string(dsn))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	notify("") // it may have missed some
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		notify(n.Payload)
	}
}

func listening(dsn string) []lease.Option {
	return []lease.Option{lease.WithListener(listener(dsn)), lease.WithProcedures()}
}
