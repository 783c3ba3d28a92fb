package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The manager doesn't free a lock that another user, or the same user, has taken in the meantime, even if the lock was
// taken without the manager.
func TestRowLockManagerLeavesNewLocks(t *testing.T) {
	eachManaged(t, func(t *testing.T, d *desk, m *rowlock.Manager) {
		for _, taken := range []struct {
			by    any
			since string
		}{{d.bob, d.time(5)}, {d.ada, d.time(5)}, {d.bob, "editedsince"}} {
			by := taken.by
			d.exec(t, "UPDATE invoice SET editedby = NULL")
			d.take(t, 7, d.ada, "s1")
			// The test writes the lock's columns directly, so rowlocks still has ada's first lock.
			d.exec(t, "UPDATE invoice SET editedby = "+d.user(by)+", editedsince = "+taken.since)
			for _, free := range []func() (int, error){
				func() (int, error) { return m.FreeSession(t.Context(), "s1") },
				func() (int, error) { return m.FreeUser(t.Context(), d.ada) },
				func() (int, error) { return m.FreeAll(t.Context()) },
			} {
				if n, err := free(); n != 0 || err != nil {
					t.Errorf("freed %d, %v of what %v took", n, err, by)
				}
				d.holds(t, "editedby = "+d.user(by))
			}
		}
	})
}

// Users take and release locks, while others free the locks of silent sessions. A user who has just got a lock keeps
// it.
func TestRowLockManagerFreesWhileOthersTake(t *testing.T) {
	eachManaged(t, func(t *testing.T, d *desk, m *rowlock.Manager) {
		if d.inTx {
			t.Skip("nothing else than without")
		}
		stop := make(chan struct{})
		var freeing, wg sync.WaitGroup
		freeing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				// ada's session is dead. The sessions of bob and others are alive.
				if _, err := m.FreeSession(t.Context(), "dead"); err != nil {
					t.Error(err)
					return
				}
				if err := m.Heartbeat(t.Context(), "alive"); err != nil {
					t.Error(err)
					return
				}
			}
		})
		for _, user := range []any{d.ada, d.bob} {
			wg.Go(func() {
				session := "alive"
				if user == d.ada {
					session = "dead"
				}
				for range 30 {
					_, err := d.invoice.Request(t.Context(), rowlock.Edit{ID: 7, Serial: 1, User: user, Session: session})
					if errors.Is(err, sqlfence.ErrLocked) {
						continue
					} else if err != nil {
						t.Error(err)
						return
					}
					if session == "dead" {
						continue
					}
					if held, err := d.invoice.IsLockedBy(t.Context(), 7, user); err != nil || !held {
						t.Errorf("the lock of one who is alive was freed (%v)", err)
					}
					if err := d.invoice.Release(t.Context(), 7, user); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		close(stop)
		freeing.Wait()
		if _, err := m.FreeAll(t.Context()); err != nil {
			t.Error(err)
		}
		wantLocks(t, m, rowlock.Filter{})
		d.holds(t, "editedby IS NULL")
	})
}

func TestRowLockManagerSetupAtOnce(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		dsn := b.DSN(t)
		var wg sync.WaitGroup
		for range 8 {
			db := b.Raw(t, dsn)
			wg.Go(func() {
				m, err := rowlock.NewManager(db)
				if err == nil {
					err = m.Setup(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

// If a heartbeat comes after the silence was noticed, and before the lock is freed, the lock stays.
func TestRowLockManagerHeartbeatInTime(t *testing.T) {
	harness.EachPostgres(t, func(t *testing.T, s harness.Setting) {
		d := &desk{Setting: s, ada: "ada", bob: "bob"}
		d.open(t)
		m, err := rowlock.NewManager(d.db)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.invoice = d.table(t, rowlock.WithManager(m))
		d.take(t, 7, "ada", "s1")
		d.exec(t, "UPDATE rowlocks SET heartbeat = "+d.time(-10_000))
		tx := harness.Begin(context.Background(), t, d.plain, sql.LevelDefault)
		if _, err := tx.Exec("SELECT id FROM invoice WHERE id = 7 FOR UPDATE"); err != nil {
			t.Fatal(err)
		}
		session := s.Session(t, tx)
		var freed int
		freeing := harness.Go(func() (err error) {
			freed, err = m.FreeSilent(t.Context(), time.Hour)
			return err
		})
		(&harness.Shop{Setting: s, Plain: d.plain}).WantBlocked(t, session, freeing.Ended())
		if err := m.Heartbeat(t.Context(), "s1"); err != nil {
			t.Error(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := freeing.Wait(); freed != 0 || err != nil {
			t.Errorf("freed %d, %v", freed, err)
		}
		wantLocks(t, m, rowlock.Filter{}, "[7] ada s1")
		d.holds(t, "editedby = 'ada'")
	})
}
