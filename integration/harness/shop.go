package harness

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// NewShop is a shop at the database's own isolation level.
func NewShop(t testing.TB, b Base, rules ...sqlfence.Rule) *Shop {
	t.Helper()
	return Setting{b, sql.LevelDefault}.Shop(t, rules...)
}

// What the tests of the guarantees share: a small shop as the database, the
// writes, and the ways to send them.

// A Setting is a base driver at an isolation level.
type Setting struct {
	Base
	Level sql.IsolationLevel // LevelDefault for the database's own, SQLite's one and only
}

// EachSetting runs test on every base, at every level that it knows.
func EachSetting(t *testing.T, test func(t *testing.T, s Setting)) {
	t.Helper()
	EachBase(t, func(t *testing.T, b Base) {
		if b.Dialect != sqlfence.Postgres {
			test(t, Setting{b, sql.LevelDefault})
			return
		}
		for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			t.Run(level.String(), func(t *testing.T) { test(t, Setting{b, level}) })
		}
	})
}

// EachPostgres is EachSetting on PostgreSQL alone: where a test has to see who
// waits for whom.
func EachPostgres(t *testing.T, test func(t *testing.T, s Setting)) {
	t.Helper()
	EachSetting(t, func(t *testing.T, s Setting) {
		if s.Dialect != sqlfence.Postgres {
			t.Skip("SQLite doesn't tell who waits")
		}
		test(t, s)
	})
}

// Fences are the two ways to keep the mark.
var Fences = []struct {
	Name string
	Rule sqlfence.Rule
}{
	{"row fence", sqlfence.RowFence("fence_token")},
	{"ledger", sqlfence.Ledger()},
}

// A Shop is a database with the tables books, which is fenced, pens, which is
// not, and the ledger.
type Shop struct {
	Setting
	Source string  // data source name, at the setting's level
	Plain  *sql.DB // the base driver alone, at the default level: to prepare and to look
	DB     *sql.DB // fenced, at the setting's level also outside of transactions
}

func (s Setting) Shop(t testing.TB, rules ...sqlfence.Rule) *Shop {
	t.Helper()
	dsn := s.DSN(t)
	// The disk need not survive anything here.
	switch s.Name {
	case "mattn":
		dsn += "&_synchronous=OFF"
	case "modernc":
		dsn += "&_pragma=synchronous(OFF)"
	}
	sh := &Shop{Setting: s, Source: dsn, Plain: s.Raw(t, dsn)}
	if s.Level != sql.LevelDefault {
		sh.Source += "&default_transaction_isolation=" + url.PathEscape(strings.ToLower(s.Level.String()))
	}
	for _, create := range []string{
		`CREATE TABLE books (
			id integer PRIMARY KEY, isbn text UNIQUE, price integer NOT NULL DEFAULT 10,
			writer bigint NOT NULL DEFAULT 0, fence_token bigint)`,
		`CREATE TABLE pens (id integer PRIMARY KEY, price integer)`,
		`CREATE TABLE fencing_tokens (name text NOT NULL PRIMARY KEY, token bigint NOT NULL)`,
	} {
		sh.Exec(t, create)
	}
	sh.DB = s.Fenced(t, sh.Source, Books(rules...))
	return sh
}

func Books(rules ...sqlfence.Rule) sqlfence.Option { return sqlfence.WithTable("books", rules...) }

