package tokens_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// list returns the tokens of all names that begin with prefix, as "name=token".
func list(t testing.TB, store *tokens.Store, prefix string) (found []string) {
	t.Helper()
	for token, err := range store.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, fmt.Sprintf("%s=%d", token.Name, token.Value))
	}
	return found
}

// List returns each name once, also on several pages, and none of the ledger's own rows.
func TestList(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		store := setupStore(t, db)
		wantIssued(t, list(t, store, ""))
		if _, err := store.Repair(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
		wantIssued(t, list(t, store, ""))
		if err := store.Ensure(t.Context(), "new"); err != nil {
			t.Fatal(err)
		}
		issueMany(t, store, "a%c", "abc", "a_c", "A", "\u00e9t\u00e9", "a'b")
		issueMany(t, store, "abc")
		sorted := func(prefix string) []string { return slices.Sorted(slices.Values(list(t, store, prefix))) }
		wantIssued(t, sorted(""), "A=6", "a%c=6", "a'b=6", "a_c=6", "abc=7", "new=0", "\u00e9t\u00e9=6")
		wantIssued(t, sorted("a"), "a%c=6", "a'b=6", "a_c=6", "abc=7")
		wantIssued(t, sorted("a_"), "a_c=6")
		wantIssued(t, sorted("a%"), "a%c=6")
		wantIssued(t, sorted("a'"), "a'b=6")
		wantIssued(t, sorted("abc"), "abc=7")
		wantIssued(t, sorted("abcd"))
		wantIssued(t, sorted("e\u0301t"), "\u00e9t\u00e9=6")
		for range store.List(t.Context(), "") {
			break
		}
		for _, err := range store.List(t.Context(), "\xff") {
			harness.WantError(t, err, sqlfence.ErrInvalid)
		}
		// The names fill exactly three pages.
		var names []string
		for i := range 3000 {
			names = append(names, fmt.Sprintf("Many/%d", i))
		}
		if err := store.Ensure(t.Context(), names...); err != nil {
			t.Fatal(err)
		}
		var found []string
		for token, err := range store.List(t.Context(), "Many/") {
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, token.Name)
		}
		slices.Sort(names)
		if slices.Sort(found); !slices.Equal(found, names) {
			t.Errorf("%d names, want %d", len(found), len(names))
		}
		if _, err := store.Rotate(t.Context(), "abc"); err != nil {
			t.Fatal(err)
		}
		wantIssued(t, list(t, store, "abc"), fmt.Sprintf("abc=%d", sqlfence.MaxToken+1))
	})
}

// Watch yields a name's current token, or its absence, and then each change.
func TestWatch(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		store := setupStore(t, db)
		var seen []int64
		for token, err := range store.Watch(t.Context(), "books", time.Millisecond) {
			if err != nil || token.Name != "books" {
				t.Fatal(token, err)
			}
			if seen = append(seen, token.Value); len(seen) == 3 {
				break
			}
			harness.IssueToken(t, store, "books")
		}
		if len(seen) != 3 || seen[0] != 0 || seen[2] != seen[1]+1 {
			t.Errorf("seen %v", seen)
		}
		for _, bad := range []struct {
			name     string
			interval time.Duration
		}{{"", time.Second}, {"books", 0}} {
			for _, err := range store.Watch(t.Context(), bad.name, bad.interval) {
				harness.WantError(t, err, sqlfence.ErrInvalid)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		for range store.Watch(ctx, "books", time.Hour) {
			cancel()
		}
		cancel()
		db.Close()
		failed := 0
		for token, err := range store.Watch(t.Context(), "books", time.Millisecond) {
			if err == nil || token != (sqlfence.Token{}) {
				t.Fatal(token, err)
			}
			if failed++; failed == 2 {
				break
			}
		}
	})
}

func wantPrice(t *testing.T, db *sql.DB, want int) {
	t.Helper()
	var price int
	if err := db.QueryRowContext(t.Context(), "SELECT price FROM books WHERE id = 1").Scan(&price); err != nil || price != want {
		t.Errorf("price %d, %v, want %d", price, err, want)
	}
}

// After the second of two workers has started, only the second worker's writes land.
func TestDo(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, plain *sql.DB) {
		store := setupStore(t, plain)
		db := b.Fenced(t, dsn, sqlfence.WithTable("books", sqlfence.Ledger()))
		harness.MustExec(t, plain, "CREATE TABLE books (id integer PRIMARY KEY, price integer)")
		harness.MustExec(t, plain, "INSERT INTO books VALUES (1, 10)")
		write := func(ctx context.Context, price int) error {
			_, err := db.ExecContext(ctx, fmt.Sprintf("UPDATE books SET price = %d WHERE id = 1", price))
			return err
		}
		err := store.Do(t.Context(), "books", func(ctx context.Context) error {
			if err := write(ctx, 20); err != nil {
				t.Fatal(err)
			}
			if err := store.Do(t.Context(), "books", func(ctx context.Context) error { return write(ctx, 30) }); err != nil {
				t.Fatal(err)
			}
			return write(ctx, 40)
		})
		harness.WantError(t, err, sqlfence.ErrStale)
		wantPrice(t, plain, 30)
		called := false
		err = store.Do(t.Context(), "", func(context.Context) error { called = true; return nil })
		harness.WantError(t, err, sqlfence.ErrInvalid)
		if called {
			t.Error("f was called without a token")
		}
	})
}

// After Issue a Source supplies its tokens to all writes of its process, until another process calls Issue.
func TestSource(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, plain *sql.DB) {
		harness.MustExec(t, plain, "CREATE TABLE books (id integer PRIMARY KEY, price integer)")
		harness.MustExec(t, plain, "INSERT INTO books VALUES (1, 10)")
		ctx := t.Context()
		begin := func() (*tokens.Source, *tokens.Store, *sql.DB) {
			source, err := tokens.NewSource("books", "pens")
			if err != nil {
				t.Fatal(err)
			}
			db := b.Fenced(t, dsn, sqlfence.WithTable("books", sqlfence.Ledger()), sqlfence.WithTokenSource(source.Tokens))
			return source, setupStore(t, db), db
		}
		write := func(db *sql.DB, price int) error {
			_, err := db.ExecContext(ctx, fmt.Sprintf("UPDATE books SET price = %d WHERE id = 1", price))
			return err
		}
		first, store, db := begin()
		harness.WantError(t, write(db, 20), sqlfence.ErrNoFence)
		if err := first.Issue(ctx, store); err != nil {
			t.Fatal(err)
		}
		if err := write(db, 30); err != nil {
			t.Fatal(err)
		}
		second, store2, db2 := begin()
		if err := second.Issue(ctx, store2); err != nil {
			t.Fatal(err)
		}
		harness.WantError(t, write(db, 40), sqlfence.ErrStale)
		if err := write(db2, 50); err != nil {
			t.Fatal(err)
		}
		wantPrice(t, plain, 50)

		// If several calls of Issue run at once, the Source keeps the newest tokens.
		var failed atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if first.Issue(ctx, store) != nil {
					failed.Add(1)
				}
			})
		}
		wg.Wait()
		if err := write(db, 60); err != nil || failed.Load() > 0 {
			t.Error(err, failed.Load())
		}
		if found, err := first.Tokens(ctx, []string{"books/", "hats"}); len(found) > 0 || err != nil {
			t.Error(found, err)
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if err := first.Issue(gone, store); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := write(db, 70); err != nil {
			t.Error(err)
		}
		if _, err := tokens.NewSource("books", ""); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Error(err)
		}
	})
}
