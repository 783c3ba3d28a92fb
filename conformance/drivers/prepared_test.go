package drivers

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// A statement that was prepared at start-up, long before there was a token,
// compares with the token of each execution.
func TestPreparedBeforeTheTokenExists(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		for _, fence := range fences {
			t.Run(fence.name, func(t *testing.T) {
				sh := s.shop(t, fence.rule)
				for _, w := range rowWrites {
					preparedBefore(t, sh, w)
					if usual := w.as(s.dialect); usual.query != w.query {
						preparedBefore(t, sh, usual)
					}
				}
			})
		}
	})
}

func preparedBefore(t *testing.T, sh *shop, w write) {
	t.Helper()
	sh.reset(t, 8)
	exec, err := sh.db.Prepare(w.query)
	if err != nil {
		t.Fatal(err)
	}
	query, err := sh.db.Prepare(w.query + " RETURNING books.id")
	if err != nil {
		t.Fatal(err)
	}
	_, err = exec.ExecContext(t.Context(), w.args...)
	wantError(t, err, sqlfence.ErrNoFence)

	sh.reset(t, 9)
	unchanged := sh.unchanged(t)
	ctx := holding(t, 8)
	_, err = exec.ExecContext(ctx, w.args...)
	wantStale(t, err, 8, 9)
	_, err = returned(query.QueryContext(ctx, w.args...))
	wantStale(t, err, 8, 9)
	wantStale(t, query.QueryRowContext(ctx, w.args...).Scan(new(int)), 8, 9)
	err = sh.inTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.StmtContext(ctx, exec).ExecContext(ctx, w.args...)
		return err
	})
	wantStale(t, err, 8, 9)
	unchanged()

	if n, err := affected(exec.ExecContext(holding(t, 9), w.args...)); n != 1 || err != nil {
		t.Errorf("%s: %d rows, %v", w.name, n, err)
	}
	sh.reset(t, 9)
	sh.raise(t, "books", 10)
	if n, err := returned(query.QueryContext(holding(t, 10), w.args...)); n != 1 || err != nil {
		t.Errorf("%s: %d rows, %v", w.name, n, err)
	}
	if err := errors.Join(exec.Close(), query.Close()); err != nil {
		t.Error(err)
	}
}

// A refusal comes with the rows, or with the one row, as an error of the driver
// would.
func TestRefusalOfAQueryThatReturnsRows(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.RowFence("fence_token"))
		sh.reset(t, 2)
		sh.exec(t, "UPDATE books SET fence_token = 9 WHERE id = 3") // met last
		unchanged := sh.unchanged(t)
		ctx := holding(t, 5)
		for _, query := range []string{"UPDATE books SET price = 30 RETURNING id, price", "DELETE FROM books RETURNING id, price"} {
			var id, price int
			wantStale(t, sh.db.QueryRowContext(ctx, query).Scan(&id, &price), 5, 9)
			n, err := returned(sh.db.QueryContext(ctx, query))
			wantStale(t, err, 5, 9)
			if n != 0 {
				t.Errorf("%s: %d rows of a statement that was refused", query, n)
			}
		}
		unchanged()
		if n, err := returned(sh.db.QueryContext(holding(t, 9), "UPDATE books SET price = 30 RETURNING id, price")); n != 3 || err != nil {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}

// The mark is in the database: a new connection changes nothing, neither for
// plain statements nor for one prepared before.
func TestReconnectKeepsRefusing(t *testing.T) {
	eachSetting(t, func(t *testing.T, s setting) {
		for _, fence := range fences {
			sh := s.shop(t, fence.rule)
			sh.reset(t, 9)
			unchanged := sh.unchanged(t)
			w := rowWrites[0].as(s.dialect)
			stmt, err := sh.db.Prepare(w.query)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				ctx := holding(t, 8)
				_, err := stmt.ExecContext(ctx, w.args...)
				wantStale(t, err, 8, 9)
				_, err = sh.db.ExecContext(ctx, w.query, w.args...)
				wantStale(t, err, 8, 9)
				sh.dropConnections(t)
			}
			unchanged()
			if err := stmt.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// dropConnections makes the pool give up its connections.
func (s *shop) dropConnections(t *testing.T) {
	t.Helper()
	for range s.db.Stats().OpenConnections {
		conn, err := s.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Raw(func(any) error { return driver.ErrBadConn }); !errors.Is(err, driver.ErrBadConn) {
			t.Fatal(err)
		}
	}
}

// A server that ends the session takes the statement with it: whatever the
// driver does about it, a stale write is not among it.
func TestTerminatedSessionKeepsRefusing(t *testing.T) {
	eachPostgres(t, func(t *testing.T, s setting) {
		for _, fence := range fences {
			sh := s.shop(t, fence.rule)
			sh.db.SetMaxOpenConns(1)
			sh.reset(t, 9)
			unchanged := sh.unchanged(t)
			w := rowWrites[0]
			stmt, err := sh.db.Prepare(w.query)
			if err != nil {
				t.Fatal(err)
			}
			for _, send := range map[string]func(context.Context) error{
				"exec":     func(ctx context.Context) error { _, err := sh.db.ExecContext(ctx, w.query, w.args...); return err },
				"prepared": func(ctx context.Context) error { _, err := stmt.ExecContext(ctx, w.args...); return err },
			} {
				var pid int
				if err := sh.db.QueryRow("SELECT pg_backend_pid()").Scan(&pid); err != nil {
					t.Fatal(err)
				}
				sh.exec(t, "SELECT pg_terminate_backend($1)", pid)
				eventually(t, "the write is refused on a new session", func() bool {
					err := send(holding(t, 8))
					if err == nil {
						t.Fatal("a stale write succeeded")
					}
					return errors.Is(err, sqlfence.ErrStale)
				})
			}
			unchanged()
			if err := stmt.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
