package setup_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/changes"
	"github.com/sqlfence/sqlfence/internal/test/random"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Whenever the context of a call ends, the call's error is the context's error. After this error neither database/sql
// nor the caller tries again.
func TestErrorsAreTheContextsWhereItHasEnded(t *testing.T) {
	rounds := random.Rounds(t, 150)
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		store := harness.NewStore(t, s.DB)
		if err := store.Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
		token, err := store.Issue(t.Context(), "books")
		if err != nil {
			t.Fatal(err)
		}
		counter, err := changes.New(s.DB)
		if err != nil {
			t.Fatal(err)
		}
		manager, err := rowlock.NewManager(s.DB)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(manager.Setup(t.Context()), counter.Setup(t.Context(), "books")); err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(random.Seed(t), 1))
		for name, call := range map[string]func(ctx context.Context) error{
			"Ensure":  func(ctx context.Context) error { return store.Ensure(ctx, "books", "pens") },
			"Current": func(ctx context.Context) error { _, err := store.Current(ctx, "books"); return err },
			"Check":   func(ctx context.Context) error { return store.Check(ctx, token) },
			"Adopt":   func(ctx context.Context) error { return store.Adopt(ctx, token) },
			"Issue":   func(ctx context.Context) error { _, err := store.Issue(ctx, "others"); return err },
			"IssueMany": func(ctx context.Context) error {
				_, err := store.IssueMany(ctx, "others", "more")
				return err
			},
			"List": func(ctx context.Context) error {
				for _, err := range store.List(ctx, "") {
					if err != nil {
						return err
					}
				}
				return nil
			},
			"Delete": func(ctx context.Context) error { _, err := store.Delete(ctx, "nothing"); return err },
			"Setup":  store.Setup,
			"RecordIssuers": func(ctx context.Context) error {
				if b.Dialect == sqlfence.SQLite {
					return nil
				}
				return store.RecordIssuers(ctx)
			},
			"AddFence":      func(ctx context.Context) error { return schema.AddFence(ctx, s.DB, "books", "fence_token") },
			"Manager.Setup": manager.Setup,
			"Manager.Locks": func(ctx context.Context) error { _, err := manager.Locks(ctx, rowlock.Filter{}); return err },
			"Count":         func(ctx context.Context) error { _, err := counter.Count(ctx, "books"); return err },
		} {
			t.Run(name, func(t *testing.T) {
				_ = call(t.Context())
				began := time.Now()
				_ = call(t.Context())
				took := time.Since(began)
				for range rounds {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.Int64N(int64(took)+1)))
					err := call(ctx)
					ended := ctx.Err()
					cancel()
					if err == nil || ended == nil {
						continue
					}
					for _, of := range []error{driver.ErrBadConn, sql.ErrTxDone, sql.ErrConnDone} {
						if errors.Is(err, of) || !errors.Is(err, ended) {
							t.Fatalf("%v, want %v", err, ended)
						}
					}
				}
			})
		}
	})
}
