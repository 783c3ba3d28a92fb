package drivers

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/tokens"
)

// eachLedger runs test on every base, by the base driver alone and fenced. db is
// open on the fresh database dsn, which has no table yet.
func eachLedger(t *testing.T, test func(t *testing.T, b base, dsn string, db *sql.DB)) {
	t.Helper()
	eachBase(t, func(t *testing.T, b base) {
		t.Run("raw", func(t *testing.T) {
			dsn := b.dsn(t)
			test(t, b, dsn, b.raw(t, dsn))
		})
		t.Run("fenced", func(t *testing.T) {
			dsn := b.dsn(t)
			test(t, b, dsn, b.fenced(t, dsn, sqlfence.WithTable("books")))
		})
	})
}

func newStore(t testing.TB, db *sql.DB, opts ...tokens.Option) *tokens.Store {
	t.Helper()
	store, err := tokens.New(db, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// setupStore is newStore with the table set up.
func setupStore(t testing.TB, db *sql.DB, opts ...tokens.Option) *tokens.Store {
	t.Helper()
	store := newStore(t, db, opts...)
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

func issueToken(t testing.TB, store *tokens.Store, name string) int64 {
	t.Helper()
	token, err := store.Issue(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if token.Name != name {
		t.Fatalf("token = %v, want name %q", token, name)
	}
	return token.Value
}

// mustExec prepares a database that may be fenced.
func mustExec(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(sqlfence.Bypass(t.Context(), "a test prepares it"), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// ledgerRows returns what fencing_tokens holds, as "name=token", in order.
func ledgerRows(t testing.TB, db *sql.DB) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT name, token FROM fencing_tokens ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var name string
		var token sql.NullInt64
		if err := rows.Scan(&name, &token); err != nil {
			t.Fatal(err)
		}
		value := "NULL"
		if token.Valid {
			value = fmt.Sprint(token.Int64)
		}
		list = append(list, name+"="+value)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func wantRows(t testing.TB, db *sql.DB, want ...string) {
	t.Helper()
	if got := ledgerRows(t, db); !slices.Equal(got, want) {
		t.Errorf("fencing_tokens holds %q, want %q", got, want)
	}
}

// blogTable creates the table that applications have which follow the blog post.
func blogTable(t testing.TB, b base, db *sql.DB) {
	t.Helper()
	id := "integer NOT NULL PRIMARY KEY AUTOINCREMENT"
	if b.dialect == sqlfence.Postgres {
		id = "serial PRIMARY KEY"
	}
	mustExec(t, db, "CREATE TABLE fencing_tokens (id "+id+", name varchar(255), token integer DEFAULT 1)")
	mustExec(t, db, "CREATE UNIQUE INDEX fencing_tokens_name_unique ON fencing_tokens (name)")
}

func TestTokensIssue(t *testing.T) {
	eachLedger(t, func(t *testing.T, b base, dsn string, db *sql.DB) {
		store := setupStore(t, db)
		for want := int64(1); want <= 3; want++ {
			if got := issueToken(t, store, "books"); got != want {
				t.Errorf("books = %d, want %d", got, want)
			}
		}
		if got := issueToken(t, store, "pens"); got != 1 {
			t.Errorf("pens = %d, want 1", got)
		}
		wantRows(t, db, "books=3", "pens=1")
		if err := store.Setup(t.Context()); err != nil {
			t.Errorf("second Setup: %v", err)
		}
		wantRows(t, db, "books=3", "pens=1")
	})
}

func TestTokensEnsureAndCurrent(t *testing.T) {
	eachLedger(t, func(t *testing.T, b base, dsn string, db *sql.DB) {
		ctx := t.Context()
		store := setupStore(t, db)
		if _, err := store.Current(ctx, "books"); !errors.Is(err, sqlfence.ErrUnknownName) {
			t.Errorf("Current of an unknown name: %v, want ErrUnknownName", err)
		}
		issueToken(t, store, "pens")
		for range 2 {
			if err := store.Ensure(ctx, "pens", "books", "pens"); err != nil {
				t.Fatal(err)
			}
			wantRows(t, db, "books=0", "pens=1")
		}
		if err := store.Ensure(ctx); err != nil {
			t.Errorf("Ensure of nothing: %v", err)
		}
		for name, want := range map[string]int64{"books": 0, "pens": 1} {
			if got, err := store.Current(ctx, name); err != nil || got != (sqlfence.Token{Name: name, Value: want}) {
				t.Errorf("Current = %v, %v; want %s:%d", got, err, name, want)
			}
		}
		if got := issueToken(t, store, "books"); got != 1 {
			t.Errorf("first token after Ensure = %d, want 1", got)
		}
	})
}

func TestTokensEnsureManyAtOnce(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		dsn := b.dsn(t)
		db := b.raw(t, dsn)
		setupStore(t, db)
		// More than a statement can have parameters, in both orders at once.
		names := make([]string, 33_000)
		if b.dialect == sqlfence.Postgres {
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
				if err := newStore(t, b.raw(t, dsn)).Ensure(t.Context(), list...); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := len(ledgerRows(t, db)); got != len(names) {
			t.Errorf("%d names, want %d", got, len(names))
		}
	})
}

func TestTokensAdopt(t *testing.T) {
	eachLedger(t, func(t *testing.T, b base, dsn string, db *sql.DB) {
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
		wantRows(t, db, "books=42")
		if got := issueToken(t, store, "books"); got != 43 {
			t.Errorf("token after Adopt = %d, want 43", got)
		}
		if err := adopt(0); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("Adopt of 0: %v, want ErrInvalid", err)
		}
		if err := adopt(sqlfence.MaxToken + 1); !errors.Is(err, sqlfence.ErrTokenLimit) {
			t.Errorf("Adopt over the limit: %v, want ErrTokenLimit", err)
		}
		wantRows(t, db, "books=43")
	})
}

func TestTokensBadNamesChangeNothing(t *testing.T) {
	eachLedger(t, func(t *testing.T, b base, dsn string, db *sql.DB) {
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
		wantRows(t, db)
	})
}

func TestTokensOddNames(t *testing.T) {
	eachLedger(t, func(t *testing.T, b base, dsn string, db *sql.DB) {
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
		if got := len(ledgerRows(t, db)); got != len(names) {
			t.Errorf("%d rows for %d names", got, len(names))
		}
		for i, name := range names {
			if err := store.Adopt(ctx, sqlfence.Token{Name: name, Value: int64(i) + 10}); err != nil {
				t.Fatal(err)
			}
		}
		for i, name := range names {
			if got := issueToken(t, store, name); got != int64(i)+11 {
				t.Errorf("token of %q = %d, want %d", name, got, i+11)
			}
			if got, err := store.Current(ctx, name); err != nil || got.Value != int64(i)+11 {
				t.Errorf("Current of %q = %v, %v", name, got, err)
			}
		}
		if got := len(ledgerRows(t, db)); got != len(names) {
			t.Errorf("%d rows for %d names", got, len(names))
		}
	})
}

func TestTokensOnTheBlogsTable(t *testing.T) {
	eachLedger(t, func(t *testing.T, b base, dsn string, db *sql.DB) {
		ctx := t.Context()
		blogTable(t, b, db)
		mustExec(t, db, "INSERT INTO fencing_tokens (name, token) VALUES ('books', 1) ON CONFLICT DO NOTHING")
		mustExec(t, db, "INSERT INTO fencing_tokens (name, token) VALUES ('null', NULL), ('null too', NULL)")
		var log bytes.Buffer
		store := setupStore(t, db, tokens.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if warned := strings.Contains(log.String(), "make it a bigint"); warned != (b.dialect == sqlfence.Postgres) {
			t.Errorf("logged %q of a narrow column", &log)
		}
		if got := issueToken(t, store, "books"); got != 2 {
			t.Errorf("books = %d, want 2: its row starts with 1", got)
		}
		if got := issueToken(t, store, "pens"); got != 1 {
			t.Errorf("pens = %d, want 1", got)
		}
		if err := store.Ensure(ctx, "books", "cups", "null"); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Current(ctx, "null"); err != nil || got.Value != 0 {
			t.Errorf("Current of NULL = %v, %v; want 0", got, err)
		}
		if got := issueToken(t, store, "null"); got != 1 {
			t.Errorf("token after NULL = %d, want 1", got)
		}
		if err := store.Adopt(ctx, sqlfence.Token{Name: "null too", Value: 7}); err != nil {
			t.Fatal(err)
		}
		wantRows(t, db, "books=2", "cups=0", "null=1", "null too=7", "pens=1")

		if b.dialect == sqlfence.Postgres {
			mustExec(t, db, "UPDATE fencing_tokens SET token = 2147483647 WHERE name = 'books'")
			_, err := store.Issue(ctx, "books")
			var state interface{ SQLState() string }
			if !errors.As(err, &state) || state.SQLState() != "22003" {
				t.Errorf("Issue over 4 bytes: %v, want the database's 22003", err)
			}
			wantRows(t, db, "books=2147483647", "cups=0", "null=1", "null too=7", "pens=1")
		}
	})
}

func TestTokensSetupAtOnce(t *testing.T) {
	eachLedger(t, func(t *testing.T, b base, dsn string, db *sql.DB) {
		var stores []*tokens.Store
		for range 8 {
			other := b.raw(t, dsn)
			if err := other.Ping(); err != nil {
				t.Fatal(err)
			}
			stores = append(stores, newStore(t, other))
		}
		for range 10 {
			start := make(chan struct{})
			var wg sync.WaitGroup
			for _, store := range append(stores, newStore(t, db)) {
				wg.Go(func() {
					<-start
					if err := store.Setup(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			close(start)
			wg.Wait()
			mustExec(t, db, "DROP TABLE fencing_tokens")
		}
	})
}

func TestTokensSetupRefusesAnUnusableTable(t *testing.T) {
	for _, test := range []struct{ name, create, want string }{
		{"text token", "CREATE TABLE fencing_tokens (name varchar(255) UNIQUE, token text)", "column token is of type text"},
		{"no token", "CREATE TABLE fencing_tokens (name varchar(255) UNIQUE, value integer)", "want name and token"},
		{"no name", "CREATE TABLE fencing_tokens (resource varchar(255) UNIQUE, token integer)", "want name and token"},
		{"name not unique", "CREATE TABLE fencing_tokens (name varchar(255), token integer)", "ON CONFLICT"},
		{"unique together", "CREATE TABLE fencing_tokens (name varchar(255), token integer, UNIQUE (name, token))", "ON CONFLICT"},
		{"required column", "CREATE TABLE fencing_tokens (name varchar(255) UNIQUE, token integer, owner text NOT NULL)", "column owner needs a value"},
		{"required key", "CREATE TABLE fencing_tokens (id varchar(36) PRIMARY KEY NOT NULL, name varchar(255) UNIQUE, token integer)", "column id needs a value"},
		{"view", "CREATE VIEW fencing_tokens AS SELECT 'books' AS name, 1 AS token", "fencing_tokens can't be used"},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachBase(t, func(t *testing.T, b base) {
				db := b.raw(t, b.dsn(t))
				mustExec(t, db, test.create)
				err := newStore(t, db).Setup(t.Context())
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("Setup = %v, want %q", err, test.want)
				}
			})
		})
	}
}

// An application's role need not own the table, or be allowed to create one.
func TestTokensSetupWithoutPrivileges(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		if b.dialect != sqlfence.Postgres {
			t.Skip("no roles in SQLite")
		}
		dsn := b.dsn(t)
		owner := b.raw(t, dsn)
		setupStore(t, owner)
		role := "sqlfence_" + strings.ToLower(rand.Text())
		mustExec(t, owner, "CREATE ROLE "+role)
		defer mustExec(t, owner, "DROP OWNED BY "+role+"; DROP ROLE "+role)
		mustExec(t, owner, "DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO "+role+"', current_schema()); END $$")

		app, err := sql.Open(b.driverName, dsn+"&role="+role)
		if err != nil {
			t.Fatal(err)
		}
		defer app.Close()
		store := newStore(t, app)
		mustExec(t, owner, "GRANT SELECT ON fencing_tokens TO "+role)
		if err := store.Setup(t.Context()); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("Setup without the right to write: %v", err)
		}
		mustExec(t, owner, "GRANT INSERT, UPDATE ON fencing_tokens TO "+role)
		if err := store.Setup(t.Context()); err != nil {
			t.Errorf("Setup without the right to create: %v", err)
		}
		if got := issueToken(t, store, "books"); got != 1 {
			t.Errorf("token = %d, want 1", got)
		}
	})
}

func TestTokensLimit(t *testing.T) {
	eachLedger(t, func(t *testing.T, b base, dsn string, db *sql.DB) {
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
		wantRows(t, db, fmt.Sprintf("books=%d", int64(sqlfence.MaxToken)))

		mustExec(t, db, "UPDATE fencing_tokens SET token = 9223372036854775807")
		if _, err := store.Issue(ctx, "books"); !errors.Is(err, sqlfence.ErrTokenLimit) {
			t.Errorf("Issue over the limit: %v", err)
		}
		if _, err := store.Current(ctx, "books"); !errors.Is(err, sqlfence.ErrTokenLimit) {
			t.Errorf("Current over the limit: %v", err)
		}
		wantRows(t, db, "books=9223372036854775807")

		mustExec(t, db, "UPDATE fencing_tokens SET token = -5")
		if _, err := store.Issue(ctx, "books"); err == nil || !strings.Contains(err.Error(), "negative token -5") {
			t.Errorf("Issue of a negative token: %v", err)
		}
		if _, err := store.Current(ctx, "books"); err == nil || !strings.Contains(err.Error(), "negative token -5") {
			t.Errorf("Current of a negative token: %v", err)
		}
		wantRows(t, db, "books=-5")
	})
}

func TestTokensWarnNearTheLimit(t *testing.T) {
	eachLedger(t, func(t *testing.T, b base, dsn string, db *sql.DB) {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		store := setupStore(t, db, tokens.WithLogger(logger))
		if err := store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: sqlfence.WarnToken - 2}); err != nil {
			t.Fatal(err)
		}
		issueToken(t, store, "books")
		if log.Len() > 0 {
			t.Errorf("logged %q below WarnToken", &log)
		}
		issueToken(t, store, "books")
		if got := log.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, "name=books token=90000000000000 limit=900000000000000") {
			t.Errorf("logged %q at WarnToken", got)
		}
	})
}

