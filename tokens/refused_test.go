package tokens_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/tokens"
)

func newStore(t *testing.T, db *sql.DB, opts ...tokens.Option) *tokens.Store {
	t.Helper()
	store, err := tokens.New(db, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func issue(t *testing.T, store *tokens.Store, name string) int64 {
	t.Helper()
	token, err := store.Issue(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := sqlfence.ParseToken(token.String()); token != want || token.Name == "" {
		t.Fatalf("token %+v", token)
	}
	return token.Value
}

// onlyRefuses returns a Store on a database, and fails the test if a statement is sent.
func onlyRefuses(t *testing.T) *tokens.Store {
	t.Helper()
	fake := fakedb.New(fakedb.Script())
	db := sql.OpenDB(fake)
	t.Cleanup(func() {
		db.Close()
		if sent := fake.Sent(); len(sent) > 0 {
			t.Errorf("sent: %v", sent)
		}
	})
	return newStore(t, db, tokens.WithDialect(sqlfence.SQLite))
}

// Invalid names and tokens are refused before anything is sent, by every method.
func TestInvalidArgumentsAreRefused(t *testing.T) {
	store := onlyRefuses(t)
	for _, name := range []string{"", strings.Repeat("x", 513), "a\x00b", "\xff"} {
		for method, call := range map[string]func(ctx context.Context) error{
			"Issue":     func(ctx context.Context) error { _, err := store.Issue(ctx, name); return err },
			"IssueMany": func(ctx context.Context) error { _, err := store.IssueMany(ctx, "books", name); return err },
			"Ensure":    func(ctx context.Context) error { return store.Ensure(ctx, "books", name) },
			"Do": func(ctx context.Context) error {
				return store.Do(ctx, name, func(context.Context) error { t.Error("f was called"); return nil })
			},
			"Watch": func(ctx context.Context) (err error) {
				for _, err = range store.Watch(ctx, name, time.Second) {
				}
				return err
			},
			"Current": func(ctx context.Context) error { _, err := store.Current(ctx, name); return err },
			"Adopt":   func(ctx context.Context) error { return store.Adopt(ctx, sqlfence.Token{Name: name, Value: 1}) },
			"Rotate":  func(ctx context.Context) error { _, err := store.Rotate(ctx, name); return err },
		} {
			if err := call(t.Context()); !errors.Is(err, sqlfence.ErrInvalid) {
				t.Errorf("%s of %.10q: %v", method, name, err)
			}
		}
	}
	for value, want := range map[int64]error{0: sqlfence.ErrInvalid, -1: sqlfence.ErrInvalid, sqlfence.MaxToken + 1: sqlfence.ErrTokenLimit} {
		if err := store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: value}); !errors.Is(err, want) {
			t.Errorf("Adopt %d: %v, want %v", value, err, want)
		}
		if _, err := store.Repair(t.Context(), value); !errors.Is(err, want) {
			t.Errorf("Repair to %d: %v, want %v", value, err, want)
		}
	}
	for _, mark := range []tokens.Mark{{Table: "books; DROP TABLE books", Column: "fence_token"}, {Table: "books", Column: "a.b"}} {
		if _, err := store.Rotate(t.Context(), "books", mark); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("Rotate, %v: %v", mark, err)
		}
	}
}

// Lists of names for which IssueMany must fail.
func TestIssueManyRefusesLists(t *testing.T) {
	store := onlyRefuses(t)
	for _, names := range [][]string{{"books", "pens", "books"}, {"e\u0301", "\u00e9"}, make([]string, 101)} {
		if issued, err := store.IssueMany(t.Context(), names...); issued != nil || !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("%.40q: %v, %v", names, issued, err)
		}
	}
	if issued, err := store.IssueMany(t.Context()); len(issued) > 0 || err != nil {
		t.Errorf("no names: %v, %v", issued, err)
	}
}

// A call whose context has ended sends nothing.
func TestEndedContext(t *testing.T) {
	store := onlyRefuses(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for method, call := range map[string]func() error{
		"Setup":     func() error { return store.Setup(ctx) },
		"Issue":     func() error { _, err := store.Issue(ctx, "books"); return err },
		"IssueMany": func() error { _, err := store.IssueMany(ctx, "books", "pens"); return err },
		"Ensure":    func() error { return store.Ensure(ctx, "pens") },
		"Current":   func() error { _, err := store.Current(ctx, "books"); return err },
		"Adopt":     func() error { return store.Adopt(ctx, sqlfence.Token{Name: "books", Value: 9}) },
		"Repair":    func() error { _, err := store.Repair(ctx, 9); return err },
		"Rotate":    func() error { _, err := store.Rotate(ctx, "books"); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", method, err)
		}
	}
}
