package statements_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The traps are statements that once were guarded wrongly or broke, on the real drivers. A trap that needs more than
// one statement has a test of its own:
//
//   - pgx's leading options, NamedArgs, QueryRewriter: TestPgxModes, TestPgxNamedArgs, TestPgxQueryRewriter
//   - lib/pq's COPY: TestPqCopy
//   - a driver's silent retry: TestRetryOfLostReply, TestRetrySingleUse
//   - prepared at start-up: TestPreparedBeforeTheTokenExists
//   - what sqlmw loses: TestG7TransparentRowsInterfaces, TestG7TransparentIsolation,
//     TestG7TransparentCancelledTransaction, TestPgxCopyFromThroughRaw; in the root
//     package TestBareConnection, TestConnectorIsClosed, TestResetterAndValidatorAreTheBases
//   - ErrSkip: TestErrSkip in the root package
//   - a plain subquery on the ledger, a snapshot older than the token:
//     TestG2LedgerWriteThatWaitsWhileATokenIsIssued
//   - everything that was refused for its shape: TestG4FailClosed
//
// A trap is a write on book 1. If sqlfence guards it, a stale token changes nothing, and with the current token it has
// the effect that it has by the base driver. If sqlfence refuses it, both tokens are refused before a statement is
// sent.
type trap struct {
	harness.Write
	refused bool
	only    string // the only base with this trap
	inserts bool   // it adds rows, which have no stored token to compare
	unrun   string // the base and the way by which it can't run, fenced or not
}

