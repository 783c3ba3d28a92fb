package bench

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/lease"
)

// BenchmarkLease acquires and releases a lease: by 1, 16 and 64 callers, each with a
// key of its own or all with one. Beside it are two bare statements on a table of the same
// shape, which is the least that a lease in a row takes; and what one would do without: a
// plain advisory lock, which gives no token and ends only with its session; a
// lease and a token by two statements, which leave a lease without a token if the
// caller dies between them, polled every millisecond; and the statements of
// cirello.io/pglock, written by hand. In impl=apart each caller
// has its own Leases that poll as often, as if they were processes; in
// impl=sqlfence they share one.
func BenchmarkLease(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		for _, hot := range []bool{false, true} {
			if callers == 1 && hot {
				continue // one caller has no one to meet
			}
			b.Run(fmt.Sprintf("callers=%d/hot=%v", callers, hot), func(b *testing.B) {
				for _, impl := range []struct {
					name string
					make func(b *testing.B, db *sql.DB) leaseCall
				}{
					{"bare", bareStatements}, {"advisory", advisoryLock}, {"pglock", pglock}, {"two", twoStatements}, {"sqlfence", sharedLeases}, {"apart", apart},
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
	for range 64 {
		all = append(all, newLeases(b, db))
	}
	return func(ctx context.Context, caller int, key string) error { return leaseOnce(ctx, all[caller], key) }
}

func bareStatements(b *testing.B, db *sql.DB) leaseCall {
	if _, err := db.Exec("CREATE TABLE bare (LIKE fencing_leases INCLUDING ALL)"); err != nil {
		b.Fatal(err)
	}
	return func(ctx context.Context, _ int, key string) error {
		id := rand.Text()[:22]
		var token int64
		err := errors.New("not asked yet")
		for err != nil {
			err = db.QueryRowContext(ctx, `INSERT INTO bare AS l (key, lock_id, holder, token, acquired_at, expires_at)
				VALUES ($1, $2, '', 1, clock_timestamp(), clock_timestamp() + interval '30 seconds')
				ON CONFLICT (key) DO UPDATE SET lock_id = excluded.lock_id, token = l.token + 1, acquired_at = excluded.acquired_at, expires_at = excluded.expires_at
				WHERE l.expires_at <= clock_timestamp() RETURNING token`, key, id).Scan(&token)
			if errors.Is(err, sql.ErrNoRows) {
				time.Sleep(time.Millisecond)
			} else if err != nil {
				return err
			}
		}
		return db.QueryRowContext(ctx, "UPDATE bare SET lock_id = NULL, expires_at = clock_timestamp() WHERE lock_id = $1 RETURNING key", id).Scan(&key)
	}
}

// pglock has the statements of its client's acquire and release, each in a serializable
// transaction that is made again where another came first.
func pglock(b *testing.B, db *sql.DB) leaseCall {
	for _, ddl := range []string{
		"CREATE TABLE locks (name varchar(255) PRIMARY KEY, record_version_number bigint, data bytea, owner varchar(255))",
		"CREATE SEQUENCE locks_rvn OWNED BY locks.record_version_number",
	} {
		if _, err := db.Exec(ddl); err != nil {
			b.Fatal(err)
		}
	}
	serializable := func(ctx context.Context, do func(tx *sql.Tx) error) error {
		for {
			tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
			if err != nil {
				return err
			}
			if err = do(tx); err == nil {
				err = tx.Commit()
			}
			_ = tx.Rollback()
			var state interface{ SQLState() string }
			if !errors.As(err, &state) || state.SQLState() != "40001" {
				return err
			}
		}
	}
	return func(ctx context.Context, caller int, key string) error {
		var mine, held int64
		for mine == 0 || held != mine {
			err := serializable(ctx, func(tx *sql.Tx) error {
				if err := tx.QueryRowContext(ctx, "SELECT nextval('locks_rvn')").Scan(&mine); err != nil {
					return err
				}
				if _, err := tx.ExecContext(ctx, `INSERT INTO locks (name, record_version_number, data, owner) VALUES ($1, $2, '', $4)
					ON CONFLICT (name) DO UPDATE SET
						record_version_number = CASE WHEN COALESCE(locks.record_version_number = $3, true) THEN $2 ELSE locks.record_version_number END,
						owner = CASE WHEN COALESCE(locks.record_version_number = $3, true) THEN $4 ELSE locks.owner END`,
					key, mine, -1, fmt.Sprint(caller)); err != nil {
					return err
				}
				return tx.QueryRowContext(ctx, "SELECT record_version_number FROM locks WHERE name = $1 FOR UPDATE", key).Scan(&held)
			})
			if err != nil {
				return err
			}
			if held != mine {
				time.Sleep(time.Millisecond)
			}
		}
		return serializable(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "DELETE FROM locks WHERE name = $1 AND record_version_number = $2", key, mine)
			return err
		})
	}
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
