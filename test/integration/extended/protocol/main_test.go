// Package protocol_test tests docs/protocol.md and docs/data/protocol.md: programs without sqlfence write to fenced
// tables with the SQL of these pages.
package protocol_test

import (
	"database/sql"
	"os"
	"regexp"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// A library is the database of the pages' examples: the newest token of books is 42, and book 1 holds token 41.
type library struct {
	harness.Base
	dsn   string
	plain *sql.DB
}

// open creates the books with a fence column, without a ledger and without a seal.
func open(t *testing.T, b harness.Base) *library {
	t.Helper()
	dsn := b.DSN(t)
	l := &library{Base: b, dsn: dsn, plain: b.Raw(t, dsn)}
	harness.MustExec(t, l.plain, "CREATE TABLE books (id bigint PRIMARY KEY, title varchar(100), price bigint, fence_token bigint NOT NULL DEFAULT 0)")
	harness.MustExec(t, l.plain, "INSERT INTO books (id, title, price, fence_token) VALUES (1, 'one', 10, 41)")
	store := harness.NewStore(t, l.plain)
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// adopt makes 42 the newest token.
func (l *library) adopt(t *testing.T) {
	t.Helper()
	if err := harness.NewStore(t, l.plain).Adopt(t.Context(), sqlfence.Token{Name: "books", Value: 42}); err != nil {
		t.Fatal(err)
	}
}

// sealed creates the table and seals it, with the ledger.
func sealed(t *testing.T, b harness.Base) *library {
	t.Helper()
	l := open(t, b)
	l.adopt(t)
	db := l.Fenced(t, l.dsn, harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Sealed()))
	if err := schema.Seal(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return l
}

// want fails the test unless the books are these, each as id:price@token.
func (l *library) want(t *testing.T, want string) {
	t.Helper()
	if got := harness.Marks(t, l.plain); got != want {
		t.Errorf("the books are %s, want %s", got, want)
	}
}

// pages are the protocol, and the page of libraries and statements that few readers need.
var pages = []string{"../../../../docs/protocol.md", "../../../../docs/data/protocol.md"}

// block returns the pages' code block that follows the comment with this name.
func block(t *testing.T, name string) string {
	t.Helper()
	for _, file := range pages {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile("(?s)<!-- " + name + " -->\n```[a-z]+\n(.*?)```").FindStringSubmatch(string(page))
		if found != nil {
			return found[1]
		}
	}
	t.Fatalf("the pages have no block %q", name)
	return ""
}

// named returns the page's name of a database.
func named(b harness.Base) string {
	return map[sqlfence.Dialect]string{sqlfence.Postgres: "postgres", sqlfence.SQLite: "sqlite", sqlfence.MySQL: "mysql"}[b.Dialect]
}

// databases has one driver of each database.
var databases = []harness.Base{harness.Bases[1], harness.Bases[2], harness.MySQL}

func eachDatabase(t *testing.T, test func(t *testing.T, b harness.Base)) {
	for _, b := range databases {
		t.Run(named(b), func(t *testing.T) { test(t, b) })
	}
}
