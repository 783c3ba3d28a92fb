package tokens_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// hold prevents other writes to the ledger until release is called.
func hold(t *testing.T, b harness.Base, dsn string) (release func()) {
	t.Helper()
	conn, err := b.Raw(t, dsn).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	begin := []string{"BEGIN IMMEDIATE"}
	switch b.Dialect {
	case sqlfence.Postgres:
		begin = []string{"BEGIN; LOCK TABLE fencing_tokens IN EXCLUSIVE MODE"}
	case sqlfence.MySQL:
		begin = []string{"BEGIN", "INSERT INTO fencing_tokens VALUES ('', 0) ON DUPLICATE KEY UPDATE token = 0", "SELECT * FROM fencing_tokens FOR UPDATE"}
	}
	for _, text := range begin {
		if _, err := conn.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	return sync.OnceFunc(func() {
		if _, err := conn.ExecContext(context.Background(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestTokensOneStatementForEachCall(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if !b.Returns() {
			t.Skip("where an UPDATE returns no rows a call is a transaction")
		}
		ctx := t.Context()
		dsn := b.DSN(t)
		setupStore(t, b.Raw(t, dsn))
		db, c := b.Counted(t, dsn, sqlfence.WithTable("books"))
		store := harness.NewStore(t, db)
		if err := store.Adopt(ctx, sqlfence.Token{Name: "cups", Value: 2}); err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			name  string
			takes bool
			call  func() error
			want  error
		}{
			{"Issue", true, func() error { _, err := store.Issue(ctx, "books"); return err }, nil},
			{"IssueMany", true, func() error { _, err := store.IssueMany(ctx, "books", "cups"); return err }, nil},
			{"Ensure", false, func() error { return store.Ensure(ctx, "books", "pens") }, nil},
			{"Current", false, func() error { _, err := store.Current(ctx, "cups"); return err }, nil},
			{"Current, unknown", false, func() error { _, err := store.Current(ctx, "hats"); return err }, sqlfence.ErrUnknownName},
			{"Adopt", true, func() error { return store.Adopt(ctx, sqlfence.Token{Name: "books", Value: 100}) }, nil},
			{"Adopt, stale", true, func() error { return store.Adopt(ctx, sqlfence.Token{Name: "cups", Value: 1}) }, sqlfence.ErrStale},
		} {
			c.Reset()
			if err := test.call(); !errors.Is(err, test.want) {
				t.Errorf("%s: %v, want %v", test.name, err, test.want)
			}
			if got := c.Texts(); len(got) != 1 {
				t.Errorf("%s sent %q, want one statement", test.name, got)
			}
			// On SQLite taking tokens is a transaction, which fails inside an open transaction.
			if begins := slices.Contains(c.Kinds(), "begin"); begins != (b.Dialect == sqlfence.SQLite && test.takes) {
				t.Errorf("%s sent %v", test.name, c.Kinds())
			}
		}
	})
}

// waiting returns the number of goroutines in a call of Issue.
func waiting() int {
	stacks := make([]byte, 4<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "(*coalescer).issue(")
}

func TestTokensCoalesce(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		dsn := b.DSN(t)
		setupStore(t, b.Raw(t, dsn))
		db, c := b.Counted(t, dsn, sqlfence.WithTable("books"))
		store := harness.NewStore(t, db)
		release := hold(t, b, dsn)
		defer release()
		var wg sync.WaitGroup
		defer wg.Wait()
		var mu sync.Mutex
		seen := make(map[int64]bool)
		for range 64 {
			wg.Go(func() {
				token, err := store.Issue(t.Context(), "books")
				mu.Lock()
				defer mu.Unlock()
				if err != nil || seen[token.Value] {
					t.Errorf("Issue = %v, %v", token, err)
				}
				seen[token.Value] = true
			})
		}
		harness.Eventually(t, "all callers wait", func() bool { return waiting() == 64 })
		release()
		wg.Wait()
		// The first caller's statement, a shared statement, and statements that were sent because a statement was late: each
		// on a separate connection, which first queries the server's properties.
		if got := c.Texts(); len(got) > 32 {
			t.Errorf("64 callers sent %d statements", len(got))
		}
	})
}

func TestTokensNamesAreIndependent(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		store := setupStore(t, db)
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for want := int64(1); want <= 25; want++ {
					if got, err := store.Issue(t.Context(), fmt.Sprintf("books/%d", g)); err != nil || got.Value != want {
						t.Errorf("books/%d = %v, %v; want %d", g, got, err, want)
					}
				}
			})
		}
		wg.Wait()
	})
}
