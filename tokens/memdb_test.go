package tokens_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/memdb"
	"github.com/sqlfence/sqlfence/tokens"
)

// openMemory opens a new database in memory, which takes SQLite's SQL.
func openMemory(t *testing.T, opts ...sqlfence.Option) *sql.DB {
	t.Helper()
	db, err := sqlfence.OpenDB(memdb.New().Connector(memdb.Full), append(opts, sqlfence.WithDialect(sqlfence.SQLite))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func newStore(t *testing.T, db *sql.DB, opts ...tokens.Option) *tokens.Store {
	t.Helper()
	store, err := tokens.New(db, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// inMemory returns a Store on a new database with the ledger.
func inMemory(t *testing.T) (*tokens.Store, *sql.DB) {
	t.Helper()
	db := openMemory(t)
	store := newStore(t, db)
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store, db
}

func exec(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(sqlfence.Bypass(t.Context(), "test"), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
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

// wantLedger checks the rows of the ledger, name=token in the names' order.
func wantLedger(t *testing.T, db *sql.DB, want string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT name, token FROM fencing_tokens ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var name string
		var token sql.NullInt64
		if err := rows.Scan(&name, &token); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s=%d", name, token.Int64))
	}
	if rows.Err() != nil || strings.Join(got, " ") != want {
		t.Errorf("the ledger is %q, %v; want %q", strings.Join(got, " "), rows.Err(), want)
	}
}

func TestSetupCreatesTheTableOnce(t *testing.T) {
	store, db := inMemory(t)
	issue(t, store, "books")
	if err := store.Setup(t.Context()); err != nil {
		t.Error(err)
	}
	wantLedger(t, db, "books=1")
}

func TestSetupRefusesATableThatCannotBeUsed(t *testing.T) {
	for _, test := range []struct{ columns, want string }{
		{"name text PRIMARY KEY, token text", "column token is of type text"},
		{"name text PRIMARY KEY", "it has the columns name, want name and token"},
		{"name text PRIMARY KEY, token bigint, owner text NOT NULL", "column owner needs a value"},
	} {
		db := openMemory(t)
		exec(t, db, "CREATE TABLE fencing_tokens ("+test.columns+")")
		if err := newStore(t, db).Setup(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.columns, err, test.want)
		}
	}
}

func TestSetupFailsWithoutADatabase(t *testing.T) {
	_, db := inMemory(t)
	store := newStore(t, db)
	db.Close()
	if err := store.Setup(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "tokens: setup: ") {
		t.Error(err)
	}
}

func TestIssueCountsEachNameByItself(t *testing.T) {
	store, db := inMemory(t)
	for want := int64(1); want <= 3; want++ {
		if got := issue(t, store, "books"); got != want {
			t.Errorf("token %d, want %d", got, want)
		}
	}
	if got := issue(t, newStore(t, db), "books"); got != 4 {
		t.Errorf("token of another Store %d, want 4", got)
	}
	if got := issue(t, store, "pens"); got != 1 {
		t.Errorf("token of another name %d, want 1", got)
	}
	// One name, spelled with a letter and an accent, or with both in one.
	if issue(t, store, "cafe\u0301"); issue(t, store, "caf\u00e9") != 2 {
		t.Error("one name in two forms has two counts")
	}
	wantLedger(t, db, "books=4 caf\u00e9=2 pens=1")
}

func TestEnsureAddsNamesWithoutATokenOnce(t *testing.T) {
	store, db := inMemory(t)
	issue(t, store, "books")
	for _, names := range [][]string{{}, {"pens", "books"}, {"pens", "hats", "hats"}} {
		if err := store.Ensure(t.Context(), names...); err != nil {
			t.Errorf("Ensure %q: %v", names, err)
		}
	}
	wantLedger(t, db, "books=1 hats=0 pens=0")
}

func TestCurrentReadsTheNewestToken(t *testing.T) {
	store, db := inMemory(t)
	if _, err := store.Current(t.Context(), "books"); !errors.Is(err, sqlfence.ErrUnknownName) {
		t.Errorf("unknown name: %v", err)
	}
	if err := store.Ensure(t.Context(), "books"); err != nil {
		t.Fatal(err)
	}
	for want := int64(0); want < 3; want++ {
		got, err := store.Current(t.Context(), "books")
		if err != nil || got != (sqlfence.Token{Name: "books", Value: want}) {
			t.Errorf("Current = %v, %v; want %d", got, err, want)
		}
		issue(t, store, "books")
	}
	exec(t, db, "UPDATE fencing_tokens SET token = -7")
	if _, err := store.Current(t.Context(), "books"); err == nil || !strings.Contains(err.Error(), "negative token -7") {
		t.Errorf("negative: %v", err)
	}
	if _, err := store.Issue(t.Context(), "books"); err == nil || !strings.Contains(err.Error(), "negative token -7") {
		t.Errorf("Issue above a negative one: %v", err)
	}
	exec(t, db, "UPDATE fencing_tokens SET token = ?", int64(sqlfence.MaxToken+1))
	if _, err := store.Current(t.Context(), "books"); !errors.Is(err, sqlfence.ErrTokenLimit) {
		t.Errorf("over the limit: %v", err)
	}
}

func TestAdoptRaisesAndNeverLowers(t *testing.T) {
	store, db := inMemory(t)
	for _, test := range []struct{ value, stored, stale int64 }{{40, 40, 0}, {40, 40, 0}, {41, 41, 0}, {39, 41, 41}} {
		err := store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: test.value})
		var stale *sqlfence.StaleError
		switch errors.As(err, &stale); {
		case test.stale == 0 && err != nil:
			t.Errorf("Adopt %d: %v", test.value, err)
		case test.stale != 0 && (stale == nil || stale.Current != test.stale || stale.Token.Value != test.value):
			t.Errorf("Adopt %d: %v, want a StaleError with %d", test.value, err, test.stale)
		}
		wantLedger(t, db, fmt.Sprintf("books=%d", test.stored))
	}
	if got := issue(t, store, "books"); got != 42 {
		t.Errorf("the next token is %d, want 42", got)
	}
}

func TestTokensEndAtTheLimit(t *testing.T) {
	_, db := inMemory(t)
	var log strings.Builder
	store := newStore(t, db, tokens.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	exec(t, db, "INSERT INTO fencing_tokens (name, token) VALUES ('books', ?)", int64(sqlfence.MaxToken-1))
	if got := issue(t, store, "books"); got != sqlfence.MaxToken {
		t.Errorf("the last token is %d", got)
	}
	if token, err := store.Issue(t.Context(), "books"); !errors.Is(err, sqlfence.ErrTokenLimit) || token != (sqlfence.Token{}) {
		t.Errorf("after the last: %v, %v", token, err)
	}
	wantLedger(t, db, fmt.Sprintf("books=%d", int64(sqlfence.MaxToken)))
	// Once for each token near the limit, issued or adopted.
	if err := store.Adopt(t.Context(), sqlfence.Token{Name: "pens", Value: sqlfence.WarnToken}); err != nil {
		t.Fatal(err)
	}
	issue(t, store, "hats")
	if got := strings.Count(log.String(), "running out"); got != 2 || !strings.Contains(log.String(), "name=pens token=90000000000000") {
		t.Errorf("%d warnings, want 2:\n%s", got, log.String())
	}
}

func TestRepairRaisesAllNames(t *testing.T) {
	store, db := inMemory(t)
	issue(t, store, "books")
	if err := store.Adopt(t.Context(), sqlfence.Token{Name: "pens", Value: 90}); err != nil {
		t.Fatal(err)
	}
	for _, floor := range []int64{50, 10} {
		if err := store.Repair(t.Context(), floor); err != nil {
			t.Fatal(err)
		}
		wantLedger(t, db, "=50 books=50 pens=90")
	}
	if a, b := issue(t, store, "books"), issue(t, store, "hats"); a != 51 || b != 51 {
		t.Errorf("tokens %d of a known and %d of a new name, want 51", a, b)
	}
	for floor, want := range map[int64]error{0: sqlfence.ErrInvalid, -1: sqlfence.ErrInvalid, sqlfence.MaxToken + 1: sqlfence.ErrTokenLimit} {
		if err := store.Repair(t.Context(), floor); !errors.Is(err, want) {
			t.Errorf("Repair to %d: %v, want %v", floor, err, want)
		}
	}
	wantLedger(t, db, "=50 books=51 hats=51 pens=90")
}

func TestRotateRetiresANameAndResetsMarks(t *testing.T) {
	db := openMemory(t, sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
	store := newStore(t, db)
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "CREATE TABLE books (id integer PRIMARY KEY, fence_token bigint)")
	exec(t, db, "INSERT INTO books (id, fence_token) VALUES (1, 0), (2, 800000000000000), (3, 2)")
	for _, name := range []string{"books", "books/1", "bookshop", "pens"} {
		issue(t, store, name)
	}
	mark := tokens.Mark{Table: "books", Column: "fence_token"}
	n, err := store.Rotate(t.Context(), "books", mark)
	if n != 2 || err != nil {
		t.Errorf("Rotate = %d, %v; want 2 marks", n, err)
	}
	retired := int64(sqlfence.MaxToken + 1)
	wantLedger(t, db, fmt.Sprintf("books=%d books/1=%d bookshop=1 pens=1", retired, retired))
	for _, name := range []string{"books", "books/1"} {
		if _, err := store.Issue(t.Context(), name); !errors.Is(err, sqlfence.ErrTokenLimit) || !strings.Contains(err.Error(), "was retired") {
			t.Errorf("Issue of the retired %s: %v", name, err)
		}
	}
	if n, err := store.Rotate(t.Context(), "books", mark); n != 0 || err != nil {
		t.Errorf("Rotate again = %d, %v", n, err)
	}
}

func TestRotateChangesNothingOnAnError(t *testing.T) {
	store, db := inMemory(t)
	exec(t, db, "CREATE TABLE books (id integer PRIMARY KEY, fence_token bigint)")
	exec(t, db, "INSERT INTO books (id, fence_token) VALUES (1, 1)")
	issue(t, store, "books")
	for _, test := range []struct {
		name string
		mark tokens.Mark
		want error // nil: the database's own
	}{
		{"hats", tokens.Mark{Table: "books", Column: "fence_token"}, sqlfence.ErrUnknownName},
		{"books", tokens.Mark{Table: "books; DROP TABLE books", Column: "fence_token"}, sqlfence.ErrInvalid},
		{"books", tokens.Mark{Table: "books", Column: "a.b"}, sqlfence.ErrInvalid},
		{"books", tokens.Mark{Table: "shop.books", Column: "fence_token"}, nil},
		{"books", tokens.Mark{Table: "books", Column: "nothing"}, nil},
	} {
		n, err := store.Rotate(t.Context(), test.name, test.mark)
		if n != 0 || err == nil || test.want != nil && !errors.Is(err, test.want) || test.want == nil && !strings.HasPrefix(err.Error(), `tokens: rotate "books": `) {
			t.Errorf("Rotate %s, %v = %d, %v; want %v", test.name, test.mark, n, err, test.want)
		}
		wantLedger(t, db, "books=1")
	}
}

// Invalid names and tokens change nothing, in every method.
func TestInvalidNamesAreRefused(t *testing.T) {
	store, db := inMemory(t)
	for _, name := range []string{"", strings.Repeat("x", 513), "a\x00b", "\xff"} {
		for method, call := range map[string]func(ctx context.Context) error{
			"Issue":   func(ctx context.Context) error { _, err := store.Issue(ctx, name); return err },
			"Ensure":  func(ctx context.Context) error { return store.Ensure(ctx, "books", name) },
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
			t.Errorf("Adopt %d: %v", value, err)
		}
	}
	wantLedger(t, db, "")
}

// A call whose context has ended sends nothing.
func TestEndedContext(t *testing.T) {
	store, db := inMemory(t)
	exec(t, db, "INSERT INTO fencing_tokens (name, token) VALUES ('books', 1)")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for method, call := range map[string]func() error{
		"Setup":   func() error { return store.Setup(ctx) },
		"Issue":   func() error { _, err := store.Issue(ctx, "books"); return err },
		"Ensure":  func() error { return store.Ensure(ctx, "pens") },
		"Current": func() error { _, err := store.Current(ctx, "books"); return err },
		"Adopt":   func() error { return store.Adopt(ctx, sqlfence.Token{Name: "books", Value: 9}) },
		"Repair":  func() error { return store.Repair(ctx, 9) },
		"Rotate":  func() error { _, err := store.Rotate(ctx, "books"); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", method, err)
		}
	}
	wantLedger(t, db, "books=1")
}
