package bench

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/lease"
)

// BenchmarkLease acquires and releases a lease: by 1 and 16 callers, each with a
// key of its own or all with one. Beside it are what one would do without: a
// plain advisory lock, which gives no token and ends only with its session; and a
// lease and a token by two statements, which leave a lease without a token if the
// caller dies between them, polled every millisecond. In impl=apart each caller
// has its own Leases that poll as often, as if they were processes; in
// impl=sqlfence they share one.
func BenchmarkLease(b *testing.B) {
	for _, callers := range []int{1, 16} {
		for _, hot := range []bool{false, true} {
			if callers == 1 && hot {
				continue // one caller has no one to meet
			}
			b.Run(fmt.Sprintf("callers=%d/hot=%v", callers, hot), func(b *testing.B) {
				for _, impl := range []struct {
					name string
					make func(b *testing.B, db *sql.DB) leaseCall
				}{
					{"advisory", advisoryLock}, {"two", twoStatements}, {"sqlfence", sharedLeases}, {"apart", apart},
				} {
					b.Run("impl="+impl.name, func(b *testing.B) {
						db := inSchema(b, "sqlfence_bench_lease")
						db.SetMaxIdleConns(callers)
						setUpLeases(b, db)
						call := impl.make(b, db)
						ids := make(chan int, callers)
						for i := range callers {
							ids <- i
						}
						together(b, callers, func() error {
							id := <-ids
							defer func() { ids <- id }()
							key := "books"
							if !hot {
								key = fmt.Sprint("books/", id)
							}
							return call(context.Background(), id, key)
						})
					})
				}
			})
		}
	}
}

// A leaseCall acquires and releases once.
type leaseCall = func(ctx context.Context, caller int, key string) error

func setUpLeases(b *testing.B, db *sql.DB) {
	b.Helper()
	if err := newLeases(b, db).Setup(context.Background()); err != nil {
		b.Fatal(err)
	}
}

func newLeases(b *testing.B, db *sql.DB) *lease.Leases {
	b.Helper()
	leases, err := lease.New(db, lease.WithDefaults(lease.Wait(time.Minute, time.Millisecond)))
	if err != nil {
		b.Fatal(err)
	}
	return leases
}

func leaseOnce(ctx context.Context, leases *lease.Leases, key string) error {
	l, err := leases.Acquire(ctx, key)
	if err != nil {
		return err
	}
	return l.Release(ctx)
}

func sharedLeases(b *testing.B, db *sql.DB) leaseCall {
	leases := newLeases(b, db)
	return func(ctx context.Context, _ int, key string) error { return leaseOnce(ctx, leases, key) }
}

func apart(b *testing.B, db *sql.DB) leaseCall {
	var all []*lease.Leases
	for range 16 {
		all = append(all, newLeases(b, db))
	}
	return func(ctx context.Context, caller int, key string) error { return leaseOnce(ctx, all[caller], key) }
}

func advisoryLock(_ *testing.B, db *sql.DB) leaseCall {
	return func(ctx context.Context, _ int, key string) error {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock(hashtext($1))", key); err != nil {
			return err
		}
		_, err = conn.ExecContext(ctx, "SELECT pg_advisory_unlock(hashtext($1))", key)
		return err
	}
}

func twoStatements(_ *testing.B, db *sql.DB) leaseCall {
	return func(ctx context.Context, caller int, key string) error {
		id := fmt.Sprint(caller)
		for {
			result, err := db.ExecContext(ctx, `INSERT INTO fencing_leases AS l (key, lock_id, holder, token, acquired_at, expires_at)
				VALUES ($1, $2, '', 0, now(), now() + interval '30 seconds')
				ON CONFLICT (key) DO UPDATE SET lock_id = excluded.lock_id, acquired_at = excluded.acquired_at, expires_at = excluded.expires_at
				WHERE l.expires_at <= now()`, key, id)
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			if err != nil {
				return err
			}
			if n > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		var token int64
		if err := db.QueryRowContext(ctx, `INSERT INTO fencing_tokens (name, token) VALUES ($1, 1)
			ON CONFLICT (name) DO UPDATE SET token = fencing_tokens.token + 1 RETURNING token`, key).Scan(&token); err != nil {
			return err
		}
		_, err := db.ExecContext(ctx, "UPDATE fencing_leases SET lock_id = NULL, expires_at = now() WHERE key = $1 AND lock_id = $2", key, id)
		return err
	}
}
