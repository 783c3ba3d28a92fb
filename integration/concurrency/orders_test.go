package concurrency_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
)

// Three sessions: the holder of the older token writes in a transaction, the next holder issues a token and writes,
// and a client without sqlfence writes to the same row in a transaction.
const (
	older = iota
	newer
	client
)

// A step is a part of what a session does, and when it began and ended, in the order of all beginnings and ends.
type step struct {
	name       string
	do         func() error
	began, end atomic.Int64
	err        error
}

// before reports whether a step had ended when the other one began.
func (s *step) before(other *step) bool {
	return s.end.Load() != 0 && s.end.Load() < other.began.Load()
}

// orders are all orders of steps, as the numbers of their sessions, where session i has left[i] of them.
func orders(left ...int) (all [][]int) {
	for i := range left {
		if left[i] == 0 {
			continue
		}
		rest := slices.Clone(left)
		rest[i]--
		for _, order := range orders(rest...) {
			all = append(all, append([]int{i}, order...))
		}
	}
	if len(all) == 0 {
		return [][]int{nil}
	}
	return all
}

// In whatever order three sessions go on, what the older holder has written was committed before the newer token
// was issued, or it is refused: as stale, also where it breaks a constraint, or by its isolation level.
func TestG2EveryOrderOfThreeSessions(t *testing.T) {
	writes := slices.Concat(harness.RowWrites, []harness.Write{{Name: "wrong update", Query: "UPDATE books SET price = NULL WHERE id = $1", Args: []any{1}}})
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.Ledger())
		token := int64(8)
		sh.Reset(t, token)
		for _, w := range writes {
			if testing.Short() && s.Level != sql.LevelReadCommitted && w.Name != "update" {
				continue
			}
			landed, stale := 0, 0
			for _, order := range orders(3, 2, 2) {
				if testing.Short() && s.Level != sql.LevelReadCommitted && order[0] != older {
					continue // older snapshots are what differs
				}
				sh.Exec(t, "DELETE FROM books")
				sh.Exec(t, "INSERT INTO books (id, isbn) VALUES (1, 'i1')")
				ok := inOrder(t, sh, w, order, token)
				token++
				if ok {
					landed++
				} else {
					stale++
				}
			}
			if wrong := w.Name == "wrong update"; stale == 0 || (landed == 0) != wrong {
				t.Errorf("%s: %d landed, %d were refused", w.Name, landed, stale)
			}
		}
	})
}

// inOrder begins the steps in an order, each as soon as those before have ended or wait for a lock, and
// reports whether the older holder's write was committed.
func inOrder(t *testing.T, sh *harness.Shop, w harness.Write, order []int, token int64) bool {
	t.Helper()
	ctx := t.Context()
	var olderTx, clientTx *sql.Tx
	begin := &step{name: "begin", do: func() (err error) {
		if olderTx, err = sh.DB.BeginTx(harness.Holding(t, token), &sql.TxOptions{Isolation: sh.Level}); err != nil {
			return err
		}
		var n int
		return olderTx.QueryRowContext(ctx, "SELECT COUNT(*) FROM books").Scan(&n) // takes the snapshot, where there is one
	}}
	write := &step{name: "write", do: func() error {
		_, err := olderTx.ExecContext(harness.Holding(t, token), w.Query, w.Args...)
		return err
	}}
	commit := &step{name: "commit"}
	commit.do = func() error {
		if write.err != nil {
			return errors.Join(write.err, olderTx.Rollback())
		}
		return olderTx.Commit()
	}
	issue := &step{name: "issue", do: func() error { _, err := sh.Issue(ctx); return err }}
	next := &step{name: "newer write", do: func() error {
		_, err := sh.DB.ExecContext(harness.Holding(t, token+1), "UPDATE books SET price = 90 WHERE id = 1")
		return err
	}}
	touch := &step{name: "client's write", do: func() (err error) {
		if clientTx, err = sh.Plain.BeginTx(ctx, nil); err != nil {
			return err
		}
		_, err = clientTx.ExecContext(ctx, "UPDATE books SET writer = writer + 1 WHERE id = 1")
		return err
	}}
	leave := &step{name: "client's commit", do: func() error { return clientTx.Commit() }}
	steps := [][]*step{older: {begin, write, commit}, newer: {issue, next}, client: {touch, leave}}

	var clock atomic.Int64
	queues := make([]chan *step, len(steps))
	ended := make(chan struct{}, len(steps))
	for i := range steps {
		queues[i] = make(chan *step, len(steps[i]))
		go func() {
			defer func() { ended <- struct{}{} }()
			for s := range queues[i] {
				s.began.Store(clock.Add(1))
				s.err = s.do()
				s.end.Store(clock.Add(1))
			}
		}()
	}
	at := make([]int, len(steps))
	for _, i := range order {
		queues[i] <- steps[i][at[i]]
		at[i]++
		// Each session that has something to do waits for a lock, or for its own step before.
		harness.Eventually(t, "all wait", func() bool {
			open := 0
			for j := range steps {
				if at[j] > 0 && steps[j][at[j]-1].end.Load() == 0 {
					open++
				}
			}
			return open == 0 || sh.Waiting(t, sh.Plain) >= open
		})
	}
	for i := range queues {
		close(queues[i])
	}
	for range steps {
		<-ended
	}

	what := fmt.Sprintf("%s, order %v", w.Name, order)
	for _, s := range []*step{begin, issue, touch, leave} {
		if s.err != nil {
			t.Errorf("%s: %s: %v", what, s.name, s.err)
		}
	}
	var price sql.NullInt64
	if err := sh.Plain.QueryRowContext(context.WithoutCancel(ctx), "SELECT price FROM books WHERE id = 1").Scan(&price); err != nil && !errors.Is(err, sql.ErrNoRows) {
		t.Fatal(err)
	}
	switch {
	case commit.err == nil && issue.before(commit):
		t.Errorf("%s: A STALE WRITE LANDED", what)
	case next.err == nil && price.Int64 != 90 && !(w.Name == "delete" && !price.Valid && commit.err == nil):
		t.Errorf("%s: the newer holder's write is lost: %v", what, price)
	case next.err != nil && !harness.RefusedByIsolation(next.err):
		t.Errorf("%s: the newer holder: %v", what, next.err)
	}
	isolated := sh.Level > sql.LevelReadCommitted && !issue.before(begin)
	switch err := commit.err; {
	case err == nil, isolated && (harness.RefusedByIsolation(err) || harness.SQLState(err) == "23502"):
	case issue.before(write) || harness.SQLState(err) != "23502" && !harness.RefusedByIsolation(err):
		if !errors.Is(err, sqlfence.ErrStale) {
			t.Errorf("%s: %v, want ErrStale", what, err)
		}
	case sh.Level == sql.LevelReadCommitted && harness.RefusedByIsolation(err):
		t.Errorf("%s: %v", what, err)
	}
	return commit.err == nil
}
