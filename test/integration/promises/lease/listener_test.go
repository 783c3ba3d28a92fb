package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/lib/pq"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A lease.Listener for each driver; docs/leases.md refers to this file.

// pgxListener is a [lease.Listener] for pgx. Its value is the server's DSN.
type pgxListener string

func (dsn pgxListener) Listen(ctx context.Context, channel string, heard func(string)) error {
	conn, err := pgx.Connect(ctx, string(dsn))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	heard("") // notifications from before may be missing
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		heard(n.Payload)
	}
}

// pqListener is a [lease.Listener] for lib/pq. Its value is the server's DSN.
type pqListener string

func (dsn pqListener) Listen(ctx context.Context, channel string, heard func(string)) error {
	l := pq.NewListener(string(dsn), 100*time.Millisecond, 10*time.Second, nil)
	defer l.Close()
	if err := l.Listen(channel); err != nil {
		return err
	}
	heard("") // notifications from before may be missing
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case n := <-l.NotificationChannel():
			if n == nil { // the connection was replaced
				heard("")
				continue
			}
			heard(n.Extra)
		}
	}
}

var listeners = map[string]func(dsn string) lease.Listener{
	"pgx":      func(dsn string) lease.Listener { return pgxListener(dsn) },
	"pq":       func(dsn string) lease.Listener { return pqListener(dsn) },
	"fencepgx": func(dsn string) lease.Listener { return pgxListener(dsn) },
}

// A waiter that would poll once an hour gets the lease as soon as another process releases it.
func TestLeaseListener(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			_, err := lease.New(b.Raw(t, b.DSN(t)), lease.WithListener(pgxListener("")))
			if err == nil {
				t.Error("a listener on SQLite was accepted")
			}
			return
		}
		dsn := b.DSN(t)
		hearing := lease.WithListener(listeners[b.Name](dsn))
		db, c := b.Counted(t, dsn)
		here, there := harness.NewLeases(t, db, hearing), harness.NewLeases(t, b.Raw(t, dsn), hearing)
		for round := range 5 {
			holder := harness.MustAcquire(t, there, "jobs", lease.TTL(time.Hour))
			c.Reset()
			got := make(chan error)
			go func() {
				l, err := here.Acquire(t.Context(), "jobs", lease.Timeout(harness.Patience), lease.Interval(time.Hour))
				if err == nil {
					err = l.Release(t.Context())
				}
				got <- err
			}()
			// Each waiter makes one attempt. The first waiter makes another attempt after the listener has started.
			attempts := 1
			if round == 0 {
				attempts = 2
			}
			harness.Eventually(t, "a waiter that listens", func() bool { return leaseAttempts(c) >= attempts })
			if err := there.Release(t.Context(), holder.LockID()); err != nil {
				t.Fatal(err)
			}
			if err := <-got; err != nil {
				t.Fatal(err)
			}
			// The notifications of the earlier round's two releases may have arrived late.
			if n := leaseAttempts(c); n > attempts+3 {
				t.Errorf("round %d: %d attempts", round, n)
			}
		}
	})
}
