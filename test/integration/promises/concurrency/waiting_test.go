package concurrency_test

import (
	"context"
	"database/sql"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A stale write that waits for a lock is compared with the row that is committed when it gets the lock, not with the
// row of its first read.

// wantRefused fails the test unless err reports token 8 as stale because of 9, or is a serialization failure.
func wantRefused(t *testing.T, s *harness.Shop, err error) {
	t.Helper()
	if s.Level > sql.LevelReadCommitted && harness.RefusedByIsolation(err) {
		return
	}
	harness.WantStale(t, err, 8, 9)
}

// eachWaiting runs test for each kind of write, by itself and in a transaction. start sends the write with token 8; it
// returns a channel that is closed when the write has ended, and the write's error.
func eachWaiting(t *testing.T, s *harness.Shop, writes []harness.Write, test func(t *testing.T, w harness.Write, start func() (<-chan struct{}, *error))) {
	for _, w := range writes {
		for _, inTx := range []bool{false, true} {
			name := w.Name
			if inTx {
				name += " in a transaction"
			}
			t.Run(name, func(t *testing.T) {
				s.Reset(t, 8)
				test(t, w, func() (<-chan struct{}, *error) {
					done, result := make(chan struct{}), new(error)
					ctx := harness.Holding(t, 8)
					go func() {
						defer close(done)
						if !inTx {
							_, *result = harness.Forms[0].Run(ctx, s.DB, w.As(s.Dialect))
							return
						}
						*result = s.InTx(ctx, func(tx *sql.Tx) error {
							_, err := harness.Forms[0].Run(ctx, tx, w.As(s.Dialect))
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
	harness.EachServer(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.Ledger())
		writes := slices.Concat(harness.RowWrites, harness.FreshInserts)
		eachWaiting(t, sh, writes, func(t *testing.T, w harness.Write, start func() (<-chan struct{}, *error)) {
			unchanged := sh.Unchanged(t)
			b := sh.Block(t, w)
			done, result := start()
			sh.WantBlocked(t, b.PID, done)
			if s.AsksLedgerFirst() {
				holdsOffTheToken(t, sh, b, done, result)
				return
			}
			if token, err := sh.Issue(t.Context()); token != 9 || err != nil {
				t.Fatalf("issue: %d, %v", token, err)
			}
			// The blocker has changed nothing, so no isolation level causes an error.
			if err := b.Tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			<-done
			wantRefused(t, sh, *result)
			unchanged()
		})
	})
}

// holdsOffTheToken is for databases whose writes lock the ledger's row first. The next token is issued after the
// waiting write, and from then on no write with the older token succeeds.
func holdsOffTheToken(t *testing.T, sh *harness.Shop, b *harness.Blocker, done <-chan struct{}, result *error) {
	t.Helper()
	issued := make(chan error, 1)
	go func() {
		_, err := sh.Issue(context.Background())
		issued <- err
	}()
	if err := b.Tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-issued; err != nil {
		t.Fatal(err)
	}
	unchanged := sh.Unchanged(t)
	<-done
	unchanged()
	if *result != nil {
		wantRefused(t, sh, *result)
	}
	_, err := sh.DB.ExecContext(harness.Holding(t, 8), "UPDATE books SET price = 31")
	harness.WantStale(t, err, 8, 9)
	unchanged()
}

func TestG1RowFenceWriteThatWaitsWhileANewerOneIsWritten(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.RowFence("fence_token"))
		eachWaiting(t, sh, harness.RowWrites, func(t *testing.T, w harness.Write, start func() (<-chan struct{}, *error)) {
			ctx := harness.Holding(t, 9)
			newer := harness.Begin(ctx, t, sh.DB, s.Level)
			if n, err := harness.Forms[0].Run(ctx, newer, harness.RowWrites[0]); n != 1 || err != nil {
				t.Fatalf("newer write: %d rows, %v", n, err)
			}
			pid := sh.Session(t, newer)
			done, result := start()
			sh.WantBlocked(t, pid, done)
			if err := newer.Commit(); err != nil {
				t.Fatal(err)
			}
			<-done
			wantRefused(t, sh, *result)
			if got := sh.State(t, true); got != "1:30@9 2:10@8 3:10@8" {
				t.Errorf("%s left %s", w.Name, got)
			}
		})
	})
}

// The newer write is an INSERT, so the older write finds no row to lock at its beginning.
func TestG1RowFenceUpsertThatWaitsForANewerInsert(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t, sqlfence.RowFence("fence_token"))
		upsert := harness.Write{Name: "upsert", Query: "INSERT INTO books (id, isbn, price) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET price = excluded.price", Args: []any{7, "i7", 40}}
		eachWaiting(t, sh, []harness.Write{upsert}, func(t *testing.T, w harness.Write, start func() (<-chan struct{}, *error)) {
			ctx := harness.Holding(t, 9)
			newer := harness.Begin(ctx, t, sh.DB, s.Level)
			if _, err := newer.ExecContext(ctx, "INSERT INTO books (id, isbn, price) VALUES (7, 'i7', 30)"); err != nil {
				t.Fatal(err)
			}
			pid := sh.Session(t, newer)
			done, result := start()
			sh.WantBlocked(t, pid, done)
			if err := newer.Commit(); err != nil {
				t.Fatal(err)
			}
			<-done
			wantRefused(t, sh, *result)
			if got := sh.State(t, true); got != "1:10@8 2:10@8 3:10@8 7:30@9" {
				t.Errorf("left %s", got)
			}
		})
	})
}

// SQLite's writers wait for the writer that holds the file.
func TestG1G2WriteThatWaitsForTheFile(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("the other tests see who waits")
		}
		for _, fence := range harness.Fences {
			sh := harness.Setting{Base: b}.Shop(t, fence.Rule)
			eachWaiting(t, sh, harness.RowWrites, func(t *testing.T, w harness.Write, start func() (<-chan struct{}, *error)) {
				newer, err := sh.Plain.Conn(t.Context())
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
				harness.WantStale(t, *result, 8, 9)
				if got := sh.State(t, true); got != "1:30@9 2:10@8 3:10@8" {
					t.Errorf("%s left %s", w.Name, got)
				}
			})
		}
	})
}

