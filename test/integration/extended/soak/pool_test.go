package soak_test

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// After thousands of refusals under different tokens, the pool has no open transaction, no additional prepared
// statement and no additional goroutine.
func TestPoolAfterManyRefusals(t *testing.T) {
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			harness.EachBase(t, func(t *testing.T, b harness.Base) {
				const (
					clients  = 4
					refusals = 3_000 // for each kind of fence
					newest   = 1_000_000
				)
				sh := harness.Setting{Base: b}.Shop(t, fence.Rule)
				sh.DB.SetMaxOpenConns(clients)
				sh.DB.SetMaxIdleConns(clients)
				sh.Reset(t, newest)
				unchanged := sh.Unchanged(t)
				before := runtime.NumGoroutine()

				var wg sync.WaitGroup
				for client := range clients {
					wg.Go(func() {
						for i := range refusals / clients {
							token := int64(1 + client + i*clients)
							if err := refusal(harness.Holding(t, token), sh, i); !errors.Is(err, sqlfence.ErrStale) {
								t.Errorf("token %d: %v, want ErrStale", token, err)
								return
							}
						}
					})
				}
				wg.Wait()
				unchanged()

				if stats := sh.DB.Stats(); stats.InUse != 0 || stats.OpenConnections > clients {
					t.Errorf("pool: %+v", stats)
				}
				wantIdleSessions(t, sh, clients)
				if n, err := harness.Forms[0].Run(harness.Holding(t, newest), sh.DB, harness.RowWrites[0].As(b.Dialect)); n != 1 || err != nil {
					t.Errorf("a write by the newest token: %d rows, %v", n, err)
				}
				if err := sh.DB.Close(); err != nil {
					t.Error(err)
				}
				harness.Eventually(t, "no goroutine is left behind", func() bool { return runtime.NumGoroutine() <= before })
			})
		})
	}
}

// refusal sends a stale write. i selects the form of the call, the statement, and whether it runs in a transaction.
func refusal(ctx context.Context, s *harness.Shop, i int) error {
	forms := s.Forms()
	f, w := forms[i%len(forms)], harness.RowWrites[i/len(forms)%len(harness.RowWrites)].As(s.Dialect)
	if i/7%3 != 0 {
		_, err := f.Run(ctx, s.DB, w)
		return err
	}
	return s.InTx(ctx, func(tx *sql.Tx) error {
		_, err := f.Run(ctx, tx, w)
		return err
	})
}

// sessionTexts are queries about a session: how many statements it has prepared, and whether it is outside a
// transaction.
var sessionTexts = map[sqlfence.Dialect]struct{ statements, idle string }{
	sqlfence.Postgres: {
		statements: "SELECT count(*) FROM pg_prepared_statements",
		idle:       "SELECT state = 'idle' FROM pg_stat_activity WHERE pid = $1",
	},
	sqlfence.MySQL: {
		// There is no query for prepared statements, because MySQL only counts those of all sessions together.
		idle: "SELECT count(*) = 0 FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = $1",
	},
}

// wantIdleSessions fails the test if one of the pool's n sessions is in a transaction or has too many prepared
// statements.
func wantIdleSessions(t *testing.T, s *harness.Shop, n int) {
	t.Helper()
	var conns []*sql.Conn
	for range n {
		conn, err := s.DB.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		ask, ok := sessionTexts[s.Dialect]
		if !ok {
			continue
		}
		if ask.statements != "" {
			// pgx prepares each SQL string automatically, once per session.
			var statements int
			if err := conn.QueryRowContext(t.Context(), ask.statements).Scan(&statements); err != nil {
				t.Fatal(err)
			}
			if limit := 2 + 2*len(harness.Forms)*len(harness.RowWrites); statements > limit {
				t.Errorf("a session has %d prepared statements, want at most %d", statements, limit)
			}
		}
		session := s.Session(t, rowOf{t.Context(), conn})
		harness.Eventually(t, "the session is idle", func() (idle bool) {
			if err := s.Plain.QueryRowContext(t.Context(), ask.idle, session).Scan(&idle); err != nil {
				t.Fatal(err)
			}
			if !idle && s.Dialect == sqlfence.MySQL {
				time.Sleep(150 * time.Millisecond) // the server refreshes this table only after 100 ms without a read
			}
			return idle
		})
	}
	for _, conn := range conns {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if s.Dialect == sqlfence.SQLite {
		// The checkpoint fails with SQLITE_LOCKED, or reports busy, if a statement is open.
		var busy, log, done int
		if err := s.Plain.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &done); err != nil || busy != 0 {
			t.Errorf("checkpoint: busy = %d, %v", busy, err)
		}
	}
}

// A rowOf has the method QueryRow without a context.
type rowOf struct {
	ctx  context.Context
	conn *sql.Conn
}

func (r rowOf) QueryRow(query string, args ...any) *sql.Row {
	return r.conn.QueryRowContext(r.ctx, query, args...)
}