// A grant is one call of Issue: the clock's readings before and after it, and
// the token.
type grant struct{ before, after, token int64 }

// grants lets 64 callers issue 50 tokens each, in turn by the stores.
func grants(t *testing.T, stores ...*tokens.Store) []grant {
	t.Helper()
	var clock atomic.Int64
	var wg sync.WaitGroup
	lists := make([][]grant, 64)
	for g := range lists {
		wg.Go(func() {
			for range 50 {
				before := clock.Add(1)
				token, err := stores[g%len(stores)].Issue(t.Context(), "books")
				if err != nil {
					t.Error(err)
					return
				}
				lists[g] = append(lists[g], grant{before, clock.Add(1), token.Value})
			}
		})
	}
	wg.Wait()
	return slices.Concat(lists...)
}

// checkGrants fails the test where a token was given twice, or where a call that
// began after another had ended got a token that isn't higher.
func checkGrants(t *testing.T, history []grant) {
	t.Helper()
	slices.SortFunc(history, func(a, b grant) int { return int(a.token - b.token) })
	// From the highest token down: earliest is the first end of a call with a
	// higher token, before which all calls with lower ones must have begun.
	earliest := int64(1 << 62)
	for i, g := range slices.Backward(history) {
		if i > 0 && history[i-1].token == g.token {
			t.Errorf("token %d was given twice", g.token)
		}
		if g.before > earliest {
			t.Errorf("token %d was given by a call that began after one with a higher token had ended", g.token)
		}
		earliest = min(earliest, g.after)
	}
}

