package adopting_test

import (
	"bytes"
	"context"
	"errors"
	"expvar"
	"log/slog"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// counting returns an observer that counts what became of statements, and why.
func counting(counts *expvar.Map) sqlfence.Observer {
	return func(_ context.Context, e sqlfence.Event) {
		counts.Add(e.Kind.String()+" "+why(e.Err), 1)
	}
}

func why(err error) string {
	switch {
	case err == nil: // bypassed
		return ""
	case errors.Is(err, sqlfence.ErrStale):
		return "stale"
	case errors.Is(err, sqlfence.ErrNotIssued), errors.Is(err, sqlfence.ErrUnknownName):
		return "not issued"
	case errors.Is(err, sqlfence.ErrNoFence), errors.Is(err, sqlfence.ErrOutOfScope):
		return "no token"
	case errors.Is(err, sqlfence.ErrUnguardable):
		return "unguardable"
	case errors.Is(err, sqlfence.ErrNotSetUp):
		return "not set up"
	}
	return "other"
}

// Observe mode lets a program run as it is, and tells what would have been refused.
func TestObserve(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b)
		sh.Reset(t, 9)
		var out bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: untimed}))
		counts := new(expvar.Map)
		open := func(mode sqlfence.Mode) (err error) {
			driverName, dsn := b.DriverName, sh.Source
			sh.DB, err = sqlfence.Open(driverName, dsn,
				sqlfence.WithTable("books", sqlfence.RowFence("fence_token")),
				sqlfence.WithMode(mode),
				sqlfence.WithLogger(logger),
				sqlfence.WithObserver(counting(counts)))
			harness.CloseAtEnd(t, sh.DB, err)
			return err
		}
		writes := func() (errs []error) {
			for _, write := range []struct {
				ctx   context.Context
				query string
			}{
				{t.Context(), "UPDATE books SET price = 20 WHERE id = 1"},
				{harness.Holding(t, 7), "UPDATE books SET price = 20 WHERE id = 1"},
				{harness.Holding(t, 9), "ALTER TABLE books ADD COLUMN pages bigint"},
			} {
				_, err := sh.DB.ExecContext(write.ctx, write.query)
				errs = append(errs, err)
			}
			return errs
		}

		if err := open(sqlfence.Observe); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(writes()...); err != nil {
			t.Errorf("Observe mode refuses: %v", err)
		}
		onPage(t, out.String())
		if got, want := counts.String(), `{"would refuse no token": 1, "would refuse stale": 1, "would refuse unguardable": 1}`; got != want {
			t.Errorf("counted %s, want %s", got, want)
		}
		onPage(t, counts.String())

		if err := open(sqlfence.Enforce); err != nil {
			t.Fatal(err)
		}
		for i, want := range []error{sqlfence.ErrNoFence, sqlfence.ErrStale, sqlfence.ErrUnguardable} {
			if err := writes()[i]; !errors.Is(err, want) {
				t.Errorf("err = %v, want %v", err, want)
			}
		}
	})
}

func untimed(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// A transaction's statements need no context of their own.
func TestTransaction(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b, sqlfence.RowFence("fence_token"), sqlfence.Ledger())
		sh.Reset(t, 0)
		ctx, db := t.Context(), sh.DB
		write := func() error {
			store, err := tokens.New(db)
			if err != nil {
				return err
			}
			token, err := store.Issue(ctx, "books") // who takes over takes a token
			if err != nil {
				return err
			}
			ctx := sqlfence.WithFence(ctx, token)

			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			// Code that has no context uses the token of BeginTx.
			if _, err = tx.Exec("UPDATE books SET price = $1 WHERE id = $2", 30, 1); err != nil {
				return err
			}
			return tx.Commit()
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if got := sh.State(t, true); got != "1:30@1 2:10@0 3:10@0" {
			t.Errorf("the books are %s", got)
		}
	})
}
