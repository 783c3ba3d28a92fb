package drivers

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sqlfence/sqlfence"
)

// The traps that were found by running, each by its name on the real drivers.
// Those that need more than a statement have tests of their own:
//
//   - pgx's leading options, NamedArgs, QueryRewriter: TestPgxModes, TestPgxNamedArgs, TestPgxQueryRewriter
//   - lib/pq's COPY: TestPqCopy
//   - a driver's silent retry: TestRetryOfLostReply, TestRetrySingleUse
//   - prepared at start-up: TestPreparedBeforeTheTokenExists
//   - what sqlmw loses: TestTransparentRowsInterfaces, TestTransparentIsolation,
//     TestTransparentCancelledTransaction, TestPgxCopyFromThroughRaw; in the root
//     package TestBareConnection, TestConnectorIsClosed, TestResetterAndValidatorAreTheBases
//   - ErrSkip: TestErrSkip in the root package
//   - a plain subquery on the ledger, a snapshot older than the token:
//     TestG2LedgerWriteThatWaitsWhileATokenIsIssued
//   - everything that was refused for its shape: TestG4FailClosed
//
// A trap is a write on book 1. If it is guarded, a stale token changes nothing
// and a current one has the effect of the base driver alone. If not, both are
// refused before anything is sent.
type trap struct {
	write
	refused bool
	only    string // the base it is a trap of
	inserts bool   // new rows, which have no mark to be older than
	unrun   string // the base and the way that don't run it, fenced or not
}

var traps = map[sqlfence.Dialect][]trap{
	0: {
		{write: write{"trailing comment", "UPDATE books SET price = 30 WHERE id = 1 -- the first", nil}},
		{write: write{"comment that hides the end", "UPDATE books SET price = 30 -- WHERE id = 2", nil}},
		{write: write{"after a semicolon", "UPDATE books SET price = 30 WHERE id = 1;", nil}},
		{write: write{"after a semicolon and a comment", "DELETE FROM books WHERE id = 1 ; -- done", nil}, unrun: "mattn query"},
		{write: write{"label from", "UPDATE books SET price = 30 WHERE id = 1 RETURNING id AS \"from\"", nil}},
		{write: write{"FROM inside IS DISTINCT FROM", "UPDATE books SET price = 30 WHERE price IS DISTINCT FROM 30 AND id = 1", nil}},
		{write: write{"alias", "UPDATE books AS b SET price = 30 WHERE b.id = 1", nil}},
		{write: write{"self-join", "UPDATE books AS b SET price = o.price + 20 FROM books AS o WHERE b.id = 1 AND o.id = 2", nil}},
		{write: write{"injected parenthesis", "UPDATE books SET price = 30 WHERE id = 1) OR (true", nil}, refused: true},
		{write: write{"injected parenthesis in DELETE", "DELETE FROM books WHERE id = 1) OR (true", nil}, refused: true},
		{write: write{"several statements, the guarded one last", "SELECT 1; UPDATE books SET price = 30", nil}, refused: true},
	},
	sqlfence.Postgres: {
		{write: write{"parenthesised WITH", "(WITH x AS (DELETE FROM books WHERE id = 1 RETURNING id) SELECT id FROM x)", nil}},
		{write: write{"COPY of a DELETE", "COPY (DELETE FROM books WHERE id = 1 RETURNING id) TO STDOUT", nil}, refused: true},
		{write: write{"EXPLAIN ANALYZE", "EXPLAIN ANALYZE UPDATE books SET price = 30 WHERE id = 1", nil}},
		{write: write{"CTE named books", "WITH books AS (SELECT 1) DELETE FROM books WHERE id = 1", nil}},
		{write: write{"data-modifying CTE", "WITH x AS (UPDATE books SET price = 30 WHERE id = 1 RETURNING id) SELECT id FROM x", nil}},
		{write: write{"label where, unquoted", "UPDATE books SET price = 30 WHERE id = 1 RETURNING id AS where", nil}},
		{write: write{"untyped parameter", "UPDATE books SET price = $1 WHERE id = $2", []any{30, 1}}},
		{write: write{"parameters out of order", "UPDATE books SET price = $2 WHERE id = $1", []any{1, 30}}},
		{write: write{"parameter used twice", "UPDATE books SET price = $1 WHERE id = $2 AND price < $1", []any{30, 1}}},
		{write: write{"several statements with arguments", "UPDATE books SET price = $1 WHERE id = 1; SELECT 1", []any{30}}, refused: true},
		{write: write{"INSERT of a query with unknown literals", "INSERT INTO books (id, isbn, price) SELECT id + 6, 'new', '30' FROM books WHERE id = 1", nil}, inserts: true},
		// With the setting off the first is a string that never ends, and the second
		// another UPDATE.
		{write: write{"standard_conforming_strings, one reading", `UPDATE books SET isbn = 'a\' WHERE id = 1`, nil}},
		{write: write{"standard_conforming_strings, two readings", `UPDATE books SET isbn = 'a\', price = '1' --' WHERE id = 1`, nil}, refused: true},
		{write: write{"pgx's option before the arguments", setPrice, []any{pgx.QueryExecModeExec, 30, 1}}, only: "pgx"},
	},
	sqlfence.SQLite: {
		{write: write{"bare ? after the guard's place", "UPDATE books SET price = ? WHERE id = ?", []any{30, 1}}},
		{write: write{"? numbered out of order", "UPDATE books SET price = ?2 WHERE id = ?1", []any{1, 30}}},
		{write: write{"? once with and once without a number", "UPDATE books SET price = ?1 WHERE id = ?", []any{30, 1}}},
		{write: write{"$1 bound by order", "UPDATE books SET price = $1 WHERE id = $2", []any{30, 1}}},
		{write: write{"? in a DELETE, whose WHERE is written twice", "DELETE FROM books WHERE id = ? AND price < ?", []any{1, 99}}},
		{write: write{"arguments of several statements", "UPDATE books SET price = ? WHERE id = 1; UPDATE books SET price = ? WHERE id = 2", []any{30, 30}}, refused: true},
		{write: write{"update and select in one Query", "UPDATE books SET price = 30 WHERE id = 1; SELECT 1", nil}, refused: true},
	},
}

