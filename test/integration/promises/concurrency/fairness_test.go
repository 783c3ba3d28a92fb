package concurrency_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// Issue gets its turn among holders whose transactions overlap without a gap: a writer that comes after the call of
// Issue gets its turn after it.
//
// One of two transactions is always open. If writers took no turns, each write would share the lock of the ledger's row
// with the open transaction and go on at once, and Issue would wait as long as there are such writers.
func TestG2LedgerIssueGetsItsTurn(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("SQLite has one writer")
		}
		sh := harness.Setting{Base: b}.Shop(t, sqlfence.Ledger())
		sh.Reset(t, 1)
		store, err := tokens.New(sh.Plain)
		if err != nil {
			t.Fatal(err)
		}
		ctx := harness.Holding(t, 1)
		write := func(id int) (tx *sql.Tx, err error) {
			if tx, err = sh.DB.BeginTx(ctx, nil); err != nil {
				t.Fatal(err)
			}
			_, err = tx.ExecContext(ctx, "UPDATE books SET price = price + 1 WHERE id = $1", id)
			return tx, err
		}
		open, err := write(1)
		if err != nil {
			t.Fatal(err)
		}
		issued := make(chan error, 1)
		go func() {
			_, err := store.Issue(ctx, "books")
			issued <- err
		}()
		<-waiters(t, sh, 1) // Issue waits for the open transaction

		type written struct {
			tx  *sql.Tx
			err error
		}
		next := make(chan written, 1)
		go func() {
			tx, err := write(2)
			next <- written{tx, err}
		}()
		var w written
		select {
		case w = <-next:
			t.Error("a write that came after the call of Issue went ahead of it")
		case <-waiters(t, sh, 2):
			if err := open.Commit(); err != nil {
				t.Error(err)
			}
			w = <-next
			if !errors.Is(w.err, sqlfence.ErrStale) {
				t.Errorf("the write behind Issue: %v, want ErrStale", w.err)
			}
		}
		_ = open.Rollback()
		_ = w.tx.Rollback()
		if err := <-issued; err != nil {
			t.Error(err)
		}
	})
}

// waiters closes the channel when n sessions of the database wait for a lock.
func waiters(t *testing.T, sh *harness.Shop, n int) <-chan struct{} {
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		for t.Context().Err() == nil {
			var waiting int
			err := sh.Plain.QueryRow("SELECT count(DISTINCT l.pid) FROM pg_locks l JOIN pg_stat_activity a USING (pid) " +
				"WHERE NOT l.granted AND a.datname = current_database() AND a.query LIKE '%fencing_tokens%'").Scan(&waiting)
			if err != nil || waiting >= n {
				return
			}
		}
	}()
	return seen
}
