package drivers

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// A stale write that waits for a lock decides by what has been committed when
// it gets the lock, not by what it saw when it began.

// A blocker is a transaction around the fence that holds the row lock, or the
// key, which the write under test needs.
type blocker struct {
	tx  *sql.Tx
	pid int
}

func (s *shop) block(t *testing.T, w write) *blocker {
	t.Helper()
	tx, err := s.plain.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // for a test that fails early
	b := &blocker{tx: tx}
	query := "SELECT id FROM books WHERE id = 1 FOR UPDATE"
	if strings.HasPrefix(w.name, "insert") {
		query = "INSERT INTO books (id, isbn) VALUES (7, 'i7')"
	}
	if _, err := tx.Exec(query); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow("SELECT pg_backend_pid()").Scan(&b.pid); err != nil {
		t.Fatal(err)
	}
	return b
}

// wantBlocked waits until somebody waits for a lock that the backend pid holds.
// It fails the test if done is closed before, which tells that nobody will.
func (s *shop) wantBlocked(t *testing.T, pid int, done <-chan struct{}) {
	t.Helper()
	blocked := 0
	eventually(t, "somebody waits for the lock", func() bool {
		select {
		case <-done:
			t.Error("went on without waiting for the lock")
			return true
		default:
		}
		const query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND $1 = ANY (pg_blocking_pids(pid))"
		if err := s.plain.QueryRow(query, pid).Scan(&blocked); err != nil {
			t.Fatal(err)
		}
		return blocked > 0
	})
}

// wantRefused fails the test unless err says that token 8 is stale because of 9,
// or that the isolation level forbids to go on.
func (s *shop) wantRefused(t *testing.T, err error) {
	t.Helper()
	if s.level != sql.LevelReadCommitted && refusedByIsolation(err) {
		return
	}
	wantStale(t, err, 8, 9)
}

// eachWaiting runs test for each kind of write, by itself and in a transaction;
// start sends the write with token 8, and the channel gives its outcome.
func (s *shop) eachWaiting(t *testing.T, writes []write, test func(t *testing.T, w write, start func() (<-chan struct{}, *error))) {
	for _, w := range writes {
		for _, inTx := range []bool{false, true} {
			name := w.name
			if inTx {
				name += " in a transaction"
			}
			t.Run(name, func(t *testing.T) {
				s.reset(t, 8)
				test(t, w, func() (<-chan struct{}, *error) {
					done, result := make(chan struct{}), new(error)
					ctx := holding(t, 8)
					go func() {
						defer close(done)
						if !inTx {
							_, *result = forms[0].run(ctx, s.db, w)
							return
						}
						*result = s.inTx(ctx, func(tx *sql.Tx) error {
							_, err := forms[0].run(ctx, tx, w)
							return err
						})
					}()
					return done, result
				})
			})
		}
	}
}

func TestG2LedgerWriteThatWaitsWhileATokenIsIssued(t *testing.T) {
	eachPostgres(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.Ledger())
		writes := slices.Concat(rowWrites, freshInserts)
		sh.eachWaiting(t, writes, func(t *testing.T, w write, start func() (<-chan struct{}, *error)) {
			unchanged := sh.unchanged(t)
			b := sh.block(t, w)
			done, result := start()
			sh.wantBlocked(t, b.pid, done)
			if token, err := sh.issue(t.Context()); token != 9 || err != nil {
				t.Fatalf("issue: %d, %v", token, err)
			}
			// Nothing changed, so that no isolation level has a reason of its own.
			if err := b.tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			<-done
			sh.wantRefused(t, *result)
			unchanged()
		})
	})
}

func TestG1RowFenceWriteThatWaitsWhileANewerOneIsWritten(t *testing.T) {
	eachPostgres(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.RowFence("fence_token"))
		sh.eachWaiting(t, rowWrites, func(t *testing.T, w write, start func() (<-chan struct{}, *error)) {
			ctx := holding(t, 9)
			newer, err := sh.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.level})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = newer.Rollback() }) // for a test that fails early
			if n, err := forms[0].run(ctx, newer, rowWrites[0]); n != 1 || err != nil {
				t.Fatalf("newer write: %d rows, %v", n, err)
			}
			var pid int
			if err := newer.QueryRow("SELECT pg_backend_pid()").Scan(&pid); err != nil {
				t.Fatal(err)
			}
			done, result := start()
			sh.wantBlocked(t, pid, done)
			if err := newer.Commit(); err != nil {
				t.Fatal(err)
			}
			<-done
			sh.wantRefused(t, *result)
			if got := sh.state(t, true); got != "1:30@9 2:10@8 3:10@8" {
				t.Errorf("%s left %s", w.name, got)
			}
		})
	})
}

