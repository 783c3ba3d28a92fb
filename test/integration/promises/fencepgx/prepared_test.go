package fencepgx_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// If a prepared statement has a text as its name, pgx runs this statement for the text. The statement is guarded under
// every name, wherever it was prepared.
func TestPreparedNames(t *testing.T) {
	names := []string{
		"set_price", "set price", " set_price", "SELECT 1", "SELECT id FROM books", "-- x",
		"UPDATE pens SET price = 1", "/* a */ set_price", "select 'é'",
	}
	prepare := func(ctx context.Context, c *pgx.Conn) error {
		for _, name := range names {
			if _, err := c.Prepare(ctx, name, setPrice); err != nil {
				return err
			}
		}
		return nil
	}
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			hooked := newShopBy(t, fence.Rule, func(c *pgxpool.Config) { c.AfterConnect = prepare })
			own := newShop(t, fence.Rule)
			for _, name := range names {
				for _, w := range ways {
					hooked.staleThenFresh(t, fmt.Sprintf("%q by %s", name, w.name), func(ctx context.Context) error {
						return w.run(ctx, hooked.db, name, 30, 1)
					})
					own.staleThenFresh(t, fmt.Sprintf("own %q by %s", name, w.name), func(ctx context.Context) error {
						return pgx.BeginFunc(t.Context(), own.db, func(tx pgx.Tx) error {
							if _, err := tx.Prepare(t.Context(), name, setPrice); err != nil {
								return err
							}
							return w.run(ctx, tx, name, 30, 1)
						})
					})
				}
			}
			// A rewriter may return such a name, too.
			hooked.staleThenFresh(t, "a rewriter", func(ctx context.Context) error {
				return ways[0].run(ctx, hooked.db, "anything", rewriteTo{"set price", []any{30, 1}})
			})
			// SQL's EXECUTE runs a prepared statement without the guard.
			hooked.Reset(t, 9)
			unchanged := hooked.Unchanged(t)
			for _, text := range []string{
				"EXECUTE set_price(30, 1)", `execute "SELECT 1"(30, 1)`, `EXPLAIN ANALYZE EXECUTE "set price"(30, 1)`,
				`EXECUTE U&"set\0020price"(30, 1)`, "/* a */ EXECUTE/**/ SET_PRICE (30, 1)",
			} {
				_, err := hooked.db.Exec(harness.Holding(t, 9), text, pgx.QueryExecModeSimpleProtocol)
				harness.WantOnly(t, err, sqlfence.ErrUnguardable)
				_, err = hooked.db.Exec(harness.Holding(t, 9), "x", rewriteTo{text, nil})
				harness.WantOnly(t, err, sqlfence.ErrUnguardable)
			}
			unchanged()
		})
	}
}

// rewriteTo is a rewriter that replaces any statement by this one.
type rewriteTo struct {
	text string
	args []any
}

func (r rewriteTo) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return r.text, r.args, nil
}

// The texts that pgx sends for transactions aren't taken for names of prepared statements.
func TestPreparedAsTransactions(t *testing.T) {
	const write = "UPDATE books SET price = 99"
	for _, name := range []string{"begin", "commit", "rollback", "savepoint sp_1", "release savepoint sp_1", "rollback to savepoint sp_1", "begin isolation level serializable read write deferrable"} {
		s := newShopBy(t, sqlfence.Ledger(), func(c *pgxpool.Config) {
			c.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
				_, err := c.Prepare(ctx, name, write)
				return err
			}
		})
		unchanged := s.Unchanged(t)
		var opts pgx.TxOptions
		if strings.HasPrefix(name, "begin ") {
			opts = pgx.TxOptions{IsoLevel: pgx.Serializable, AccessMode: pgx.ReadWrite, DeferrableMode: pgx.Deferrable}
		}
		err := pgx.BeginTxFunc(t.Context(), s.db, opts, func(tx pgx.Tx) error {
			return pgx.BeginFunc(t.Context(), tx, func(pgx.Tx) error { return nil })
		})
		harness.WantOnly(t, err, sqlfence.ErrUnguardable)
		unchanged()
		if name == "commit" || name == "rollback" { // a batch sends BEGIN as one of its statements
			b := new(pgx.Batch)
			b.BeginTx(opts)
			harness.WantOnly(t, s.db.SendBatch(t.Context(), b).Close(), sqlfence.ErrUnguardable)
		}
		unchanged()
	}
	s := newShop(t, sqlfence.Ledger())
	unchanged := s.Unchanged(t)
	for _, opts := range []pgx.TxOptions{
		{BeginQuery: "begin; " + write}, {CommitQuery: write + "; commit"}, {IsoLevel: "serializable; " + write},
		{IsoLevel: "serializable --\n; " + write + "; select 1"},
		{AccessMode: "read write; " + write + "; select 1 as"},
	} {
		_, err := s.db.BeginTx(t.Context(), opts)
		harness.WantOnly(t, err, sqlfence.ErrUnguardable)
		b := new(pgx.Batch)
		b.BeginTx(opts)
		harness.WantOnly(t, s.db.SendBatch(t.Context(), b).Close(), sqlfence.ErrUnguardable)
	}
	unchanged()
}

// A prepared statement that needs no guard runs by its name, as in pgx.
func TestPreparedPasses(t *testing.T) {
	s := newShop(t, sqlfence.Ledger())
	c, err := s.db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	if _, err := c.Prepare(t.Context(), "count all", "SELECT count(*) FROM books WHERE id < $1"); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := c.QueryRow(t.Context(), "count all", 3).Scan(&n); err != nil || n != 2 {
		t.Errorf("%d, %v", n, err)
	}
	if err := c.Deallocate(t.Context(), "count all"); err != nil {
		t.Error(err)
	}
	if err := c.QueryRow(t.Context(), "count all", 3).Scan(&n); harness.SQLState(err) != "42601" {
		t.Error(err)
	}
	if _, err := c.Exec(t.Context(), "PREPARE reading AS SELECT 1"); err != nil {
		t.Error(err)
	}
	if _, err := c.Exec(t.Context(), "EXECUTE reading"); err != nil {
		t.Error(err)
	}
}

// The connection's own queries need no prepared statement, which the application may have dropped.
func TestOwnQueriesAfterDeallocateAll(t *testing.T) {
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			s := newShop(t, fence.Rule)
			s.Reset(t, 9)
			ctx := harness.Holding(t, 9)
			c, err := s.db.Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Release()
			for _, query := range []string{
				"BEGIN", "SELECT set_config('search_path', current_setting('search_path'), false)",
				"UPDATE books SET price = 1 WHERE id = 1", "PREPARE read AS SELECT 1", "EXECUTE read",
				"DEALLOCATE ALL", "UPDATE books SET price = 2 WHERE id = 1",
				"PREPARE read AS SELECT 1", "EXECUTE read", "DEALLOCATE ALL", "PREPARE read AS SELECT 1", "EXECUTE read",
				"UPDATE books SET price = 3 WHERE id = 1", "DEALLOCATE ALL", "COMMIT",
			} {
				if _, err := c.Exec(ctx, query); err != nil {
					t.Fatalf("%s: %v", query, err)
				}
			}
		})
	}
}