var traps = map[sqlfence.Dialect][]trap{
	0: {
		{Write: harness.Write{Name: "trailing comment", Query: "UPDATE books SET price = 30 WHERE id = 1 -- the first", Args: nil}},
		{Write: harness.Write{Name: "comment that hides the end", Query: "UPDATE books SET price = 30 -- WHERE id = 2", Args: nil}},
		{Write: harness.Write{Name: "after a semicolon", Query: "UPDATE books SET price = 30 WHERE id = 1;", Args: nil}},
		{Write: harness.Write{Name: "after a semicolon and a comment", Query: "DELETE FROM books WHERE id = 1 ; -- done", Args: nil}, unrun: "mattn query"},
		{Write: harness.Write{Name: "label from", Query: "UPDATE books SET price = 30 WHERE id = 1 RETURNING id AS \"from\"", Args: nil}},
		{Write: harness.Write{Name: "alias", Query: "UPDATE books AS b SET price = 30 WHERE b.id = 1", Args: nil}},
		{Write: harness.Write{Name: "injected parenthesis", Query: "UPDATE books SET price = 30 WHERE id = 1) OR (true", Args: nil}, refused: true},
		{Write: harness.Write{Name: "injected parenthesis in DELETE", Query: "DELETE FROM books WHERE id = 1) OR (true", Args: nil}, refused: true},
	},
	sqlfence.Postgres: {
		{Write: harness.Write{Name: "FROM inside IS DISTINCT FROM", Query: "UPDATE books SET price = 30 WHERE price IS DISTINCT FROM 30 AND id = 1", Args: nil}},
		{Write: harness.Write{Name: "self-join", Query: "UPDATE books AS b SET price = o.price + 20 FROM books AS o WHERE b.id = 1 AND o.id = 2", Args: nil}},
		{Write: harness.Write{Name: "parenthesised WITH", Query: "(WITH x AS (DELETE FROM books WHERE id = 1 RETURNING id) SELECT id FROM x)", Args: nil}},
		{Write: harness.Write{Name: "COPY of a DELETE", Query: "COPY (DELETE FROM books WHERE id = 1 RETURNING id) TO STDOUT", Args: nil}, refused: true},
		{Write: harness.Write{Name: "EXPLAIN ANALYZE", Query: "EXPLAIN ANALYZE UPDATE books SET price = 30 WHERE id = 1", Args: nil}},
		{Write: harness.Write{Name: "CTE named books", Query: "WITH books AS (SELECT 1) DELETE FROM books WHERE id = 1", Args: nil}},
		{Write: harness.Write{Name: "data-modifying CTE", Query: "WITH x AS (UPDATE books SET price = 30 WHERE id = 1 RETURNING id) SELECT id FROM x", Args: nil}},
		{Write: harness.Write{Name: "label where, unquoted", Query: "UPDATE books SET price = 30 WHERE id = 1 RETURNING id AS where", Args: nil}},
		{Write: harness.Write{Name: "untyped parameter", Query: "UPDATE books SET price = $1 WHERE id = $2", Args: []any{30, 1}}},
		{Write: harness.Write{Name: "parameters out of order", Query: "UPDATE books SET price = $2 WHERE id = $1", Args: []any{1, 30}}},
		{Write: harness.Write{Name: "parameter used twice", Query: "UPDATE books SET price = $1 WHERE id = $2 AND price < $1", Args: []any{30, 1}}},
		{Write: harness.Write{Name: "several statements with arguments", Query: "UPDATE books SET price = $1 WHERE id = 1; SELECT 1", Args: []any{30}}, refused: true},
		{Write: harness.Write{Name: "INSERT of a query with unknown literals", Query: "INSERT INTO books (id, isbn, price) SELECT id + 6, 'new', '30' FROM books WHERE id = 1", Args: nil}, inserts: true},
		{Write: harness.Write{Name: "INSERT of a query with a CTE named like the ledger", Query: "INSERT INTO books (id, isbn, price) WITH fencing_tokens AS (SELECT 'books' AS name, 99::bigint AS token) SELECT 7, 'new', 30 FROM fencing_tokens", Args: nil}, inserts: true},
		// If the setting is off, the first string never ends, and the second is another string.
		{Write: harness.Write{Name: "standard_conforming_strings, one reading", Query: `UPDATE books SET isbn = 'a\' WHERE id = 1`, Args: nil}},
		{Write: harness.Write{Name: "standard_conforming_strings, two readings", Query: `UPDATE books SET price = 30, isbn = 'a\' WHERE id = 1 --' OR true`, Args: nil}},
		{Write: harness.Write{Name: "pgx's option before the arguments", Query: harness.SetPrice, Args: []any{pgx.QueryExecModeExec, 30, 1}}, only: "pgx"},
	},
	sqlfence.SQLite: {
		{Write: harness.Write{Name: "FROM inside IS DISTINCT FROM", Query: "UPDATE books SET price = 30 WHERE price IS DISTINCT FROM 30 AND id = 1", Args: nil}},
		{Write: harness.Write{Name: "self-join", Query: "UPDATE books AS b SET price = o.price + 20 FROM books AS o WHERE b.id = 1 AND o.id = 2", Args: nil}},
		{Write: harness.Write{Name: "bare ? after the guard's place", Query: "UPDATE books SET price = ? WHERE id = ?", Args: []any{30, 1}}},
		{Write: harness.Write{Name: "? numbered out of order", Query: "UPDATE books SET price = ?2 WHERE id = ?1", Args: []any{1, 30}}},
		{Write: harness.Write{Name: "? once with and once without a number", Query: "UPDATE books SET price = ?1 WHERE id = ?", Args: []any{30, 1}}},
		{Write: harness.Write{Name: "$1 bound by order", Query: "UPDATE books SET price = $1 WHERE id = $2", Args: []any{30, 1}}},
		{Write: harness.Write{Name: "? in a DELETE, whose WHERE is written twice", Query: "DELETE FROM books WHERE id = ? AND price < ?", Args: []any{1, 99}}},
		{Write: harness.Write{Name: "arguments of several statements", Query: "UPDATE books SET price = ? WHERE id = 1; UPDATE books SET price = ? WHERE id = 2", Args: []any{30, 30}}, refused: true},
	},
	sqlfence.MySQL: {
		{Write: harness.Write{Name: "comment behind a #", Query: "UPDATE books SET price = 30 WHERE id = 1 # the first", Args: nil}},
		{Write: harness.Write{Name: "two signs that begin no comment", Query: "UPDATE books SET price = 40--10 WHERE id = 1", Args: nil}},
		{Write: harness.Write{Name: "equal NULLs", Query: "UPDATE books SET price = 30 WHERE NOT price <=> 30 AND id = 1", Args: nil}},
		{Write: harness.Write{Name: "self-join", Query: "UPDATE books AS b JOIN books AS o ON o.id = 2 SET b.price = o.price + 20 WHERE b.id = 1", Args: nil}},
		{Write: harness.Write{Name: "comment that is executed", Query: "UPDATE books SET price = 30 /*! WHERE id = 1 */", Args: nil}, refused: true},
		{Write: harness.Write{Name: "comment that MariaDB executes", Query: "DELETE FROM books /*M! WHERE id = 1 */", Args: nil}, refused: true},
		{Write: harness.Write{Name: "ANALYZE UPDATE", Query: "ANALYZE UPDATE books SET price = 30 WHERE id = 1", Args: nil}, refused: true},
		{Write: harness.Write{Name: "backslash before a quote", Query: `UPDATE books SET isbn = 'a\', price = 30 -- ' WHERE id = 1`, Args: nil}},
		{Write: harness.Write{Name: "? in a DELETE, whose WHERE is written twice", Query: "DELETE FROM books WHERE id = ? AND price < ? AND id IN (SELECT 1)", Args: []any{1, 99}}},
		{Write: harness.Write{Name: "several statements", Query: "UPDATE books SET price = 30 WHERE id = 1; SELECT 1", Args: nil}, refused: true},
	},
}

