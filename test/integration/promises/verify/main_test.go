package verify_test

import (
	"database/sql"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
	"github.com/sqlfence/sqlfence/verify"
)

func TestMain(m *testing.M) { harness.Main(m) }

// bases has the bases of all databases.
var bases = append(slices.Clone(harness.Bases[:4]), harness.MySQL)

// A world is a database with the tables books and pens and the ledger. The database is the test's own, and has no
// fault.
type world struct {
	harness.Base
	dsn   string
	plain *sql.DB
	fresh []verify.Finding // the findings at first: only notes about the server
}

// eachWorld runs test on a world of every base, or, in a short run, of one base of each database.
func eachWorld(t *testing.T, test func(t *testing.T, w *world)) {
	for _, b := range harness.Chosen(bases) {
		t.Run(b.Name, func(t *testing.T) { test(t, newWorld(t, b)) })
	}
}

var created = map[sqlfence.Dialect][]string{
	sqlfence.Postgres: {
		"CREATE TABLE books (id integer PRIMARY KEY, price integer NOT NULL DEFAULT 10, title text, fence_token bigint NOT NULL DEFAULT 0, serial bigint NOT NULL DEFAULT 1," +
			" editedby text, editedsince timestamptz, editedexpiry timestamptz)",
		"CREATE TABLE pens (id integer PRIMARY KEY, price integer)",
	},
	sqlfence.SQLite: {
		"CREATE TABLE books (id integer PRIMARY KEY, price integer NOT NULL DEFAULT 10, title text, fence_token bigint NOT NULL DEFAULT 0, serial bigint NOT NULL DEFAULT 1," +
			" editedby text, editedsince integer, editedexpiry integer)",
		"CREATE TABLE pens (id integer PRIMARY KEY, price integer)",
	},
	sqlfence.MySQL: {
		"CREATE TABLE books (id integer PRIMARY KEY, price integer NOT NULL DEFAULT 10, title varchar(100), fence_token bigint NOT NULL DEFAULT 0, serial bigint NOT NULL DEFAULT 1," +
			" editedby varchar(100), editedsince bigint, editedexpiry bigint) ENGINE=InnoDB",
		"CREATE TABLE pens (id integer PRIMARY KEY, price integer) ENGINE=InnoDB",
	},
}

// allRules are rules with every column of books.
var allRules = []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Key("id"), sqlfence.Serial("serial"),
	sqlfence.EditLock("editedby", "editedsince", "editedexpiry")}

func newWorld(t *testing.T, b harness.Base) *world {
	t.Helper()
	w := &world{Base: b}
	switch b.Dialect {
	case sqlfence.Postgres:
		w.dsn = harness.PostgresDatabase(t)
	default:
		w.dsn = b.DSN(t)
	}
	w.plain = b.Raw(t, w.dsn)
	w.exec(t, created[b.Dialect]...)
	store, err := tokens.New(w.plain)
	if err == nil {
		err = store.Setup(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	found, known := fresh[b.Name]
	if !known {
		found = w.verify(t, harness.Books(allRules...))
		fresh[b.Name] = found
	}
	w.fresh = found
	for _, f := range w.fresh {
		if f.Level != slog.LevelInfo {
			t.Errorf("on a database that was set up just now: %v", f)
		}
	}
	return w
}

// fresh has the findings in a new world, by the base's name. All new worlds of a base have the same.
var fresh = make(map[string][]verify.Finding)

func (w *world) exec(t *testing.T, queries ...string) {
	t.Helper()
	for _, query := range queries {
		if _, err := w.plain.ExecContext(t.Context(), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
}

// verify returns the findings in the world's database.
func (w *world) verify(t *testing.T, opts ...sqlfence.Option) []verify.Finding {
	t.Helper()
	return checked(t, w.Fenced(t, w.dsn, opts...))
}

func checked(t *testing.T, db *sql.DB) []verify.Finding {
	t.Helper()
	found, err := verify.Check(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		for _, text := range []string{f.Problem, f.Remedy} {
			if !strings.HasSuffix(text, ".") || strings.ContainsAny(text, "\n\t") || strings.Contains(text, "%!") {
				t.Errorf("%q isn't a sentence", text)
			}
		}
	}
	return found
}

// news returns the findings that the fresh world didn't have.
func (w *world) news(t *testing.T, opts ...sqlfence.Option) []verify.Finding {
	t.Helper()
	return slices.DeleteFunc(w.verify(t, opts...), func(f verify.Finding) bool { return slices.Contains(w.fresh, f) })
}
