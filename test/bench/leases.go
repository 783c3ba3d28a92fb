package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/sqlfence/sqlfence/lease"
)

// pollEvery is the interval between attempts of contestants that can only poll.
const pollEvery = time.Millisecond

// leases measures taking and releasing leases, with a key for each caller or one shared key.
func leases() []*measurement {
	var all []*measurement
	own := func(callers int, far bool) {
		all = append(all, &measurement{table: "A key for each caller", on: "pgx", callers: callers, far: far, slices: 2,
			contestants: append([]contestant{locker("two durable statements (the limit)", pgx.durability, pgx.twoDurable)}, lockers(false)...)})
	}
	for _, callers := range []int{1, 16, 64} {
		own(callers, false)
	}
	own(1, true)
	own(16, true)
	for _, callers := range []int{1, 16} {
		all = append(all, &measurement{table: "A key for each caller, SQLite", on: mattnFull.name, callers: callers, slices: 2,
			contestants: []contestant{
				locker("two durable statements (the limit)", mattnFull.durability, mattnFull.twoDurable),
				{name: "lease", durability: mattnFull.durability, fenced: true, start: mattnFull.leasing(false)},
			}})
	}
	return append(all,
		&measurement{table: "One key", name: "one key", callers: 16, slices: 5, contestants: lockers(true)},
		&measurement{table: "One key", name: "one key", callers: 4, processes: 4, slices: 5, contestants: lockers(true)})
}

func locker(name, durability string, start func(*stage) (work, error)) contestant {
	return contestant{name: name, durability: durability, start: start}
}

// lockers returns all contestants except the limit. With one key, the first contestant is etcd's queue.
func lockers(hot bool) []contestant {
	all := []contestant{
		locker("etcd, concurrency.Mutex", etcdDurability, etcdLocking(hot)),
		{name: "lease", durability: pgx.durability, fenced: true, start: pgx.leasing(hot)},
		locker("pg_advisory_lock", "none: ends with its session", advisory(hot)),
		locker("pglock's statements, by hand", pgx.durability, pglocking(hot)),
	}
	for _, durability := range []string{redisAlways, redisEverySecond, redisNo} {
		all = append(all, locker("redislock, "+durability, redisDurability[durability], redislocking(durability, hot)))
	}
	return append(all, locker("redsync, "+redisAlways, redisDurability[redisAlways]+", one server", redsyncing(hot)))
}

// keyOf returns the key of a caller.
func keyOf(s *stage, hot bool, caller int) string {
	if hot {
		return s.place
	}
	return fmt.Sprint(s.place, "/", caller)
}

// twoDurable is the minimum for a lease that survives a crash: one statement takes and counts, one statement releases.
func (t target) twoDurable(s *stage) (work, error) {
	db, err := t.open(s, bare)
	if err != nil {
		return work{}, err
	}
	if err := setUp(db, "CREATE TABLE leases (key text PRIMARY KEY, lock_id text, token bigint NOT NULL, expires_at bigint NOT NULL)"); err != nil {
		return work{}, err
	}
	for caller := range s.callers {
		if err := setUp(db, fmt.Sprintf("INSERT INTO leases VALUES ('%s', NULL, 0, 0)", keyOf(s, false, caller))); err != nil {
			return work{}, err
		}
	}
	take := fmt.Sprintf("UPDATE leases SET lock_id = %s, token = token + 1, expires_at = %s WHERE key = %s AND expires_at <= %s RETURNING token",
		t.slot(1), t.slot(2), t.slot(3), t.slot(4))
	release := fmt.Sprintf("UPDATE leases SET lock_id = NULL, expires_at = 0 WHERE key = %s AND lock_id = %s", t.slot(1), t.slot(2))
	return work{call: func(ctx context.Context, caller int) error {
		key, id, now := keyOf(s, false, caller), fmt.Sprintf("%022d", caller), time.Now().UnixMilli()
		var token int64
		if err := db.QueryRowContext(ctx, take, id, now+lockTTL.Milliseconds(), key, now).Scan(&token); err != nil {
			return err
		}
		return one(db.ExecContext(ctx, release, key, id))
	}}, nil
}

// leasing uses package lease.
func (t target) leasing(hot bool) func(*stage) (work, error) {
	return func(s *stage) (work, error) {
		db, err := t.open(s, bare)
		if err != nil {
			return work{}, err
		}
		all, err := lease.New(db, lease.WithDefaults(lease.TTL(lockTTL), lease.Timeout(stillness), lease.Interval(pollEvery)))
		if err != nil {
			return work{}, err
		}
		if s.lead {
			if err := all.Setup(context.Background()); err != nil {
				return work{}, err
			}
		}
		return work{call: func(ctx context.Context, caller int) error {
			l, err := all.Acquire(ctx, keyOf(s, hot, caller))
			if err != nil {
				return err
			}
			return l.Release(ctx)
		}}, nil
	}
}

// advisory takes a lock that gives no token and ends with its session.
func advisory(hot bool) func(*stage) (work, error) {
	return func(s *stage) (work, error) {
		db, err := pgx.open(s, bare)
		if err != nil {
			return work{}, err
		}
		return work{call: func(ctx context.Context, caller int) error {
			conn, err := db.Conn(ctx)
			if err != nil {
				return err
			}
			defer conn.Close()
			key := keyOf(s, hot, caller)
			if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock(hashtext($1))", key); err != nil {
				return err
			}
			_, err = conn.ExecContext(ctx, "SELECT pg_advisory_unlock(hashtext($1))", key)
			return err
		}}, nil
	}
}

// pglocking does what cirello.io/pglock does, which the module proxy doesn't have: an
// upsert that compares the record's version, in a serializable transaction, and a release in
// another one. It asks again every millisecond; pglock itself does after its lease's duration.
func pglocking(hot bool) func(*stage) (work, error) {
	return func(s *stage) (work, error) {
		db, err := pgx.open(s, bare)
		if err != nil {
			return work{}, err
		}
		if s.lead {
			if err := setUp(db, "CREATE TABLE locks (name varchar(255) PRIMARY KEY, record_version_number bigint, data bytea, owner text)",
				"CREATE SEQUENCE locks_rvn"); err != nil {
				return work{}, err
			}
		}
		take := func(ctx context.Context, tx *sql.Tx, key string) (version int64, err error) {
			if err := tx.QueryRowContext(ctx, "SELECT nextval('locks_rvn')").Scan(&version); err != nil {
				return 0, err
			}
			return version, one(tx.ExecContext(ctx, `INSERT INTO locks AS l (name, record_version_number, data, owner)
				VALUES ($1, $2, NULL, $3) ON CONFLICT (name) DO UPDATE SET
				record_version_number = excluded.record_version_number, data = excluded.data, owner = excluded.owner
				WHERE l.record_version_number IS NULL`, key, version, "somebody"))
		}
		return work{call: func(ctx context.Context, caller int) error {
			key := keyOf(s, hot, caller)
			var version int64
			if err := insist(ctx, db, func(tx *sql.Tx) (err error) { version, err = take(ctx, tx, key); return err }); err != nil {
				return err
			}
			return insist(ctx, db, func(tx *sql.Tx) error {
				return one(tx.ExecContext(ctx, "UPDATE locks SET record_version_number = NULL WHERE name = $1 AND record_version_number = $2", key, version))
			})
		}}, nil
	}
}

// insist repeats a serializable transaction until it commits.
func insist(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	deadline := time.Now().Add(stillness)
	for {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
		if err != nil {
			return err
		}
		if err = do(tx); err == nil {
			err = tx.Commit()
		} else {
			_ = tx.Rollback()
		}
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(pollEvery)
	}
}
