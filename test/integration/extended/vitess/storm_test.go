package vitess_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

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
	newest                              atomic.Int64 // the newest token under which all rows have been written
	landed, refused, gaveUp, absent     atomic.Int64
	unknown, unserved, held, heldUnsure atomic.Int64
	// violation is called for a broken promise: t.Errorf, unless a test plants a violation.
	violation func(format string, args ...any)
}

// newStorm returns a storm on new rows.
func newStorm(t *testing.T, plain *sql.DB, violation func(format string, args ...any)) *storm {
	t.Helper()
	reset(t, plain)
	exec(t, plain, "UPDATE books SET price = fence_token")
	s := &storm{violation: violation}
	s.newest.Store(4)
	return s
}

// stale returns how many stale writes have a known outcome.
func (s *storm) stale() int64 {
	return s.landed.Load() + s.refused.Load() + s.gaveUp.Load() + s.absent.Load()
}

// stormy are the writers' statements. The argument is the token's value. The first ones write to one shard.
var stormy = []string{
	"UPDATE books SET price = ? WHERE id = 1",
	"UPDATE books SET price = ? WHERE id IN (1, 2)",
	"INSERT INTO books (id, price) VALUES (4, ?) ON DUPLICATE KEY UPDATE price = VALUES(price)",
	"DELETE FROM books WHERE id = 4 AND ? > 0",
	"UPDATE books SET price = ? WHERE isbn = 'b'",
	"UPDATE books SET price = ?",
	"UPDATE books SET price = ? WHERE price + 0 >= 0 ORDER BY id LIMIT 2",
}

const toOneShard = 4

// statement returns a random statement. Only one in 12 writes to several shards, because two transactions that wait for
// each other in different shards are no deadlock for MySQL, and wait until the lock timeout, which is a second.
func statement(random *rand.Rand) string {
	if random.IntN(12) > 0 {
		return stormy[random.IntN(toOneShard)]
	}
	return stormy[toOneShard+random.IntN(len(stormy)-toOneShard)]
}

// fenceForStorm opens a fenced database whose waits for locks are short.
func fenceForStorm(t *testing.T, keyspace string) *sql.DB {
	return fence(t, in(t, keyspace, map[string]string{"innodb_lock_wait_timeout": "1"}), sqlfence.RowFence("fence_token"))
}

// Writers send stale writes while a holder writes under ever newer tokens, sessions with open transactions are ended, and
// MySQL and vtcombo are killed in turn. No stale write may land.
func TestStorm(t *testing.T) {
	for _, keyspace := range keyspaces {
		t.Run(keyspace, func(t *testing.T) {
			_, plain := setup(t, keyspace)
			db := fenceForStorm(t, keyspace)
			s, want, began := newStorm(t, plain, t.Errorf), attempts(t), time.Now()
			var writers, others sync.WaitGroup
			over := make(chan struct{})
			others.Go(func() { s.hold(t, db, plain, over) })
			if server := os.Getenv("SQLFENCE_VITESS_MYSQL"); server != "" {
				others.Go(func() { killOften(t, open(t, server), over) })
			}
			k := newKiller(t, plain, s.stale)
			others.Go(func() { k.run(over) })
			for seed := range 8 {
				writers.Go(func() {
					random := rand.New(rand.NewPCG(1, uint64(seed)))
					for (s.stale() < want || !k.done()) && !t.Failed() {
						s.write(t, statement(random), random.IntN(3) == 0, db)
					}
				})
			}
			writers.Wait()
			close(over)
			others.Wait()
			if err := s.check(plain); err != nil {
				t.Error(err)
			}
			t.Logf("%d stale attempts in %v, %d landed, %d refused, %d given up, %d met no row; besides, %d without a known outcome and "+
				"%d without a server; the holder wrote %d times, and %d times without a known outcome; %v", s.stale(),
				time.Since(began).Round(time.Second), s.landed.Load(), s.refused.Load(), s.gaveUp.Load(), s.absent.Load(),
				s.unknown.Load(), s.unserved.Load(), s.held.Load(), s.heldUnsure.Load(), k)
		})
	}
}

