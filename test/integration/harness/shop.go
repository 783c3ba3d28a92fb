package harness

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// A Shop is a database with the tables books, which is fenced, pens, which is
// not, and the ledger.
type Shop struct {
	Setting
	Source string  // data source name, at the setting's level
	Plain  *sql.DB // the base driver alone, at the default level: to prepare and to look
	DB     *sql.DB // fenced, at the setting's level also outside of transactions
}

// Shop creates the tables in a fresh database, and opens it with the rules on books.
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
		sh.Source = s.AtLevel(t, dsn, s.Level)
	}
	tables := []string{
		`CREATE TABLE books (
			id integer PRIMARY KEY, isbn text UNIQUE, price integer NOT NULL DEFAULT 10,
			writer bigint NOT NULL DEFAULT 0, fence_token bigint)`,
		`CREATE TABLE pens (id integer PRIMARY KEY, price integer)`,
		`CREATE TABLE fencing_tokens (name ` + s.dialect(t).ledgerName + ` NOT NULL PRIMARY KEY, token bigint NOT NULL)`,
	}
	if create := s.dialect(t).create; create != nil {
		create(t, dsn, tables...)
	} else {
		for _, table := range tables {
			sh.Exec(t, table)
		}
	}
	sh.DB = s.Fenced(t, sh.Source, Books(rules...))
	return sh
}

// NewShop is a Shop at the database's own isolation level.
func NewShop(t testing.TB, b Base, rules ...sqlfence.Rule) *Shop {
	t.Helper()
	return Setting{b, sql.LevelDefault}.Shop(t, rules...)
}

// Books registers the table books.
func Books(rules ...sqlfence.Rule) sqlfence.Option { return sqlfence.WithTable("books", rules...) }

// Exec executes around the fence, and around the triggers that keep the ledger.
func (s *Shop) Exec(t testing.TB, query string, args ...any) {
	t.Helper()
	_, err := s.Plain.ExecContext(t.Context(), query, args...)
	switch {
	case IsKept(err):
		Unkept(t, s.Plain, query, args...)
	case err != nil:
		t.Fatalf("%s: %v", query, err)
	}
}

// Reset leaves the books 1, 2 and 3 at price 10, with mark as the stored token of each. In the ledger, mark becomes the
// newest token of books, and of the keys' names, such as books/2 for the key 2.
func (s *Shop) Reset(t testing.TB, mark int64, keys ...string) {
	t.Helper()
	tokens := fmt.Sprintf("('books', %d)", mark)
	for _, key := range keys {
		tokens += fmt.Sprintf(", ('books/%s', %d)", key, mark)
	}
	statements := []string{
		"DELETE FROM books",
		"DELETE FROM pens",
		fmt.Sprintf("INSERT INTO books (id, isbn, fence_token) VALUES (1, 'i1', %d), (2, 'i2', %[1]d), (3, 'i3', %[1]d)", mark),
		"INSERT INTO fencing_tokens (name, token) VALUES " + tokens + " ON CONFLICT (name) DO UPDATE SET token = excluded.token",
	}
	if s.dialect(t).scripts { // one round trip
		statements = []string{strings.Join(statements, "; ")}
	}
	for _, statement := range statements {
		s.Exec(t, statement)
	}
}

// Raise makes the ledger say that value is the newest token of name.
func (s *Shop) Raise(t testing.TB, name string, value int64) {
	t.Helper()
	s.Exec(t, "INSERT INTO fencing_tokens (name, token) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET token = excluded.token", name, value)
}

// Issue takes the next token of the books by plain SQL, so that the tests of guards don't depend on package tokens.
func (s *Shop) Issue(ctx context.Context) (value int64, err error) {
	return dialects[s.Dialect].issue(ctx, s.Plain)
}

// Updated returns the count that the database reports for one row that a write has changed.
func (b Base) Updated(w Write) int64 {
	if w.Name == "upsert" {
		return dialects[b.Dialect].upserts
	}
	return 1
}

