package concurrency_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A statement was prepared at start-up, before the first token was issued. Each execution is compared with its own
// token.
func TestPreparedBeforeTheTokenExists(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		for _, fence := range harness.Fences {
			t.Run(fence.Name, func(t *testing.T) {
				sh := s.Shop(t, fence.Rule)
				for _, w := range harness.RowWrites {
					preparedBefore(t, sh, w)
					if usual := w.As(s.Dialect); usual.Query != w.Query {
						preparedBefore(t, sh, usual)
					}
				}
			})
		}
	})
}

func preparedBefore(t *testing.T, sh *harness.Shop, w harness.Write) {
	t.Helper()
	sh.Reset(t, 8)
	exec, err := sh.DB.Prepare(w.Query)
	if err != nil {
		t.Fatal(err)
	}
	returning := ""
	if sh.Returns() {
		returning = " RETURNING books.id"
	}
	query, err := sh.DB.Prepare(w.Query + returning)
	if err != nil {
		t.Fatal(err)
	}
	_, err = exec.ExecContext(t.Context(), w.Args...)
	harness.WantError(t, err, sqlfence.ErrNoFence)

	sh.Reset(t, 9)
	unchanged := sh.Unchanged(t)
	ctx := harness.Holding(t, 8)
	_, err = exec.ExecContext(ctx, w.Args...)
	harness.WantStale(t, err, 8, 9)
	_, err = harness.Returned(query.QueryContext(ctx, w.Args...))
	harness.WantStale(t, err, 8, 9)
	harness.WantStale(t, query.QueryRowContext(ctx, w.Args...).Scan(new(int)), 8, 9)
	err = sh.InTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.StmtContext(ctx, exec).ExecContext(ctx, w.Args...)
		return err
	})
	harness.WantStale(t, err, 8, 9)
	unchanged()

	if n, err := harness.Affected(exec.ExecContext(harness.Holding(t, 9), w.Args...)); n != sh.Updated(w) || err != nil {
		t.Errorf("%s: %d rows, %v", w.Name, n, err)
	}
	sh.Reset(t, 9)
	sh.Raise(t, "books", 10)
	if n, err := harness.Returned(query.QueryContext(harness.Holding(t, 10), w.Args...)); n != 1 && returning != "" || err != nil {
		t.Errorf("%s: %d rows, %v", w.Name, n, err)
	}
	if err := errors.Join(exec.Close(), query.Close()); err != nil {
		t.Error(err)
	}
}

// The refusal of a query arrives with the rows, or with the single row, like an error of the driver.
func TestRefusalOfAQueryThatReturnsRows(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		if !s.Returns() {
			t.Skip("MariaDB gives out rows before it meets the one that is refused: see test/integration/promises/mysql")
		}
		sh := s.Shop(t, sqlfence.RowFence("fence_token"))
		sh.Reset(t, 2)
		sh.Exec(t, "UPDATE books SET fence_token = 9 WHERE id = 3") // the last of the rows
		unchanged := sh.Unchanged(t)
		ctx := harness.Holding(t, 5)
		for _, query := range []string{"UPDATE books SET price = 30 RETURNING id, price", "DELETE FROM books RETURNING id, price"} {
			var id, price int
			harness.WantStale(t, sh.DB.QueryRowContext(ctx, query).Scan(&id, &price), 5, 9)
			n, err := harness.Returned(sh.DB.QueryContext(ctx, query))
			harness.WantStale(t, err, 5, 9)
			if n != 0 {
				t.Errorf("%s: %d rows of a statement that was refused", query, n)
			}
		}
		unchanged()
		if n, err := harness.Returned(sh.DB.QueryContext(harness.Holding(t, 9), "UPDATE books SET price = 30 RETURNING id, price")); n != 3 || err != nil {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}

// The stored token is in the database. So a new connection refuses stale writes, too, by plain and by prepared
// statements.
func TestReconnectKeepsRefusing(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		for _, fence := range harness.Fences {
			sh := s.Shop(t, fence.Rule)
			sh.Reset(t, 9)
			unchanged := sh.Unchanged(t)
			w := harness.RowWrites[0].As(s.Dialect)
			stmt, err := sh.DB.Prepare(w.Query)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				ctx := harness.Holding(t, 8)
				_, err := stmt.ExecContext(ctx, w.Args...)
				harness.WantStale(t, err, 8, 9)
				_, err = sh.DB.ExecContext(ctx, w.Query, w.Args...)
				harness.WantStale(t, err, 8, 9)
				dropConnections(t, sh)
			}
			unchanged()
			if err := harness.CloseStmt(stmt); err != nil {
				t.Error(err)
			}
		}
	})
}

// dropConnections makes the pool give up its connections.
func dropConnections(t *testing.T, s *harness.Shop) {
	t.Helper()
	for range s.DB.Stats().OpenConnections {
		conn, err := s.DB.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Raw(func(any) error { return driver.ErrBadConn }); !errors.Is(err, driver.ErrBadConn) {
			t.Fatal(err)
		}
	}
}

// If the server ends the session, the prepared statement is gone. Whatever the driver then does, no stale write
// succeeds.
func TestTerminatedSessionKeepsRefusing(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		for _, fence := range harness.Fences {
			sh := s.Shop(t, fence.Rule)
			sh.DB.SetMaxOpenConns(1)
			sh.Reset(t, 9)
			unchanged := sh.Unchanged(t)
			w := harness.RowWrites[0]
			stmt, err := sh.DB.Prepare(w.Query)
			if err != nil {
				t.Fatal(err)
			}
			for _, send := range map[string]func(context.Context) error{
				"exec":     func(ctx context.Context) error { _, err := sh.DB.ExecContext(ctx, w.Query, w.Args...); return err },
				"prepared": func(ctx context.Context) error { _, err := stmt.ExecContext(ctx, w.Args...); return err },
			} {
				var pid int
				if err := sh.DB.QueryRow("SELECT pg_backend_pid()").Scan(&pid); err != nil {
					t.Fatal(err)
				}
				sh.Exec(t, "SELECT pg_terminate_backend($1)", pid)
				harness.Eventually(t, "the write is refused on a new session", func() bool {
					err := send(harness.Holding(t, 8))
					if err == nil {
						t.Fatal("a stale write succeeded")
					}
					return errors.Is(err, sqlfence.ErrStale)
				})
			}
			unchanged()
			if err := harness.CloseStmt(stmt); err != nil {
				t.Error(err)
			}
		}
	})
}
