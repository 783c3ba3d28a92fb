package tokens_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// setupStore is harness.NewStore after Setup.
func setupStore(t testing.TB, db *sql.DB, opts ...tokens.Option) *tokens.Store {
	t.Helper()
	store := harness.NewStore(t, db, opts...)
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

// blogTable creates the table of applications that follow the blog post.
func blogTable(t testing.TB, b harness.Base, db *sql.DB) {
	t.Helper()
	id := "integer NOT NULL PRIMARY KEY AUTOINCREMENT"
	if b.Dialect == sqlfence.Postgres {
		id = "serial PRIMARY KEY"
	}
	harness.MustExec(t, db, "CREATE TABLE fencing_tokens (id "+id+", name varchar(255), token integer DEFAULT 1)")
	harness.MustExec(t, db, "CREATE UNIQUE INDEX fencing_tokens_name_unique ON fencing_tokens (name)")
}

func TestTokensIssue(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		store := setupStore(t, db)
		for want := int64(1); want <= 3; want++ {
			if got := harness.IssueToken(t, store, "books"); got != want {
				t.Errorf("books = %d, want %d", got, want)
			}
		}
		if got := harness.IssueToken(t, store, "pens"); got != 1 {
			t.Errorf("pens = %d, want 1", got)
		}
		harness.WantLedger(t, db, "books=3", "pens=1")
		if err := store.Setup(t.Context()); err != nil {
			t.Errorf("second Setup: %v", err)
		}
		harness.WantLedger(t, db, "books=3", "pens=1")
	})
}

func TestTokensEnsureAndCurrent(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		ctx := t.Context()
		store := setupStore(t, db)
		if _, err := store.Current(ctx, "books"); !errors.Is(err, sqlfence.ErrUnknownName) {
			t.Errorf("Current of an unknown name: %v, want ErrUnknownName", err)
		}
		harness.IssueToken(t, store, "pens")
		for range 2 {
			if err := store.Ensure(ctx, "pens", "books", "pens"); err != nil {
				t.Fatal(err)
			}
			harness.WantLedger(t, db, "books=0", "pens=1")
		}
		if err := store.Ensure(ctx); err != nil {
			t.Errorf("Ensure of nothing: %v", err)
		}
		for name, want := range map[string]int64{"books": 0, "pens": 1} {
			if got, err := store.Current(ctx, name); err != nil || got != (sqlfence.Token{Name: name, Value: want}) {
				t.Errorf("Current = %v, %v; want %s:%d", got, err, name, want)
			}
		}
		if got := harness.IssueToken(t, store, "books"); got != 1 {
			t.Errorf("first token after Ensure = %d, want 1", got)
		}
	})
}

func TestTokensEnsureManyAtOnce(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		dsn := b.DSN(t)
		db := b.Raw(t, dsn)
		setupStore(t, db)
		// There are more names than a statement can have parameters, in both orders at once.
		names := make([]string, 33_000)
		if b.Dialect == sqlfence.Postgres {
			names = make([]string, 66_000)
		}
		for i := range names {
			names[i] = fmt.Sprintf("books/%d", i)
		}
		reversed := slices.Clone(names)
		slices.Reverse(reversed)
		var wg sync.WaitGroup
		for _, list := range [][]string{names, reversed} {
			wg.Go(func() {
				if err := harness.NewStore(t, b.Raw(t, dsn)).Ensure(t.Context(), list...); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := len(harness.LedgerRows(t, db)); got != len(names) {
			t.Errorf("%d names, want %d", got, len(names))
		}
	})
}

func TestTokensAdopt(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		ctx := t.Context()
		store := setupStore(t, db)
		adopt := func(value int64) error {
			return store.Adopt(ctx, sqlfence.Token{Name: "books", Value: value})
		}
		for _, value := range []int64{40, 40, 42} { // unknown name, equal, higher
			if err := adopt(value); err != nil {
				t.Fatalf("Adopt %d: %v", value, err)
			}
		}
		err := adopt(41)
		var stale *sqlfence.StaleError
		if !errors.Is(err, sqlfence.ErrStale) || !errors.As(err, &stale) {
			t.Fatalf("Adopt of a lower token: %v, want ErrStale", err)
		}
		if stale.Table != "fencing_tokens" || stale.Token != (sqlfence.Token{Name: "books", Value: 41}) || stale.Current != 42 {
			t.Errorf("stale = %+v", stale)
		}
		harness.WantLedger(t, db, "books=42")
		if got := harness.IssueToken(t, store, "books"); got != 43 {
			t.Errorf("token after Adopt = %d, want 43", got)
		}
		if err := adopt(0); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("Adopt of 0: %v, want ErrInvalid", err)
		}
		if err := adopt(sqlfence.MaxToken + 1); !errors.Is(err, sqlfence.ErrTokenLimit) {
			t.Errorf("Adopt over the limit: %v, want ErrTokenLimit", err)
		}
		harness.WantLedger(t, db, "books=43")
	})
}

func TestTokensBadNamesChangeNothing(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		ctx := t.Context()
		store := setupStore(t, db)
		for _, name := range []string{"", strings.Repeat("x", 1<<20), strings.Repeat("x", 513), "a\x00b", "a\xffb"} {
			_, issueErr := store.Issue(ctx, name)
			_, currentErr := store.Current(ctx, name)
			for what, err := range map[string]error{
				"Issue":   issueErr,
				"Current": currentErr,
				"Ensure":  store.Ensure(ctx, "good", name),
				"Adopt":   store.Adopt(ctx, sqlfence.Token{Name: name, Value: 1}),
			} {
				if !errors.Is(err, sqlfence.ErrInvalid) || len(err.Error()) > 200 {
					t.Errorf("%s of %.10q: %.300v; want a short ErrInvalid", what, name, err)
				}
			}
		}
		harness.WantLedger(t, db)
	})
}

func TestTokensOddNames(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		ctx := t.Context()
		store := setupStore(t, db)
		names := []string{
			"books", "Books", "books ", "ключ", "本🔒", "\u00e9", `a'b"c\d`, `\u0041`, "A",
			"$1", "?", ":a", "--", "/*", "%s", "<&>", "\u2028", "\t\r\n", "books/42", "\ufffd",
			strings.Repeat("x", 512), strings.Repeat("x", 511),
		}
		if err := store.Ensure(ctx, names...); err != nil {
			t.Fatal(err)
		}
		if got := len(harness.LedgerRows(t, db)); got != len(names) {
			t.Errorf("%d rows for %d names", got, len(names))
		}
		for i, name := range names {
			if err := store.Adopt(ctx, sqlfence.Token{Name: name, Value: int64(i) + 10}); err != nil {
				t.Fatal(err)
			}
		}
		for i, name := range names {
			if got := harness.IssueToken(t, store, name); got != int64(i)+11 {
				t.Errorf("token of %q = %d, want %d", name, got, i+11)
			}
			if got, err := store.Current(ctx, name); err != nil || got.Value != int64(i)+11 {
				t.Errorf("Current of %q = %v, %v", name, got, err)
			}
		}
		if got := len(harness.LedgerRows(t, db)); got != len(names) {
			t.Errorf("%d rows for %d names", got, len(names))
		}
	})
}
