package drivers

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// Refusals are everyday events: after ten thousand of them, by tokens that are
// all different, the pool is as healthy as before and has lost nothing.
func TestPoolAfterTenThousandRefusals(t *testing.T) {
	for _, fence := range fences {
		t.Run(fence.name, func(t *testing.T) {
			eachBase(t, func(t *testing.T, b base) {
				const (
					clients  = 4
					refusals = 5_000 // for each of the two kinds of fence
					newest   = 1_000_000
				)
				sh := setting{base: b}.shop(t, fence.rule)
				sh.db.SetMaxOpenConns(clients)
				sh.db.SetMaxIdleConns(clients)
				sh.reset(t, newest)
				unchanged := sh.unchanged(t)
				before := runtime.NumGoroutine()

				var wg sync.WaitGroup
				for client := range clients {
					wg.Go(func() {
						for i := range refusals / clients {
							token := int64(1 + client + i*clients)
							if err := sh.refusal(holding(t, token), i); !errors.Is(err, sqlfence.ErrStale) {
								t.Errorf("token %d: %v, want ErrStale", token, err)
								return
							}
						}
					})
				}
				wg.Wait()
				unchanged()

				if stats := sh.db.Stats(); stats.InUse != 0 || stats.OpenConnections > clients {
					t.Errorf("pool: %+v", stats)
				}
				sh.wantIdleSessions(t, clients)
				if n, err := forms[0].run(holding(t, newest), sh.db, rowWrites[0].as(b.dialect)); n != 1 || err != nil {
					t.Errorf("a write by the newest token: %d rows, %v", n, err)
				}
				if err := sh.db.Close(); err != nil {
					t.Error(err)
				}
				eventually(t, "no goroutine is left behind", func() bool { return runtime.NumGoroutine() <= before })
			})
		})
	}
}

// refusal sends a stale write in the form and by the kind of runner that is
// number i's turn.
func (s *shop) refusal(ctx context.Context, i int) error {
	f, w := forms[i%len(forms)], rowWrites[i/len(forms)%len(rowWrites)].as(s.dialect)
	if i/7%3 != 0 {
		_, err := f.run(ctx, s.db, w)
		return err
	}
	return s.inTx(ctx, func(tx *sql.Tx) error {
		_, err := f.run(ctx, tx, w)
		return err
	})
}

// wantIdleSessions looks into the sessions of the pool, which has at most n:
// none is in a transaction, and none has gathered prepared statements.
func (s *shop) wantIdleSessions(t *testing.T, n int) {
	t.Helper()
	var conns []*sql.Conn
	for range n {
		conn, err := s.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		if s.dialect == sqlfence.SQLite {
			continue
		}
		// pgx keeps the statements that it prepares on its own, each text once.
		var statements int
		if err := conn.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_prepared_statements").Scan(&statements); err != nil {
			t.Fatal(err)
		}
		if limit := 2 + 2*len(forms)*len(rowWrites); statements > limit {
			t.Errorf("a session has %d prepared statements, want at most %d", statements, limit)
		}
		var pid int
		if err := conn.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the session is idle", func() bool {
			var state string
			if err := s.plain.QueryRowContext(t.Context(), "SELECT state FROM pg_stat_activity WHERE pid = $1", pid).Scan(&state); err != nil {
				t.Fatal(err)
			}
			return state == "idle"
		})
	}
	for _, conn := range conns {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if s.dialect == sqlfence.SQLite {
		// Fails with SQLITE_LOCKED or reports busy if a statement is left open.
		var busy, log, done int
		if err := s.plain.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &done); err != nil || busy != 0 {
			t.Errorf("checkpoint: busy = %d, %v", busy, err)
		}
	}
}
