package adopting_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/coverage"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// The coverage collector and the tables of the page's program.
var (
	seen   *coverage.Collector
	tables = []string{"books"}
)

func Open(driverName, dsn string) (*sql.DB, error) {
	opts := []sqlfence.Option{seen.Option(), sqlfence.WithMode(sqlfence.Observe)}
	for _, table := range tables {
		opts = append(opts, sqlfence.WithTable(table,
			sqlfence.RowFence("fence_token"), sqlfence.Resource("miniflux")))
	}
	return sqlfence.Open(driverName, dsn, opts...)
}

// withToken adds a source of tokens.
func withToken(ctx context.Context, store *tokens.Store, opts ...sqlfence.Option) ([]sqlfence.Option, error) {
	token, err := store.Issue(ctx, "miniflux")
	if err != nil {
		return nil, err
	}
	opts = append(opts, sqlfence.WithTokenSource(func(context.Context, []string) ([]sqlfence.Token, error) {
		return []sqlfence.Token{token}, nil
	}))
	return opts, nil
}

// A program without tokens is observed, gets a token, and then enforces one table after another.
func TestFromObserveToEnforce(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b)
		sh.Reset(t, 0)
		write := func(db *sql.DB, err error) error {
			harness.CloseAtEnd(t, db, err)
			_, err = db.ExecContext(t.Context(), "UPDATE books SET price = 20 WHERE id = 1")
			return err
		}
		want := func(guarded, observed int64) {
			t.Helper()
			if got := seen.Report().Tables; len(got) != 1 || got[0].Guarded != guarded || got[0].Observed != observed {
				t.Errorf("counted %+v, want %d guarded and %d observed", got, guarded, observed)
			}
		}

		seen = coverage.New()
		if err := write(Open(b.DriverName, sh.Source)); err != nil {
			t.Error(err)
		}
		want(0, 1)

		store, err := tokens.New(sh.Plain)
		if err == nil {
			err = store.Setup(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, stage := range []struct {
			mode sqlfence.Mode
			own  []sqlfence.Rule
		}{
			{sqlfence.Observe, nil},
			{sqlfence.Observe, []sqlfence.Rule{sqlfence.InMode(sqlfence.Enforce)}},
			{sqlfence.Enforce, nil},
		} {
			seen = coverage.New()
			opts, err := withToken(t.Context(), store, seen.Option(), sqlfence.WithMode(stage.mode),
				sqlfence.WithTable("books", append(stage.own, sqlfence.RowFence("fence_token"), sqlfence.Resource("miniflux"))...))
			if err != nil {
				t.Fatal(err)
			}
			if err := write(sqlfence.Open(b.DriverName, sh.Source, opts...)); err != nil {
				t.Error(err)
			}
			want(1, 0)
		}

		// A process that still has the token of an earlier process's run must be refused.
		late := sqlfence.WithTokenSource(func(context.Context, []string) ([]sqlfence.Token, error) {
			return []sqlfence.Token{{Name: "miniflux", Value: 1}}, nil
		})
		err = write(sqlfence.Open(b.DriverName, sh.Source, late,
			sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Resource("miniflux"))))
		if !errors.Is(err, sqlfence.ErrStale) {
			t.Errorf("%v, want ErrStale", err)
		}
	})
}
