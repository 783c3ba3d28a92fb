package tokens_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

func TestTokensLimit(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		ctx := t.Context()
		store := setupStore(t, db, tokens.WithLogger(slog.New(slog.DiscardHandler)))
		adopt := func(value int64) {
			t.Helper()
			if err := store.Adopt(ctx, sqlfence.Token{Name: "books", Value: value}); err != nil {
				t.Fatal(err)
			}
		}
		adopt(sqlfence.MaxToken - 20)
		var issued atomic.Int64
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				token, err := store.Issue(ctx, "books")
				switch {
				case err == nil && token.Value <= sqlfence.MaxToken:
					issued.Add(1)
				case !errors.Is(err, sqlfence.ErrTokenLimit):
					t.Errorf("Issue = %v, %v", token, err)
				}
			})
		}
		wg.Wait()
		if got := issued.Load(); got != 20 {
			t.Errorf("%d tokens issued, 20 were left", got)
		}
		adopt(sqlfence.MaxToken)
		harness.WantLedger(t, db, fmt.Sprintf("books=%d", int64(sqlfence.MaxToken)))

		harness.MustExec(t, db, "UPDATE fencing_tokens SET token = 9223372036854775807 WHERE name = 'books'")
		if _, err := store.Issue(ctx, "books"); !errors.Is(err, sqlfence.ErrTokenLimit) {
			t.Errorf("Issue over the limit: %v", err)
		}
		if _, err := store.Current(ctx, "books"); !errors.Is(err, sqlfence.ErrTokenLimit) {
			t.Errorf("Current over the limit: %v", err)
		}
		harness.WantLedger(t, db, "books=9223372036854775807")

		harness.MustExec(t, db, "UPDATE fencing_tokens SET token = -5 WHERE name = 'books'")
		if _, err := store.Issue(ctx, "books"); err == nil || !strings.Contains(err.Error(), "negative token -5") {
			t.Errorf("Issue of a negative token: %v", err)
		}
		if _, err := store.Current(ctx, "books"); err == nil || !strings.Contains(err.Error(), "negative token -5") {
			t.Errorf("Current of a negative token: %v", err)
		}
		harness.WantLedger(t, db, "books=-5")
	})
}

func TestTokensWarnNearTheLimit(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		store := setupStore(t, db, tokens.WithLogger(logger))
		if err := store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: sqlfence.WarnToken - 2}); err != nil {
			t.Fatal(err)
		}
		harness.IssueToken(t, store, "books")
		if log.Len() > 0 {
			t.Errorf("logged %q below WarnToken", &log)
		}
		harness.IssueToken(t, store, "books")
		if got := log.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, "name=books token=90000000000000 limit=900000000000000") {
			t.Errorf("logged %q at WarnToken", got)
		}
	})
}
