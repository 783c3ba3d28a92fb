package adopting_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// Observe mode executes all statements of a program, and logs the statements that Enforce mode would refuse.
func TestObserve(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b)
		sh.Reset(t, 9)
		var out bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: untimed}))
		var db *sql.DB
		open := func(mode sqlfence.Mode) (err error) {
			driverName, dsn := b.DriverName, sh.Source
			db, err = sqlfence.Open(driverName, dsn,
				sqlfence.WithTable("books", sqlfence.RowFence("fence_token")),
				sqlfence.WithMode(mode),
				sqlfence.WithLogger(logger))
			harness.CloseAtEnd(t, db, err)
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
				_, err := db.ExecContext(write.ctx, write.query)
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
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		onPage(t, lines[0])
		wants := []string{"no fencing token", "stale fencing token", "statement can't be guarded"}
		if len(lines) != len(wants) {
			t.Fatalf("the log has\n%s", &out)
		}
		for i, want := range wants {
			if !strings.Contains(lines[i], "would refuse") || !strings.Contains(lines[i], want) {
				t.Errorf("the log has %s, want %s", lines[i], want)
			}
			onPage(t, "`"+want+"`")
		}

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
			token, err := store.Issue(ctx, "books") // makes earlier tokens of this name stale
			if err != nil {
				return err
			}
			ctx = sqlfence.WithFence(ctx, token)

			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			// Exec has no context. It presents the token of BeginTx.
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