// The same where the newer write is an INSERT, so that there is no row to lock
// when the older one begins.
func TestG1RowFenceUpsertThatWaitsForANewerInsert(t *testing.T) {
	eachPostgres(t, func(t *testing.T, s setting) {
		sh := s.shop(t, sqlfence.RowFence("fence_token"))
		upsert := write{"upsert", "INSERT INTO books (id, isbn, price) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET price = excluded.price", []any{7, "i7", 40}}
		sh.eachWaiting(t, []write{upsert}, func(t *testing.T, w write, start func() (<-chan struct{}, *error)) {
			ctx := holding(t, 9)
			newer, err := sh.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.level})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = newer.Rollback() }) // for a test that fails early
			if _, err := newer.ExecContext(ctx, "INSERT INTO books (id, isbn, price) VALUES (7, 'i7', 30)"); err != nil {
				t.Fatal(err)
			}
			var pid int
			if err := newer.QueryRow("SELECT pg_backend_pid()").Scan(&pid); err != nil {
				t.Fatal(err)
			}
			done, result := start()
			sh.wantBlocked(t, pid, done)
			if err := newer.Commit(); err != nil {
				t.Fatal(err)
			}
			<-done
			sh.wantRefused(t, *result)
			if got := sh.state(t, true); got != "1:10@8 2:10@8 3:10@8 7:30@9" {
				t.Errorf("left %s", got)
			}
		})
	})
}

// SQLite's writers wait for the one that holds the file.
func TestG1G2WriteThatWaitsForTheFile(t *testing.T) {
	eachBase(t, func(t *testing.T, b base) {
		if b.dialect != sqlfence.SQLite {
			t.Skip("the other tests see who waits in PostgreSQL")
		}
		for _, fence := range fences {
			sh := setting{base: b}.shop(t, fence.rule)
			sh.eachWaiting(t, rowWrites, func(t *testing.T, w write, start func() (<-chan struct{}, *error)) {
				newer, err := sh.plain.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer newer.Close()
				for _, query := range []string{
					"BEGIN IMMEDIATE",
					"UPDATE books SET price = 30, fence_token = 9 WHERE id = 1",
					"UPDATE fencing_tokens SET token = 9",
				} {
					if _, err := newer.ExecContext(t.Context(), query); err != nil {
						t.Fatal(err)
					}
				}
				done, result := start()
				if _, err := newer.ExecContext(t.Context(), "COMMIT"); err != nil {
					t.Fatal(err)
				}
				<-done
				wantStale(t, *result, 8, 9)
				if got := sh.state(t, true); got != "1:30@9 2:10@8 3:10@8" {
					t.Errorf("%s left %s", w.name, got)
				}
			})
		}
	})
}

// A transaction whose snapshot is older than the newer token doesn't get its
// write through either. SQLite's begins with a read, so that it has one.
func TestG1G2WriteAfterAnOldSnapshot(t *testing.T) {
	for _, fence := range fences {
		t.Run(fence.name, func(t *testing.T) {
			eachSetting(t, func(t *testing.T, s setting) {
				sh := s.shop(t, fence.rule)
				for _, w := range rowWrites {
					sh.reset(t, 8)
					ctx := holding(t, 8)
					err := sh.inTx(ctx, func(tx *sql.Tx) error {
						if err := tx.QueryRow("SELECT count(*) FROM books").Scan(new(int)); err != nil {
							t.Fatal(err)
						}
						if fence.name == "ledger" {
							if _, err := sh.issue(t.Context()); err != nil {
								t.Fatal(err)
							}
						} else if n, err := forms[0].run(holding(t, 9), sh.db, rowWrites[0]); n != 1 || err != nil {
							t.Fatalf("newer write: %d rows, %v", n, err)
						}
						unchanged := sh.unchanged(t)
						defer unchanged()
						_, err := forms[0].run(ctx, tx, w)
						return err
					})
					switch {
					case s.dialect == sqlfence.SQLite && err != nil: // SQLITE_BUSY_SNAPSHOT: the snapshot can't be written to
					default:
						sh.wantRefused(t, err)
					}
				}
			})
		})
	}
}
