package drivers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// What the tests of the guarantees share: a small shop as the database, the
// writes, and the ways to send them.

// A setting is a base driver at an isolation level.
type setting struct {
	base
	level sql.IsolationLevel // LevelDefault for the database's own, SQLite's one and only
}

// eachSetting runs test on every base, at every level that it knows.
func eachSetting(t *testing.T, test func(t *testing.T, s setting)) {
	t.Helper()
	eachBase(t, func(t *testing.T, b base) {
		if b.dialect != sqlfence.Postgres {
			test(t, setting{b, sql.LevelDefault})
			return
		}
		for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			t.Run(level.String(), func(t *testing.T) { test(t, setting{b, level}) })
		}
	})
}

// eachPostgres is eachSetting on PostgreSQL alone: where a test has to see who
// waits for whom.
func eachPostgres(t *testing.T, test func(t *testing.T, s setting)) {
	t.Helper()
	eachSetting(t, func(t *testing.T, s setting) {
		if s.dialect != sqlfence.Postgres {
			t.Skip("SQLite doesn't tell who waits")
		}
		test(t, s)
	})
}

// fences are the two ways to keep the mark.
var fences = []struct {
	name string
	rule sqlfence.Rule
}{
	{"row fence", sqlfence.RowFence("fence_token")},
	{"ledger", sqlfence.Ledger()},
}

// A shop is a database with the tables books, which is fenced, pens, which is
// not, and the ledger.
type shop struct {
	setting
	source string  // data source name, at the setting's level
	plain  *sql.DB // the base driver alone, at the default level: to prepare and to look
	db     *sql.DB // fenced, at the setting's level also outside of transactions
}

func (s setting) shop(t testing.TB, rules ...sqlfence.Rule) *shop {
	t.Helper()
	dsn := s.dsn(t)
	// The disk need not survive anything here.
	switch s.name {
	case "mattn":
		dsn += "&_synchronous=OFF"
	case "modernc":
		dsn += "&_pragma=synchronous(OFF)"
	}
	sh := &shop{setting: s, source: dsn, plain: s.raw(t, dsn)}
	if s.level != sql.LevelDefault {
		sh.source += "&default_transaction_isolation=" + url.PathEscape(strings.ToLower(s.level.String()))
	}
	for _, create := range []string{
		`CREATE TABLE books (
			id integer PRIMARY KEY, isbn text UNIQUE, price integer NOT NULL DEFAULT 10,
			writer bigint NOT NULL DEFAULT 0, fence_token bigint)`,
		`CREATE TABLE pens (id integer PRIMARY KEY, price integer)`,
		`CREATE TABLE fencing_tokens (name text NOT NULL PRIMARY KEY, token bigint NOT NULL)`,
	} {
		sh.exec(t, create)
	}
	sh.db = s.fenced(t, sh.source, books(rules...))
	return sh
}

func books(rules ...sqlfence.Rule) sqlfence.Option { return sqlfence.WithTable("books", rules...) }

// exec executes around the fence.
func (s *shop) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	if _, err := s.plain.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// reset leaves the books 1, 2 and 3 at price 10, and mark as the newest token
// seen by each and by the ledger.
func (s *shop) reset(t testing.TB, mark int64) {
	t.Helper()
	s.exec(t, "DELETE FROM books")
	s.exec(t, "DELETE FROM pens")
	s.exec(t, fmt.Sprintf("INSERT INTO books (id, isbn, fence_token) VALUES (1, 'i1', %d), (2, 'i2', %[1]d), (3, 'i3', %[1]d)", mark))
	s.raise(t, "books", mark)
}

// raise makes the ledger say that value is the newest token of name.
func (s *shop) raise(t testing.TB, name string, value int64) {
	t.Helper()
	s.exec(t, "INSERT INTO fencing_tokens (name, token) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET token = excluded.token", name, value)
}

// issue takes the next token of the books. It does so by plain SQL, which the
// tests of the guards can rely on.
func (s *shop) issue(ctx context.Context) (value int64, err error) {
	const query = "INSERT INTO fencing_tokens (name, token) VALUES ('books', 1) ON CONFLICT (name) DO UPDATE SET token = fencing_tokens.token + 1 RETURNING token"
	err = s.plain.QueryRowContext(ctx, query).Scan(&value)
	return value, err
}

// state tells the books as "id:price", and with their marks as "id:price@mark".
func (s *shop) state(t testing.TB, marks bool) string {
	t.Helper()
	rows, err := s.plain.QueryContext(t.Context(), "SELECT id, price, COALESCE(fence_token, 0) FROM books ORDER BY id")
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

// unchanged returns a function that fails the test if a book has changed by then.
func (s *shop) unchanged(t testing.TB) func() {
	t.Helper()
	before := s.state(t, true)
	return func() {
		t.Helper()
		if after := s.state(t, true); after != before {
			t.Errorf("books were %s, now they are %s", before, after)
		}
	}
}

// holding returns a context with a token of the books.
func holding(t testing.TB, value int64) context.Context {
	return sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: value})
}

// wantStale fails the test unless err says in full which token was refused.
func wantStale(t testing.TB, err error, token, current int64) {
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

// wantNotIssued fails the test unless err says in full which token nobody issued.
func wantNotIssued(t testing.TB, err error, token, current int64) {
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

// wantError fails the test unless err is target.
func wantError(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("err = %v, want %v", err, target)
	}
}

// sqlCode returns PostgreSQL's code of an error, whichever driver reports it.
func sqlCode(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// refusedByIsolation holds for what PostgreSQL itself refuses at REPEATABLE READ
// and SERIALIZABLE: a row changed after the snapshot was taken.
func refusedByIsolation(err error) bool { return sqlCode(err) == "40001" }

// eventually waits until seen returns true, and fails the test if it takes too long.
func eventually(t testing.TB, what string, seen func() bool) {
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
