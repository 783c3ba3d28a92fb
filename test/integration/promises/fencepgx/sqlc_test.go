package fencepgx_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/integration/promises/fencepgx/sqlcstore/store"
)

// Code that sqlc generates for pgx/v5 works with a fenced pool, and with a fenced transaction.
func TestSQLC(t *testing.T) {
	onFences(t, func(t *testing.T, s *shop) {
		set := store.SetPriceParams{Price: 30, ID: 1}
		for _, way := range []struct {
			name string
			run  func(ctx context.Context, q *store.Queries) error
		}{
			{"execrows", func(ctx context.Context, q *store.Queries) error {
				n, err := q.SetPrice(ctx, set)
				if err == nil && n != 1 {
					t.Errorf("%d rows", n)
				}
				return err
			}},
			{"one", func(ctx context.Context, q *store.Queries) error {
				price, err := q.RaisePrice(ctx, store.RaisePriceParams{Amount: 20, ID: 1})
				if err == nil && price != 30 {
					t.Errorf("price %d", price)
				}
				return err
			}},
			{"batchexec", func(ctx context.Context, q *store.Queries) (failed error) {
				q.SetPrices(ctx, []store.SetPricesParams{{Price: 20, ID: 1}, {Price: 30, ID: 1}}).Exec(func(_ int, err error) {
					if failed == nil {
						failed = err
					}
				})
				return failed
			}},
		} {
			s.staleThenFresh(t, way.name, func(ctx context.Context) error { return way.run(ctx, store.New(s.db)) })
			s.staleThenFresh(t, way.name+" in a transaction", func(ctx context.Context) error {
				return pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error { return way.run(ctx, store.New(s.db).WithTx(tx)) })
			})
		}
		unchanged := s.Unchanged(t)
		_, err := store.New(s.db).CopyBooks(t.Context(), []store.CopyBooksParams{{ID: 7, Price: 30}})
		if !errors.Is(err, sqlfence.ErrNoFence) && !errors.Is(err, sqlfence.ErrUnguardable) {
			t.Error(err)
		}
		unchanged()
		n, err := store.New(s.db).CopyBooks(harness.Holding(t, 12), []store.CopyBooksParams{{ID: 7, Price: 30}})
		if got := s.State(t, true); err == nil && (n != 1 || got != "1:30@9 2:10@9 3:10@9 7:30@12") {
			t.Errorf("copied %d, and left %s", n, got)
		}
		if err != nil && !errors.Is(err, sqlfence.ErrUnguardable) { // under Ledger
			t.Error(err)
		}
	})
}