// Guarded are the writes for which the database has a guard by a fence, of [Fences], in a
// table with a Key.
func (b Base) Guarded(fence string, writes ...[]Write) []Write {
	return slices.DeleteFunc(slices.Concat(writes...), func(w Write) bool { return slices.Contains(dialects[b.Dialect].refuses, fence+": "+w.Name) })
}

// Returns reports whether each kind of write may have a RETURNING.
func (b Base) Returns() bool { return dialects[b.Dialect].returns }

// Scripts reports whether several statements of registered tables may stand in one text.
func (b Base) Scripts() bool { return dialects[b.Dialect].scripts }

// RefusesChanged reports whether the database, above READ COMMITTED, refuses to write a row that
// has changed since the transaction has read it.
func (b Base) RefusesChanged() bool { return dialects[b.Dialect].snapshots }

// LedgerName is the type of the names in the ledger.
func (b Base) LedgerName() string { return dialects[b.Dialect].ledgerName }

// Session asks for the number of a connection's session, for [Shop.WantBlocked].
func (b Base) Session(t testing.TB, q interface {
	QueryRow(string, ...any) *sql.Row
}) (number int) {
	t.Helper()
	if err := q.QueryRow(b.dialect(t).session).Scan(&number); err != nil {
		t.Fatal(err)
	}
	return number
}

// TimeType is the type of a column for the times of a lock.
func (b Base) TimeType() string { return dialects[b.Dialect].timeType }

// Time writes a time as a constant of that type; NULL for the zero one.
func (b Base) Time(at time.Time) string {
	if at.IsZero() {
		return "NULL"
	}
	return dialects[b.Dialect].constant(at)
}

// Runnable are the writes that the server runs; see [Shop.Runs].
func (s *Shop) Runnable(t testing.TB, writes []Write) (all []Write) {
	t.Helper()
	for _, w := range writes {
		if s.Runs(t, w.As(s.Dialect).Query, w.Args...) {
			all = append(all, w)
		}
	}
	if len(all) <= len(writes)/2 {
		t.Fatalf("of %d writes the server runs %d", len(writes), len(all))
	}
	return all
}

// Runs reports whether the database's server runs a text, without sqlfence. Only for a
// database that has servers of several makers it may not.
func (s *Shop) Runs(t testing.TB, query string, args ...any) bool {
	t.Helper()
	tx, err := s.Plain.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	_, err = tx.ExecContext(t.Context(), query, args...)
	if err != nil && !s.dialect(t).variants {
		t.Fatalf("%s: %v", query, err)
	}
	return err == nil
}

// State returns the books as "id:price", and with their marks as "id:price@mark".
func (s *Shop) State(t testing.TB, marks bool) string {
	t.Helper()
	return listBooks(t, s.Plain, "COALESCE(fence_token, 0)", func(id, price int64, mark string) string {
		if marks {
			return fmt.Sprintf("%d:%d@%s", id, price, mark)
		}
		return fmt.Sprintf("%d:%d", id, price)
	})
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

// Marks returns the books of a database as "id:price@mark", none of them NULL.
func Marks(t testing.TB, db *sql.DB) string {
	t.Helper()
	return listBooks(t, db, "fence_token", func(id, price int64, mark string) string { return fmt.Sprintf("%d:%d@%s", id, price, mark) })
}

// listBooks shows each book, with its price and another column, by a function.
func listBooks(t testing.TB, db *sql.DB, column string, show func(id, price int64, value string) string) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT id, price, "+column+" FROM books ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var id, price int64
		var value string
		if err := rows.Scan(&id, &price, &value); err != nil {
			t.Fatal(err)
		}
		all = append(all, show(id, price, value))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// Versions returns the books, which have a serial then, as "id:price#serial".
func (s *Shop) Versions(t testing.TB) string {
	t.Helper()
	return listBooks(t, s.Plain, "COALESCE(CAST(serial AS text), 'null')", func(id, price int64, serial string) string {
		return fmt.Sprintf("%d:%d#%s", id, price, serial)
	})
}

// CountBooks returns how many rows the table books of any database has.
func CountBooks(t *testing.T, db *sql.DB) int {
	t.Helper()
	var n int
	if err := db.QueryRow("SELECT count(*) FROM books").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
