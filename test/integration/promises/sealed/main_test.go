// Package sealed_test tests sealed tables: no client gets past the seal, and a fenced database writes as before.
package sealed_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

func TestMain(m *testing.M) { harness.Main(m) }

// bases are the drivers of the databases whose tables can be sealed.
var bases = []harness.Base{harness.Bases[0], harness.Bases[1], harness.MySQL, harness.MySQLInterpolated, harness.Native}

// postgres are the drivers of PostgreSQL.
var postgres = []harness.Base{harness.Bases[0], harness.Bases[1], harness.Native}

func eachBase(t *testing.T, test func(t *testing.T, b harness.Base)) {
	for _, b := range harness.Chosen(bases) {
		t.Run(b.Name, func(t *testing.T) { test(t, b) })
	}
}

// byTransactions makes the labs' seals on PostgreSQL accept a transaction's token, too. Such seals must refuse the same
// attacks.
var byTransactions = os.Getenv("SQLFENCE_SEALED_FROM_TRANSACTION") == "1"

func sealed(b harness.Base) sqlfence.Rule {
	if byTransactions && b.Dialect == sqlfence.Postgres {
		return sqlfence.Sealed(sqlfence.FromTransaction())
	}
	return sqlfence.Sealed()
}

// A lab is a database with the table books, and the rules of its seal.
type lab struct {
	harness.Base
	dsn   string
	plain *sql.DB // the base driver alone
	db    *sql.DB // fenced
	rules []sqlfence.Rule

	unique string // makes names unique among tests
}

// newLab creates the tables, with the ledger's token 7, and seals them.
func newLab(t testing.TB, b harness.Base, rules ...sqlfence.Rule) *lab {
	t.Helper()
	l := newUnsealed(t, b, rules...)
	l.seal(t)
	return l
}

func newUnsealed(t testing.TB, b harness.Base, rules ...sqlfence.Rule) *lab {
	t.Helper()
	dsn := b.DSN(t)
	l := &lab{Base: b, dsn: dsn, plain: b.Raw(t, dsn), unique: strings.ToLower(rand.Text()), rules: append([]sqlfence.Rule{sqlfence.RowFence("fence_token"), sealed(b)}, rules...)}
	l.exec(t, "CREATE TABLE authors (id integer PRIMARY KEY, name varchar(20))")
	l.exec(t, "CREATE TABLE books (id integer PRIMARY KEY, price integer NOT NULL DEFAULT 10, author integer, fence_token bigint NOT NULL DEFAULT 0)")
	l.exec(t, "INSERT INTO books (id, fence_token) VALUES (1, 7), (2, 7), (3, 0)")
	l.db = l.open(t)
	store, err := tokens.New(l.db)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.Adopt(t.Context(), token(7)); err != nil {
		t.Fatal(err)
	}
	return l
}

// open opens the database fenced, with the lab's rules.
func (l *lab) open(t testing.TB) *sql.DB {
	t.Helper()
	return l.Fenced(t, l.dsn, sqlfence.WithTable("books", l.rules...))
}

func (l *lab) seal(t testing.TB) {
	t.Helper()
	if err := schema.Seal(t.Context(), l.db); err != nil {
		t.Fatal(err)
	}
}

func (l *lab) exec(t testing.TB, query string) {
	t.Helper()
	harness.MustExec(t, l.plain, query)
}

// books returns the rows of the table.
func (l *lab) books(t testing.TB) string {
	t.Helper()
	return harness.Marks(t, l.plain)
}

func (l *lab) want(t testing.TB, books string) {
	t.Helper()
	if got := l.books(t); got != books {
		t.Errorf("books are %s, want %s", got, books)
	}
}

func token(value int64) sqlfence.Token { return sqlfence.Token{Name: "books", Value: value} }

// holding returns a context with a token.
func holding(t testing.TB, value int64) context.Context {
	return sqlfence.WithFence(t.Context(), token(value))
}

// placeholders replaces {1} and {2} by the database's placeholders.
func placeholders(l *lab, text string) string {
	for i := 1; i <= 2; i++ {
		mark := "?"
		if l.Dialect == sqlfence.Postgres {
			mark = fmt.Sprint("$", i)
		}
		text = strings.ReplaceAll(text, fmt.Sprintf("{%d}", i), mark)
	}
	return text
}