func TestTokensKeepRealTimeOrder(t *testing.T) {
	eachLedger(t, func(t *testing.T, b base, dsn string, db *sql.DB) {
		first := setupStore(t, db)
		second := newStore(t, b.raw(t, dsn))
		checkGrants(t, grants(t, first, second))
		if got, err := first.Current(t.Context(), "books"); err != nil || got.Value != 64*50 {
			t.Errorf("Current = %v, %v; want %d: nothing failed, so nothing is skipped", got, err, 64*50)
		}
	})
}

func TestTokensAtEveryIsolationLevel(t *testing.T) {
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			eachBase(t, func(t *testing.T, b base) {
				if b.dialect != sqlfence.Postgres {
					t.Skip("SQLite knows one level")
				}
				dsn := b.dsn(t) + "&default_transaction_isolation=" + url.PathEscape(level)
				first := setupStore(t, b.raw(t, dsn))
				second := newStore(t, b.raw(t, dsn))
				checkGrants(t, grants(t, first, second))
			})
		})
	}
}

func TestTokensInEveryPgxMode(t *testing.T) {
	pgx := base{"pgx", "pgx", sqlfence.Postgres}
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			ctx := t.Context()
			store := setupStore(t, pgx.raw(t, pgx.dsn(t)+"&default_query_exec_mode="+mode))
			if err := store.Ensure(ctx, "books", `a'b"c\`); err != nil {
				t.Fatal(err)
			}
			for want := int64(1); want <= 3; want++ {
				if got := issueToken(t, store, "books"); got != want {
					t.Errorf("books = %d, want %d", got, want)
				}
			}
			if err := store.Adopt(ctx, sqlfence.Token{Name: "books", Value: 2}); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("Adopt of a lower token: %v", err)
			}
			if got, err := store.Current(ctx, "books"); err != nil || got.Value != 3 {
				t.Errorf("Current = %v, %v; want 3", got, err)
			}
		})
	}
}

// hold keeps others from writing to the ledger until release is called.
func hold(t *testing.T, b base, dsn string) (release func()) {
	t.Helper()
	conn, err := b.raw(t, dsn).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	begin := "BEGIN IMMEDIATE"
	if b.dialect == sqlfence.Postgres {
		begin = "BEGIN; LOCK TABLE fencing_tokens IN EXCLUSIVE MODE"
	}
	if _, err := conn.ExecContext(t.Context(), begin); err != nil {
		t.Fatal(err)
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
	eachBase(t, func(t *testing.T, b base) {
		ctx := t.Context()
		dsn := b.dsn(t)
		setupStore(t, b.raw(t, dsn))
		db, c := b.counted(t, dsn, sqlfence.WithTable("books"))
		store := newStore(t, db)
		if err := store.Adopt(ctx, sqlfence.Token{Name: "cups", Value: 2}); err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			name string
			call func() error
			want error
		}{
			{"Issue", func() error { _, err := store.Issue(ctx, "books"); return err }, nil},
			{"Ensure", func() error { return store.Ensure(ctx, "books", "pens") }, nil},
			{"Current", func() error { _, err := store.Current(ctx, "cups"); return err }, nil},
			{"Current, unknown", func() error { _, err := store.Current(ctx, "hats"); return err }, sqlfence.ErrUnknownName},
			{"Adopt", func() error { return store.Adopt(ctx, sqlfence.Token{Name: "books", Value: 100}) }, nil},
			{"Adopt, stale", func() error { return store.Adopt(ctx, sqlfence.Token{Name: "cups", Value: 1}) }, sqlfence.ErrStale},
		} {
			c.reset()
			if err := test.call(); !errors.Is(err, test.want) {
				t.Errorf("%s: %v, want %v", test.name, err, test.want)
			}
			if got := c.calls(); len(got) != 1 {
				t.Errorf("%s sent %v, want one statement", test.name, got)
			}
		}
	})
}

func TestTokensCoalesce(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		dsn := b.dsn(t)
		setupStore(t, b.raw(t, dsn))
		db, c := b.counted(t, dsn, sqlfence.WithTable("books"))
		store := newStore(t, db)
		release := hold(t, b, dsn)
		defer release()
		var coming, wg sync.WaitGroup
		defer wg.Wait()
		var mu sync.Mutex
		seen := make(map[int64]bool)
		for range 64 {
			coming.Add(1)
			wg.Go(func() {
				coming.Done()
				token, err := store.Issue(t.Context(), "books")
				mu.Lock()
				defer mu.Unlock()
				if err != nil || seen[token.Value] {
					t.Errorf("Issue = %v, %v", token, err)
				}
				seen[token.Value] = true
			})
		}
		coming.Wait()
		release()
		wg.Wait()
		// The first one's, one for the others, and some for those who were about
		// to call when the ledger was released.
		if got := c.texts(); len(got) > 16 {
			t.Errorf("64 callers sent %d statements", len(got))
		}
	})
}

func TestTokensCancelled(t *testing.T) {
	eachLedger(t, func(t *testing.T, b base, dsn string, db *sql.DB) {
		store := setupStore(t, db)
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := store.Issue(ended, "books"); !errors.Is(err, context.Canceled) {
			t.Errorf("Issue with an ended context: %v", err)
		}
		wantRows(t, db)

		release := hold(t, b, dsn)
		defer release()
		patient := make(chan error, 1)
		short := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, err := store.Issue(ctx, "books")
			if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > 5*time.Second {
				t.Errorf("Issue with a deadline: %v after %v", err, took)
			}
		}
		go func() {
			_, err := store.Issue(t.Context(), "books")
			patient <- err
		}()
		// They share a statement with the patient call, or come before or after.
		for range 3 {
			short()
		}
		select {
		case err := <-patient:
			t.Fatalf("the patient call returned %v while the ledger was held", err)
		default:
		}
		release()
		if err := <-patient; err != nil {
			t.Errorf("the patient call: %v", err)
		}
	})
}

// A cancelled call gives its connection back, also while the ledger is held.
func TestTokensCancelledFreesConnection(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		if b.dialect != sqlfence.Postgres {
			t.Skip("a SQLite connection waits for its busy_timeout")
		}
		dsn := b.dsn(t)
		db := b.raw(t, dsn)
		store := setupStore(t, db)
		defer hold(t, b, dsn)()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := store.Issue(ctx, "books"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Issue = %v", err)
		}
		for deadline := time.Now().Add(10 * time.Second); db.Stats().InUse > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the connection is still in use")
			}
		}
	})
}

// The row of a statement can arrive before its commit fails. Its token must not
// be given out: the next caller will get the same.
func TestTokensCommitFails(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		eachBase(t, func(t *testing.T, b base) {
			if b.dialect != sqlfence.Postgres {
				t.Skip("for PostgreSQL")
			}
			for _, mode := range []string{"", "simple_protocol"} {
				dsn := b.dsn(t)
				if mode != "" && b.name == "pgx" {
					dsn += "&default_query_exec_mode=" + mode
				}
				db := b.raw(t, dsn)
				store := setupStore(t, db)
				mustExec(t, db, "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''refused at commit''; END'")
				mustExec(t, db, `CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON fencing_tokens
					DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`)
				if token, err := store.Issue(t.Context(), "books"); err == nil || !strings.Contains(err.Error(), "refused at commit") {
					t.Errorf("Issue = %v, %v; want an error: nothing was committed", token, err)
				}
				if err := store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: 1}); err == nil {
					t.Error("Adopt succeeded, but nothing was committed")
				}
				wantRows(t, db)
			}
		})
	})
	t.Run("sqlite", func(t *testing.T) {
		eachBase(t, func(t *testing.T, b base) {
			if b.dialect != sqlfence.SQLite {
				t.Skip("for SQLite")
			}
			// With a rollback journal a reader holds off the commit, not the write.
			dsn := "file:" + filepath.Join(t.TempDir(), "test.db")
			db := b.raw(t, dsn)
			db.SetMaxOpenConns(1)
			mustExec(t, db, "PRAGMA busy_timeout = 50")
			store := setupStore(t, db)
			issueToken(t, store, "books")

			reader, err := b.raw(t, dsn).BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Rollback()
			var n int
			if err := reader.QueryRow("SELECT count(*) FROM fencing_tokens").Scan(&n); err != nil {
				t.Fatal(err)
			}
			if token, err := store.Issue(t.Context(), "books"); err == nil {
				t.Errorf("Issue = %v, but it was not committed", token)
			}
			if err := reader.Rollback(); err != nil {
				t.Fatal(err)
			}
			wantRows(t, db, "books=1")
			if got := issueToken(t, store, "books"); got != 2 {
				t.Errorf("token = %d, want 2", got)
			}
		})
	})
}

// A trigger that swallows the write must not make Issue go on for ever.
func TestTokensSwallowedByTrigger(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		db := b.raw(t, b.dsn(t))
		store := setupStore(t, db)
		if b.dialect == sqlfence.Postgres {
			mustExec(t, db, "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
			mustExec(t, db, "CREATE TRIGGER swallow BEFORE INSERT ON fencing_tokens FOR EACH ROW EXECUTE FUNCTION swallow()")
		} else {
			mustExec(t, db, "CREATE TRIGGER swallow BEFORE INSERT ON fencing_tokens BEGIN SELECT RAISE(IGNORE); END")
		}
		if token, err := store.Issue(t.Context(), "books"); err == nil || !strings.Contains(err.Error(), "trigger") {
			t.Errorf("Issue = %v, %v", token, err)
		}
		wantRows(t, db)
	})
}

func TestTokensNamesAreIndependent(t *testing.T) {
	eachLedger(t, func(t *testing.T, b base, dsn string, db *sql.DB) {
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