// A transaction whose snapshot is older than the newer token can't write either. SQLite's transaction begins with a
// read, to take a snapshot.
func TestG1G2WriteAfterAnOldSnapshot(t *testing.T) {
	for _, fence := range harness.Fences {
		t.Run(fence.Name, func(t *testing.T) {
			harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
				if s.Dialect == sqlfence.MySQL && s.Level == sql.LevelSerializable {
					t.Skip("what was read is locked, so that nobody writes before")
				}
				sh := s.Shop(t, fence.Rule)
				for _, w := range harness.RowWrites {
					sh.Reset(t, 8)
					ctx := harness.Holding(t, 8)
					err := sh.InTx(ctx, func(tx *sql.Tx) error {
						if err := tx.QueryRow("SELECT count(*) FROM books").Scan(new(int)); err != nil {
							t.Fatal(err)
						}
						if fence.Name == "ledger" {
							if _, err := sh.Issue(t.Context()); err != nil {
								t.Fatal(err)
							}
						} else if n, err := harness.Forms[0].Run(harness.Holding(t, 9), sh.DB, harness.RowWrites[0]); n != 1 || err != nil {
							t.Fatalf("newer write: %d rows, %v", n, err)
						}
						unchanged := sh.Unchanged(t)
						defer unchanged()
						_, err := harness.Forms[0].Run(ctx, tx, w.As(s.Dialect))
						return err
					})
					switch {
					case s.Dialect == sqlfence.SQLite && err != nil: // SQLITE_BUSY_SNAPSHOT: the snapshot can't be written to
					default:
						wantRefused(t, sh, err)
					}
				}
			})
		})
	}
}
