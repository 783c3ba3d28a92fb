package vitess_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// attempts returns the number of stale writes in a storm. SQLFENCE_VITESS_ATTEMPTS sets another number.
func attempts(t *testing.T) int64 {
	t.Helper()
	v := os.Getenv("SQLFENCE_VITESS_ATTEMPTS")
	if v == "" {
		return 2000
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A storm is a holder that writes under ever newer tokens, and concurrent writers under stale tokens.
type storm struct {
	newest                                        atomic.Int64 // the newest token under which all rows have been written
	stale, landed, refused, gaveUp, unknown, held atomic.Int64
}

// stormy are the writers' statements. The argument is the token's value.
var stormy = []string{
	"UPDATE books SET price = ? WHERE id = 1",
	"UPDATE books SET price = ? WHERE isbn = 'b'",
	"UPDATE books SET price = ?",
	"UPDATE books SET price = ? WHERE price + 0 >= 0 ORDER BY id LIMIT 2",
	"INSERT INTO books (id, price) VALUES (4, ?) ON DUPLICATE KEY UPDATE price = VALUES(price)",
	"DELETE FROM books WHERE id = 4 AND ? > 0",
}

// Writers send stale writes while a holder writes under ever newer tokens, and the servers of the shards end sessions with
// open transactions. No stale write may land. Two transactions that wait for each other in different shards are no
// deadlock for MySQL, so waits for locks end after a second.
func TestStorm(t *testing.T) {
	for _, keyspace := range keyspaces {
		t.Run(keyspace, func(t *testing.T) {
			_, plain := setup(t, keyspace)
			reset(t, plain)
			db := fence(t, in(t, keyspace, map[string]string{"innodb_lock_wait_timeout": "1"}), sqlfence.RowFence("fence_token"))
			s, want := new(storm), attempts(t)
			s.newest.Store(4)
			var writers, others sync.WaitGroup
			over := make(chan struct{})
			others.Go(func() { s.hold(t, db, over) })
			if server := os.Getenv("SQLFENCE_VITESS_MYSQL"); server != "" {
				others.Go(func() { killOften(t, open(t, server), over) })
			}
			for seed := range 8 {
				writers.Go(func() {
					random := rand.New(rand.NewPCG(1, uint64(seed)))
					for s.stale.Load() < want && !t.Failed() {
						s.write(t, random, db)
					}
				})
			}
			writers.Wait()
			close(over)
			others.Wait()
			var apart int
			if err := plain.QueryRow("SELECT COUNT(*) FROM books WHERE price <> fence_token").Scan(&apart); err != nil || apart > 0 {
				t.Errorf("%d rows have the price of another token: %v", apart, err)
			}
			t.Logf("%d stale attempts, %d landed, %d refused, %d given up, %d without a known outcome; the holder wrote %d times",
				s.stale.Load(), s.landed.Load(), s.refused.Load(), s.gaveUp.Load(), s.unknown.Load(), s.held.Load())
		})
	}
}

// killOften ends sessions of the servers behind vtgate that have written, until over is closed. MySQL renews the table of
// transactions only if nobody has read the table for 100 ms.
func killOften(t *testing.T, server *sql.DB, over chan struct{}) {
	killed, often := 0, time.NewTicker(200*time.Millisecond)
	defer often.Stop()
	for {
		select {
		case <-over:
			t.Logf("%d sessions were ended", killed)
			return
		case <-often.C:
		}
		var id int64
		if err := server.QueryRow("SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_rows_modified > 0 " +
			"AND trx_mysql_thread_id > 0 LIMIT 1").Scan(&id); err != nil {
			continue
		}
		if _, err := server.Exec("KILL " + strconv.FormatInt(id, 10)); err == nil {
			killed++
		}
	}
}

// unsure reports whether a shard was lost.
func unsure(err error) bool {
	return errors.Is(err, sqlfence.ErrUnknownOutcome) || number(err) == 2013 || number(err) == 2006 || number(err) == 1105 || number(err) == 1317
}

// hold repeatedly writes all rows under a new token, until each row has that token.
func (s *storm) hold(t *testing.T, db *sql.DB, over chan struct{}) {
	for value := s.newest.Load() + 1; !t.Failed(); value++ {
		for {
			select {
			case <-over:
				return
			default:
			}
			_, err := db.ExecContext(holding(value), "INSERT INTO books (id, isbn, price) VALUES (1, 'a', ?), (2, 'b', ?), (4, 'c', ?) "+
				"ON DUPLICATE KEY UPDATE price = VALUES(price)", value, value, value)
			if err == nil {
				break
			}
			if !gaveUp(err) && !unsure(err) {
				t.Errorf("the holder: %v", err)
				return
			}
		}
		s.held.Add(1)
		s.newest.Store(value)
	}
}

// write writes under a token that isn't the newest, outside a transaction or in one.
func (s *storm) write(t *testing.T, random *rand.Rand, db *sql.DB) {
	query, inTx := stormy[random.IntN(len(stormy))], random.IntN(3) == 0
	value := s.newest.Load() - 1 - random.Int64N(3)
	changed, err := writeOnce(holding(max(value, 1)), db, query, value, inTx)
	s.stale.Add(1)
	switch {
	case err == nil && changed > 0:
		s.landed.Add(1)
		t.Errorf("%s, in a transaction: %v, under %d: A STALE WRITE LANDED", query, inTx, value)
	case err == nil: // the row was deleted
	case errors.Is(err, sqlfence.ErrStale):
		s.refused.Add(1)
	case gaveUp(err):
		s.gaveUp.Add(1)
	case unsure(err):
		s.unknown.Add(1)
	default:
		t.Errorf("%s: %v", query, err)
	}
}

func writeOnce(ctx context.Context, db *sql.DB, query string, value int64, inTx bool) (changed int64, err error) {
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
	r, err := tx.ExecContext(ctx, query, value)
	if err != nil {
		return 0, err
	}
	if changed, err = r.RowsAffected(); err != nil {
		return 0, err
	}
	return changed, tx.Commit()
}