// The storm must detect a stale write that sqlfence doesn't guard: by its result, by the row, and by the missing row.
func TestStormDetectsPlantedViolations(t *testing.T) {
	for _, keyspace := range keyspaces {
		_, plain := setup(t, keyspace)
		db := fenceForStorm(t, keyspace)
		for name, plant := range map[string]func(s *storm){
			"unguarded":        func(s *storm) { s.write(t, stormy[0], false, plain) },
			"in a transaction": func(s *storm) { s.write(t, stormy[5], true, plain) },
			"stale row":        func(*storm) { exec(t, plain, "UPDATE books SET price = 5, fence_token = 5 WHERE id = 4") },
			"price only":       func(*storm) { exec(t, plain, "UPDATE books SET price = 5 WHERE id = 2") },
			"deleted":          func(*storm) { exec(t, plain, "DELETE FROM books WHERE id = 1") },
			"nothing":          func(s *storm) { s.write(t, stormy[0], false, db) },
		} {
			var found []string
			s := newStorm(t, plain, func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) })
			if err := s.holdOnce(db, plain, 9); err != nil {
				t.Fatal(err)
			}
			plant(s)
			_ = s.holdOnce(db, plain, 10)
			if (len(found) > 0) != (name != "nothing") {
				t.Errorf("%s, %s: found %q", keyspace, name, found)
			}
		}
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

// unserved reports whether an error says that a server or the connection was lost, and the write wasn't committed.
func unserved(err error) bool {
	if errors.Is(err, sqlfence.ErrUnknownOutcome) {
		return false
	}
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) || errors.As(err, new(net.Error)) || errors.Is(err, io.EOF) {
		return true
	}
	// If one shard is lost and another one refuses, vtgate joins both errors, and sqlfence can't know the refusal.
	return slices.Contains([]uint16{1053, 1105, 1317, 2002, 2003, 2006, 2013, 3024}, number(err)) ||
		strings.Count(err.Error(), "target: ") > 1
}

// hold repeatedly writes all rows under a new token, until each row has that token.
func (s *storm) hold(t *testing.T, db, plain *sql.DB, over chan struct{}) {
	for value := s.newest.Load() + 1; !t.Failed(); value++ {
		for {
			select {
			case <-over:
				return
			default:
			}
			err := s.holdOnce(db, plain, value)
			if err == nil {
				break
			}
			switch {
			case errors.Is(err, sqlfence.ErrUnknownOutcome):
				s.heldUnsure.Add(1)
			case !gaveUp(err) && !unserved(err):
				t.Errorf("the holder: %v", err)
				return
			}
		}
		s.held.Add(1)
	}
}

// holdOnce checks the rows, and writes all of them under a token.
func (s *storm) holdOnce(db, plain *sql.DB, value int64) error {
	if err := s.check(plain); err != nil {
		return err
	}
	_, err := db.ExecContext(holding(value), "INSERT INTO books (id, isbn, price) VALUES (1, 'a', ?), (2, 'b', ?), (4, 'c', ?) "+
		"ON DUPLICATE KEY UPDATE price = VALUES(price)", value, value, value)
	if err == nil {
		s.newest.Store(value)
	}
	return err
}

// check checks that each row has the price and the token of the newest holder, or of a write without a known outcome
// under the holder's next token. Only the holder may call check while the storm lasts.
func (s *storm) check(plain *sql.DB) error {
	var rows, right int
	if err := plain.QueryRow("SELECT COUNT(*), COALESCE(SUM(price = fence_token AND fence_token IN (?, ? + 1)), 0) FROM books",
		s.newest.Load(), s.newest.Load()).Scan(&rows, &right); err != nil {
		return err
	}
	if rows != 3 || right != 3 {
		s.violation("%d of %d rows have what the holder wrote under %d: A STALE WRITE LANDED", right, rows, s.newest.Load())
	}
	return nil
}

// write writes under a token that isn't the newest, outside a transaction or in one.
func (s *storm) write(t *testing.T, query string, inTx bool, db *sql.DB) {
	value := max(s.newest.Load()-1-rand.Int64N(3), 1)
	changed, err := writeOnce(holding(value), db, query, value, inTx)
	switch {
	case err == nil && changed > 0:
		s.landed.Add(1)
		s.violation("%s, in a transaction: %v, under %d: A STALE WRITE LANDED", query, inTx, value)
	case err == nil:
		s.absent.Add(1)
	case errors.Is(err, sqlfence.ErrStale):
		s.refused.Add(1)
	case errors.Is(err, sqlfence.ErrUnknownOutcome):
		s.unknown.Add(1)
		time.Sleep(20 * time.Millisecond) // mostly there is no server
	case gaveUp(err):
		s.gaveUp.Add(1)
	case unserved(err):
		s.unserved.Add(1)
		time.Sleep(20 * time.Millisecond)
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