func TestTraps(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		for _, fence := range fences {
			s := newShop(t, b, fence.rule)
			for _, tr := range append(traps[0], traps[b.dialect]...) {
				if tr.only != "" && tr.only != b.name {
					continue
				}
				t.Run(fence.name+"/"+tr.name, func(t *testing.T) {
					for name, run := range ways {
						if len(name) > len("query") && tr.only != "" {
							continue // a prepared statement takes no options
						}
						s.trap(t, tr, name, run)
					}
				})
			}
		}
	})
}

// trap runs a trap in one way, with a stale and with a current token.
func (s *shop) trap(t *testing.T, tr trap, name string, run runFunc) {
	t.Helper()
	s.reset(t, 9)
	unchanged := s.unchanged(t)
	stale := run(holding(t, 8), s.db, tr.query, tr.args...)
	if tr.inserts {
		if stale != nil {
			wantStale(t, stale, 8, 9)
		}
	} else {
		unchanged()
	}
	if tr.refused {
		wantError(t, stale, sqlfence.ErrUnguardable)
		wantError(t, run(holding(t, 9), s.db, tr.query, tr.args...), sqlfence.ErrUnguardable)
		unchanged()
		return
	}
	if !tr.inserts && tr.unrun != s.name+" "+name {
		wantStale(t, stale, 8, 9)
	}
	s.reset(t, 9)
	if err := run(t.Context(), s.plain, tr.query, tr.args...); err != nil {
		t.Fatalf("%s of the base driver alone: %v", name, err)
	}
	want := s.state(t, false)
	s.reset(t, 9)
	if err := run(holding(t, 9), s.db, tr.query, tr.args...); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if got := s.state(t, false); got != want {
		t.Errorf("%s left %s; the base driver alone %s", name, got, want)
	}
}