// Exec executes around the fence.
func (s *Shop) Exec(t testing.TB, query string, args ...any) {
	t.Helper()
	if _, err := s.Plain.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// Reset leaves the books 1, 2 and 3 at price 10, and mark as the newest token
// seen by each and by the ledger.
func (s *Shop) Reset(t testing.TB, mark int64) {
	t.Helper()
	s.Exec(t, "DELETE FROM books")
	s.Exec(t, "DELETE FROM pens")
	s.Exec(t, fmt.Sprintf("INSERT INTO books (id, isbn, fence_token) VALUES (1, 'i1', %d), (2, 'i2', %[1]d), (3, 'i3', %[1]d)", mark))
	s.Raise(t, "books", mark)
}

// Raise makes the ledger say that value is the newest token of name.
func (s *Shop) Raise(t testing.TB, name string, value int64) {
	t.Helper()
	s.Exec(t, "INSERT INTO fencing_tokens (name, token) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET token = excluded.token", name, value)
}

// Issue takes the next token of the books. It does so by plain SQL, which the
// tests of the guards can rely on.
func (s *Shop) Issue(ctx context.Context) (value int64, err error) {
	const query = "INSERT INTO fencing_tokens (name, token) VALUES ('books', 1) ON CONFLICT (name) DO UPDATE SET token = fencing_tokens.token + 1 RETURNING token"
	err = s.Plain.QueryRowContext(ctx, query).Scan(&value)
	return value, err
}

// State tells the books as "id:price", and with their marks as "id:price@mark".
func (s *Shop) State(t testing.TB, marks bool) string {
	t.Helper()
	rows, err := s.Plain.QueryContext(t.Context(), "SELECT id, price, COALESCE(fence_token, 0) FROM books ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var id, price, mark int64
		if err := rows.Scan(&id, &price, &mark); err != nil {
			t.Fatal(err)
		}
		book := fmt.Sprintf("%d:%d", id, price)
		if marks {
			book += fmt.Sprintf("@%d", mark)
		}
		all = append(all, book)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// Unchanged returns a function that fails the test if a book has changed by then.
func (s *Shop) Unchanged(t testing.TB) func() {
	t.Helper()
	before := s.State(t, true)
	return func() {
		t.Helper()
		if after := s.State(t, true); after != before {
			t.Errorf("books were %s, now they are %s", before, after)
		}
	}
}

// Holding returns a context with a token of the books.
func Holding(t testing.TB, value int64) context.Context {
	return sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: value})
}

// WantStale fails the test unless err says in full which token was refused.
func WantStale(t testing.TB, err error, token, current int64) {
	t.Helper()
	var stale *sqlfence.StaleError
	if !errors.As(err, &stale) || !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("err = %v, want ErrStale", err)
		return
	}
	if stale.Table != "books" || stale.Token != (sqlfence.Token{Name: "books", Value: token}) || stale.Current != current {
		t.Errorf("%v: want table books, token %d, current %d", err, token, current)
	}
	if stale.Unwrap() == nil {
		t.Errorf("%v: the driver's own error is lost", err)
	}
}

// WantNotIssued fails the test unless err says in full which token nobody issued.
func WantNotIssued(t testing.TB, err error, token, current int64) {
	t.Helper()
	var refused *sqlfence.NotIssuedError
	if !errors.As(err, &refused) || !errors.Is(err, sqlfence.ErrNotIssued) || errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("err = %v, want ErrNotIssued", err)
		return
	}
	if refused.Table != "books" || refused.Token != (sqlfence.Token{Name: "books", Value: token}) || refused.Current != current {
		t.Errorf("%v: want table books, token %d, current %d", err, token, current)
	}
	if refused.Unwrap() == nil || refused.Temporary() {
		t.Errorf("%v: the driver's own error is lost, or it counts as temporary", err)
	}
}

// WantError fails the test unless err is target.
func WantError(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("err = %v, want %v", err, target)
	}
}

// SQLState returns PostgreSQL's code of an error, whichever driver reports it.
func SQLState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// RefusedByIsolation holds for what PostgreSQL itself refuses at REPEATABLE READ
// and SERIALIZABLE: a row changed after the snapshot was taken.
func RefusedByIsolation(err error) bool { return SQLState(err) == "40001" }

// Eventually waits until seen returns true, and fails the test if it takes too long.
func Eventually(t testing.TB, what string, seen func() bool) {
	t.Helper()
	limit := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !seen() {
		select {
		case <-limit:
			t.Fatalf("not seen in 30 s: %s", what)
		case <-tick.C:
		}
	}
}

// HoldingKeys returns a context with tokens of single books: key, value, ...
func HoldingKeys(t testing.TB, pairs ...int64) context.Context {
	ctx := t.Context()
	for pair := range slices.Chunk(pairs, 2) {
		ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: fmt.Sprintf("books/%d", pair[0]), Value: pair[1]})
	}
	return ctx
}

// Versions tells the books as "id:price#serial".
func (s *Shop) Versions(t testing.TB) string {
	t.Helper()
	rows, err := s.Plain.QueryContext(t.Context(), "SELECT id, price, COALESCE(CAST(serial AS text), 'null') FROM books ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var id, price int64
		var serial string
		if err := rows.Scan(&id, &price, &serial); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%d:%d#%s", id, price, serial))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func WithSerial(t testing.TB, serial int64) context.Context {
	return sqlfence.WithSerial(t.Context(), serial)
}

func CountBooks(t *testing.T, db *sql.DB) int {
	t.Helper()
	var n int
	if err := db.QueryRow("SELECT count(*) FROM books").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
