package errors_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// pool opens n connections of db and leaves them idle. It takes each connection from the pool twice, because pgx pings
// a connection that was never idle before.
func pool(t *testing.T, db *sql.DB, n int) {
	t.Helper()
	db.SetMaxIdleConns(n)
	for range 2 {
		conns := make([]*sql.Conn, n)
		for i := range conns {
			var err error
			if conns[i], err = db.Conn(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range conns {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := db.Stats().Idle; got != n {
		t.Fatalf("%d connections are idle, want %d", got, n)
	}
}

// kill ends the sessions whose application_name is name, and waits until they have ended.
func kill(t *testing.T, s *harness.Shop, name string, want int) {
	t.Helper()
	var n int
	if err := s.Plain.QueryRow("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1", name).Scan(&n); err != nil || n != want {
		t.Fatalf("%d sessions were ended, %v; want %d", n, err, want)
	}
	harness.Eventually(t, "the end of the sessions", func() bool { return sessions(t, s, name) == 0 })
}

func sessions(t *testing.T, s *harness.Shop, name string) (n int) {
	t.Helper()
	if err := s.Plain.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", name).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// If the server has ended idle connections, a connection notices this before it sends a guarded write. The write is
// sent once, on another connection. A PREPARE isn't a write, so its failure is the base driver's: pgx's call fails, and
// lib/pq's is repeated on another connection.
func TestIdleConnectionsThatWereKilled(t *testing.T) {
	harness.NeedPostgres(t)
	conns, writes := 5, 10
	if testing.Short() {
		conns, writes = 2, 4 // a busy machine opens connections slowly
	}
	for _, m := range tested() {
		t.Run(m.name, func(t *testing.T) {
			s := harness.NewShop(t, m.driver())
			for _, f := range harness.Forms {
				t.Run(f.Name, func(t *testing.T) {
					name := rand.Text()
					db := s.Fenced(t, s.Source+m.params+"&application_name="+name, harness.Books(sqlfence.RowFence("fence_token")))
					s.Reset(t, 9)
					pool(t, db, conns)
					kill(t, s, name, conns)
					failed := 0
					for range writes {
						n, err := f.Run(harness.Holding(t, 9), db, countedWrites[0])
						if errors.Is(err, sqlfence.ErrUnknownOutcome) {
							t.Errorf("the outcome of what wasn't sent: %v", err)
						}
						if n != 1 || err != nil {
							failed++
						}
					}
					prepares := m.base != "pq" && strings.HasPrefix(f.Name, "prepared")
					if failed > 0 && !prepares || failed > conns {
						t.Errorf("%d of %d writes failed", failed, writes)
					}
					wantPrice(t, s, 10+writes-failed)
				})
			}
		})
	}
}

// A statement that was prepared before is prepared again on another connection.
func TestIdleConnectionsThatWereKilledAfterPrepare(t *testing.T) {
	harness.NeedPostgres(t)
	for _, m := range tested() {
		t.Run(m.name, func(t *testing.T) {
			s := harness.NewShop(t, m.driver())
			name := rand.Text()
			db := s.Fenced(t, s.Source+m.params+"&application_name="+name, harness.Books(sqlfence.RowFence("fence_token")))
			db.SetMaxOpenConns(1)
			s.Reset(t, 9)
			_, err := harness.Prepared(t.Context(), db, countedWrites[0].Query, func(stmt *sql.Stmt) (int64, error) {
				for i := range 3 {
					if i > 0 {
						kill(t, s, name, 1)
					}
					if n, err := harness.Affected(stmt.ExecContext(harness.Holding(t, 9), 1, 1)); n != 1 || err != nil {
						t.Errorf("%d: %d rows, %v", i, n, err)
					}
				}
				return 0, nil
			})
			if err != nil {
				t.Error(err)
			}
			wantPrice(t, s, 13)
		})
	}
}

// If a session has ended before its transaction's COMMIT was sent, the transaction is lost, and this outcome is known.
func TestCommitOnASessionThatWasKilled(t *testing.T) {
	harness.NeedPostgres(t)
	for _, m := range tested() {
		t.Run(m.name, func(t *testing.T) {
			s := harness.NewShop(t, m.driver())
			name := rand.Text()
			db := s.Fenced(t, s.Source+m.params+"&application_name="+name, harness.Books(sqlfence.RowFence("fence_token")))
			s.Reset(t, 9)
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(harness.Holding(t, 9), harness.SetPrice, 30, 1); err != nil {
				t.Fatal(err)
			}
			kill(t, s, name, 1)
			if err := tx.Commit(); err == nil || errors.Is(err, sqlfence.ErrUnknownOutcome) {
				t.Errorf("Commit: %v", err)
			}
			wantPrice(t, s, 10)
		})
	}
}

// If the context has ended before a call, nothing is written, and the error isn't ErrUnknownOutcome, even on a
// connection that was taken from the pool before.
func TestWritesWithAnEndedContext(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"))
		s.Reset(t, 9)
		for _, f := range harness.Forms {
			unchanged := s.Unchanged(t)
			ctx, cancel := context.WithCancel(harness.Holding(t, 9))
			conn, err := s.DB.Conn(ctx)
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			for _, r := range []harness.Runner{s.DB, conn} {
				if _, err := f.Run(ctx, r, countedWrites[0].As(b.Dialect)); err == nil || errors.Is(err, sqlfence.ErrUnknownOutcome) {
					t.Errorf("%s: %v", f.Name, err)
				}
			}
			_ = conn.Close()
			unchanged()
		}
	})
}