func TestTraps(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, fence := range harness.Fences {
			s := harness.NewShop(t, b, fence.Rule)
			for _, tr := range append(traps[0], traps[b.Dialect]...) {
				if tr.only != "" && tr.only != b.DriverName {
					continue
				}
				t.Run(fence.Name+"/"+tr.Name, func(t *testing.T) {
					for name, run := range harness.Ways {
						if len(name) > len("query") && tr.only != "" {
							continue // a prepared statement takes no options
						}
						springTrap(t, s, tr, name, run)
					}
				})
			}
		}
	})
}

// springTrap runs a trap in one way, with a stale and with a current token.
func springTrap(t *testing.T, s *harness.Shop, tr trap, name string, run harness.RunFunc) {
	t.Helper()
	s.Reset(t, 9)
	unchanged := s.Unchanged(t)
	stale := run(harness.Holding(t, 8), s.DB, tr.Query, tr.Args...)
	if tr.inserts {
		if stale != nil {
			harness.WantStale(t, stale, 8, 9)
		}
	} else {
		unchanged()
	}
	if tr.refused {
		harness.WantError(t, stale, sqlfence.ErrUnguardable)
		harness.WantError(t, run(harness.Holding(t, 9), s.DB, tr.Query, tr.Args...), sqlfence.ErrUnguardable)
		unchanged()
		return
	}
	if !tr.inserts && tr.unrun != s.Name+" "+name {
		harness.WantStale(t, stale, 8, 9)
	}
	s.Reset(t, 9)
	if err := run(t.Context(), s.Plain, tr.Query, tr.Args...); err != nil {
		t.Fatalf("%s of the base driver alone: %v", name, err)
	}
	want := s.State(t, false)
	s.Reset(t, 9)
	if err := run(harness.Holding(t, 9), s.DB, tr.Query, tr.Args...); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if got := s.State(t, false); got != want {
		t.Errorf("%s left %s; the base driver alone %s", name, got, want)
	}
}

// A statement may join a table of the same name in another schema if it names both schemas and uses no alias.
func TestNamesakeInAnotherSchemaMayBeJoined(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("only PostgreSQL has search paths")
		}
		for _, fence := range harness.Fences {
			s := harness.NewShop(t, b, fence.Rule)
			var schema string
			if err := s.Plain.QueryRowContext(t.Context(), "SELECT current_schema()").Scan(&schema); err != nil {
				t.Fatal(err)
			}
			named := strings.NewReplacer("old.books", schema+"_old.books", "new.books", schema+".books").Replace
			s.Exec(t, "CREATE SCHEMA "+schema+"_old")
			s.Exec(t, named("CREATE TABLE old.books AS SELECT 1 AS id, 30 AS price"))
			for _, query := range []string{
				"UPDATE new.books SET price = old.books.price FROM old.books WHERE old.books.id = new.books.id",
				"DELETE FROM new.books USING old.books WHERE old.books.id = new.books.id",
				"INSERT INTO new.books (id, price) SELECT id, price FROM old.books WHERE true ON CONFLICT (id) DO UPDATE SET price = new.books.price + 1",
			} {
				springTrap(t, s, trap{Write: harness.Write{Query: named(query)}}, "exec", harness.Ways["exec"])
			}
			s.Exec(t, "DROP SCHEMA "+schema+"_old CASCADE")
		}
	})
}
