package fencepgx_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/fencepgx"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// eachBeginner runs test with pgx's own pool, and with a fenced pool.
func eachBeginner(t *testing.T, test func(t *testing.T, s *shop, db fencepgx.Beginner, fenced bool)) {
	t.Helper()
	for _, mode := range harness.PgxModes {
		t.Run(mode.String(), func(t *testing.T) {
			s := newShopBy(t, sqlfence.Ledger(), inMode(mode))
			config, err := pgxpool.ParseConfig(s.Source)
			if err != nil {
				t.Fatal(err)
			}
			inMode(mode)(config)
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			t.Run("raw", func(t *testing.T) { test(t, s, pool, false) })
			t.Run("fenced", func(t *testing.T) { test(t, s, s.db, true) })
		})
	}
}

func TestHold(t *testing.T) {
	eachBeginner(t, func(t *testing.T, s *shop, db fencepgx.Beginner, _ bool) {
		store := harness.NewStore(t, s.db.SQL())
		var now []sqlfence.Token
		for _, name := range []string{"b", "a"} {
			now = append(now, sqlfence.Token{Name: name, Value: harness.IssueToken(t, store, name)})
		}
		ctx := sqlfence.WithFence(t.Context(), now...)
		begin := func() pgx.Tx {
			tx, err := db.BeginTx(t.Context(), pgx.TxOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return tx
		}
		tx := begin()
		if err := fencepgx.Hold(ctx, tx, store); err != nil {
			t.Fatal(err)
		}
		issued := harness.Go(func() error { _, err := store.Issue(t.Context(), "a"); return err })
		harness.Eventually(t, "Issue waits", func() bool {
			select {
			case <-issued.Ended():
				t.Fatal("Issue didn't wait")
			default:
			}
			var n int
			err := s.Plain.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()").Scan(&n)
			return err == nil && n > 0
		})
		if err := errors.Join(tx.Commit(t.Context()), issued.Wait()); err != nil {
			t.Fatal(err)
		}
		tx = begin()
		var stale *sqlfence.StaleError
		if err := fencepgx.Hold(ctx, tx, store); !errors.As(err, &stale) || stale.Token != now[1] {
			t.Errorf("%v", err)
		}
		_ = tx.Rollback(t.Context())
		if err := fencepgx.Hold(ctx, tx, store); err == nil {
			t.Error("held in a transaction that has ended")
		}
		harness.WantError(t, fencepgx.Hold(ctx, nil, store), sqlfence.ErrInvalid)
	})
}

// The rollback of a nested transaction releases the lock of a Hold in it.
func TestHoldInANestedTransaction(t *testing.T) {
	s := newShop(t, sqlfence.Ledger())
	store := harness.NewStore(t, s.db.SQL())
	now := sqlfence.Token{Name: "a", Value: harness.IssueToken(t, store, "a")}
	for _, rolled := range []bool{false, true} {
		tx, err := s.db.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		nested, err := tx.Begin(t.Context())
		if err == nil {
			err = fencepgx.Hold(t.Context(), nested, store, now)
		}
		if err != nil {
			t.Fatal(err)
		}
		if rolled {
			err = nested.Rollback(t.Context())
		} else {
			err = nested.Commit(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); rolled != (err != nil) || rolled && !strings.Contains(err.Error(), "SAVEPOINT") {
			t.Errorf("rolled back %v: %v", rolled, err)
		}
	}
}

// pgx sends all statements of a batch before the first response.
func TestBatchCannotEndAHeldTransaction(t *testing.T) {
	s := newShop(t, sqlfence.Ledger())
	store := harness.NewStore(t, s.db.SQL())
	now := sqlfence.Token{Name: "a", Value: harness.IssueToken(t, store, "a")}
	for _, last := range []string{"ROLLBACK TO x", "SAVEPOINT x", "COMMIT", "SELECT 1; COMMIT"} {
		tx, err := s.db.Begin(t.Context())
		if err == nil {
			_, err = tx.Exec(t.Context(), "SAVEPOINT x")
		}
		if err == nil {
			err = fencepgx.Hold(t.Context(), tx, store, now)
		}
		if err != nil {
			t.Fatal(err)
		}
		batch := new(pgx.Batch)
		batch.Queue("SELECT 1")
		batch.Queue(last)
		if err := tx.SendBatch(t.Context(), batch).Close(); !errors.Is(err, sqlfence.ErrUnguardable) {
			t.Errorf("%s: %v", last, err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Errorf("%s: %v", last, err)
		}
	}
}

func TestRetry(t *testing.T) {
	eachBeginner(t, func(t *testing.T, s *shop, db fencepgx.Beginner, _ bool) {
		store := harness.NewStore(t, s.db.SQL())
		now := sqlfence.Token{Name: "a", Value: harness.IssueToken(t, store, "a")}
		for level, wanted := range map[pgx.TxIsoLevel]int{pgx.RepeatableRead: 2, pgx.Serializable: 2, pgx.ReadCommitted: 1} {
			calls := 0
			err := fencepgx.Retry(t.Context(), db, func(ctx context.Context, tx pgx.Tx) error {
				calls++
				if _, err := tx.Exec(ctx, "SELECT token FROM fencing_tokens"); err != nil {
					return err
				}
				if calls == 1 { // the snapshot is older than the newest token
					now.Value = harness.IssueToken(t, store, "a")
				}
				return fencepgx.Hold(ctx, tx, store, now)
			}, pgx.TxOptions{IsoLevel: level})
			if err != nil || calls != wanted {
				t.Errorf("%s: %v after %d calls, want %d", level, err, calls, wanted)
			}
		}
		calls := 0
		err := fencepgx.Retry(t.Context(), db, func(ctx context.Context, tx pgx.Tx) error {
			calls++
			return fencepgx.Hold(ctx, tx, store, sqlfence.Token{Name: "a", Value: now.Value - 1})
		})
		if !errors.Is(err, sqlfence.ErrStale) || calls != 1 {
			t.Errorf("%v after %d calls", err, calls)
		}
	})
}
