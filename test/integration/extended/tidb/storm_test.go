package tidb_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// attempts returns the number of stale writes in a storm. SQLFENCE_TIDB_ATTEMPTS sets another number.
func attempts(t *testing.T) int64 {
	t.Helper()
	n := int64(2000)
	if v := os.Getenv("SQLFENCE_TIDB_ATTEMPTS"); v != "" {
		var err error
		if n, err = strconv.ParseInt(v, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// A storm is a holder that writes under ever newer tokens, and concurrent writers under stale tokens.
type storm struct {
	newest                         atomic.Int64 // the newest token under which all rows have been written
	stale, landed, refused, gaveUp atomic.Int64
	racing                         atomic.Int64 // writes under the token that was the newest when they were sent
}

// A named database has the name of its session variables.
type named struct {
	*sql.DB
	session string
}

// stormy are the writers' statements. The argument is the token's value.
var stormy = []string{
	"UPDATE books SET price = ? WHERE id = 1",
	"UPDATE books SET price = ? WHERE isbn = 'b'",
	"UPDATE books SET price = ?",
	"UPDATE books SET price = ? WHERE price + 0 >= 0 ORDER BY id LIMIT 2",
	"INSERT INTO books (id, price) VALUES (2, ?) ON DUPLICATE KEY UPDATE price = VALUES(price)",
	"DELETE FROM books WHERE id = 3 AND ? > 0",
}

// Writers send stale writes of every kind, in every session mode, while a holder writes under ever newer tokens. No
// stale write may land.
func TestStorm(t *testing.T) {
	dsn, plain := setup(t)
	reset(t, plain)
	var dbs []named
	for _, s := range slices.Concat(sessions, others) {
		if db := s.fence(t, dsn, sqlfence.RowFence("fence_token")); db != nil {
			dbs = append(dbs, named{db, s.name})
		}
	}
	s, want := new(storm), attempts(t)
	s.newest.Store(4)
	var writers, holder sync.WaitGroup
	over := make(chan struct{})
	holder.Go(func() { s.hold(t, dbs[0].DB, over) })
	for seed := range 8 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(seed)))
			for s.stale.Load() < want && !t.Failed() {
				s.write(t, random, dbs[random.IntN(len(dbs))])
			}
		})
	}
	writers.Wait()
	close(over)
	holder.Wait()
	var apart int
	if err := plain.QueryRow("SELECT COUNT(*) FROM books WHERE price <> fence_token").Scan(&apart); err != nil || apart > 0 {
		t.Errorf("%d rows have the price of another token: %v", apart, err)
	}
	if s.landed.Load() > 0 {
		t.Errorf("%d STALE WRITES LANDED", s.landed.Load())
	}
	t.Logf("%d stale attempts, %d landed, %d refused, %d given up; %d racing ones; the newest token is %d", s.stale.Load(),
		s.landed.Load(), s.refused.Load(), s.gaveUp.Load(), s.racing.Load(), s.newest.Load())
}

// hold repeatedly writes all rows under a new token. It also inserts rows again that a writer may have deleted.
func (s *storm) hold(t *testing.T, db *sql.DB, over chan struct{}) {
	for value := s.newest.Load() + 1; !t.Failed(); value++ {
		select {
		case <-over:
			return
		default:
		}
		ctx := holding(value)
		err := sqlfence.Retry(ctx, db, sqlfence.RetryOptions{Attempts: 1000}, func(ctx context.Context, tx *sql.Tx) error {
			for id, isbn := range []string{"a", "b", "c"} {
				if _, err := tx.ExecContext(ctx, "INSERT INTO books (id, isbn, price) VALUES (?, ?, ?) "+
					"ON DUPLICATE KEY UPDATE price = VALUES(price)", id+1, isbn, value); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("the holder: %v", err)
			return
		}
		s.newest.Store(value)
	}
}

// write writes under one of the latest tokens, outside a transaction or in one. The transaction may read before the
// write.
func (s *storm) write(t *testing.T, random *rand.Rand, db named) {
	query, inTx, reads := stormy[random.IntN(len(stormy))], random.IntN(3) == 0, random.IntN(2) == 0
	newest := s.newest.Load()
	value := max(newest-random.Int64N(4), 4)
	ctx := holding(value)
	changed, err := writeOnce(ctx, db.DB, query, value, inTx, reads)
	if value == newest {
		s.racing.Add(1)
		return
	}
	s.stale.Add(1)
	switch {
	case err == nil && changed > 0:
		s.landed.Add(1)
		t.Errorf("%s, in a transaction: %v, behind a read: %v: %s under %d, behind %d, changed %d: A STALE WRITE LANDED", db.session, inTx, inTx && reads, query, value, newest, changed)
	case err == nil: // the row was deleted
	case errors.Is(err, sqlfence.ErrStale):
		s.refused.Add(1)
	case gaveUp(err):
		s.gaveUp.Add(1)
	default:
		t.Errorf("%s: %v", query, err)
	}
}

func writeOnce(ctx context.Context, db *sql.DB, query string, value int64, inTx, reads bool) (changed int64, err error) {
	if !inTx {
		r, err := db.ExecContext(ctx, query, value)
		if err != nil {
			return 0, err
		}
		return r.RowsAffected()
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	if reads {
		var n sql.NullInt64
		if err := tx.QueryRowContext(ctx, "SELECT SUM(price) FROM books").Scan(&n); err != nil {
			return 0, err
		}
	}
	r, err := tx.ExecContext(ctx, query, value)
	if err != nil {
		return 0, err
	}
	if changed, err = r.RowsAffected(); err != nil {
		return 0, err
	}
	return changed, tx.Commit()
}
