package lease_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// If several callers acquire a key at once, including a new key, one caller gets the lease. The losers don't increment
// the token, because this would make the winner's token stale.
func TestLeaseOneWinner(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		dsn := quickDSN(b, b.DSN(t))
		db := b.Raw(t, dsn)
		var all []*lease.Leases
		for range 8 {
			all = append(all, harness.NewLeases(t, b.Raw(t, dsn)))
		}
		for round := range 12 {
			key := fmt.Sprint("jobs/", round/2) // first without a row, then with one
			var winner atomic.Pointer[lease.Lease]
			var wg sync.WaitGroup
			start := make(chan struct{})
			for _, leases := range all {
				wg.Go(func() {
					<-start
					l, ok, err := leases.TryAcquire(t.Context(), key, lease.Timeout(harness.Patience))
					if err != nil {
						t.Error(err)
					}
					if ok && !winner.CompareAndSwap(nil, l) {
						t.Errorf("%s: two winners, %v and %v", key, l.Token(), winner.Load().Token())
					}
				})
			}
			close(start)
			wg.Wait()
			if winner.Load() == nil {
				t.Fatalf("%s: no winner", key)
			}
			current, err := harness.NewStore(t, db).Current(t.Context(), key)
			if err != nil || current != winner.Load().Token() || current.Value != int64(round%2+1) {
				t.Errorf("the ledger says %v, %v; the winner has %v", current, err, winner.Load().Token())
			}
			harness.MustRelease(t, winner.Load())
		}
	})
}

// Leases and Issue take tokens of the same name at once. No two tokens are equal, and each is the ledger's newest when
// it is issued.
func TestLeaseBesideIssue(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t)
		store, leases := harness.NewStore(t, sh.DB), harness.NewLeases(t, sh.DB)
		var mu sync.Mutex
		seen := make(map[int64]bool)
		add := func(token sqlfence.Token, last *int64) {
			mu.Lock()
			defer mu.Unlock()
			if seen[token.Value] || token.Value <= *last {
				t.Errorf("token %d after %d, seen before: %v", token.Value, *last, seen[token.Value])
			}
			seen[token.Value], *last = true, token.Value
		}
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				var last int64
				for range 25 {
					token, err := store.Issue(t.Context(), "jobs")
					if err != nil {
						t.Error(err)
						return
					}
					add(token, &last)
				}
			})
			wg.Go(func() {
				var last int64
				for range 25 {
					l, err := leases.Acquire(t.Context(), "jobs", lease.Timeout(harness.Patience), lease.Interval(5*time.Millisecond))
					if err == nil {
						add(l.Token(), &last)
						err = l.Release(t.Context())
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if len(seen) != 100 {
			t.Errorf("%d tokens, want 100", len(seen))
		}
	})
}

// Extend waits until the lease has expired. It doesn't revive the lease.
func TestLeaseExtendAfterWait(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s harness.Setting) {
		sh := s.Shop(t)
		leases := harness.NewLeases(t, sh.DB)
		var tx *sql.Tx
		var extending *harness.Task
		for ttl := 300 * time.Millisecond; ; ttl *= 4 { // on a stalled machine the lease may expire first
			l := harness.MustAcquire(t, leases, "jobs", lease.TTL(ttl))
			tx = harness.Begin(t.Context(), t, sh.Plain, sql.LevelDefault)
			if _, err := tx.Exec(`SELECT "key" FROM fencing_leases WHERE "key" = 'jobs' FOR UPDATE`); err != nil {
				t.Fatal(err)
			}
			extending = harness.Go(func() error {
				_, err := leases.Extend(t.Context(), l.LockID(), time.Hour)
				return err
			})
			var waits, ended bool
			harness.Eventually(t, "an extension that waits, or is too late", func() bool {
				select {
				case <-extending.Ended():
					ended = true
				default:
				}
				waits = s.Waiting(t, sh.Plain) > 0
				return waits || ended
			})
			if waits {
				break
			}
			if err := extending.Wait(); l.Err() == nil || !errors.Is(err, lease.ErrNotHeld) {
				t.Fatalf("went on without waiting for the row: %v", err)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
		passed(t, harness.NewLeases(t, sh.Plain), "jobs") // a serializable transaction would wait for the row
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		harness.WantError(t, extending.Wait(), lease.ErrNotHeld)
		if locked, err := leases.IsLocked(t.Context(), "jobs"); locked || err != nil {
			t.Errorf("the lease lives again: %v, %v", locked, err)
		}
	})
}

func TestLeaseSetup(t *testing.T) {
	harness.EachLedger(t, func(t *testing.T, b harness.Base, dsn string, db *sql.DB) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				leases, err := lease.New(db)
				if err == nil {
					err = leases.Setup(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		leases := harness.NewLeases(t, db)
		harness.MustAcquire(t, leases, "jobs")
		harness.NewLeases(t, db)
		if locked, err := leases.IsLocked(t.Context(), "jobs"); !locked || err != nil {
			t.Errorf("Setup ended a lease: %v, %v", locked, err)
		}
		harness.MustExec(t, db, "DROP TABLE fencing_leases")
		harness.MustExec(t, db, "CREATE TABLE fencing_leases (other text)")
		if err := leases.Setup(t.Context()); err == nil || !strings.Contains(err.Error(), "can't be used") {
			t.Errorf("Setup on another table: %v", err)
		}
		if _, err := leases.Acquire(t.Context(), "jobs"); err == nil || !strings.HasPrefix(err.Error(), `lease: acquire "jobs": `) {
			t.Errorf("Acquire on another table: %v", err)
		}
	})
}

// The end of a context ends the wait for a connection of the pool, and leaves the pool unchanged.
func TestLeasePoolIsBusy(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		leases := harness.NewLeases(t, db)
		db.SetMaxOpenConns(1)
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = leases.Acquire(t.Context(), "jobs", lease.Timeout(20*time.Millisecond))
		if err == nil || errors.Is(err, lease.ErrHeld) || !strings.Contains(err.Error(), "deadline") {
			t.Errorf("Acquire without a connection: %v", err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		l := harness.MustAcquire(t, leases, "jobs", lease.Timeout(harness.Patience), lease.Interval(5*time.Millisecond))
		harness.MustRelease(t, l)
		harness.Eventually(t, "an idle pool", func() bool { return db.Stats().InUse == 0 })
	})
}

// Callers that compete for new keys can't deadlock, because all take the locks in the same order. PostgreSQL would end
// a deadlock after a second with an error for one of the callers.
func TestLeaseNewKeysDoNotDeadlock(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("it is PostgreSQL that counts them")
		}
		dsn, deadlocks := ownDatabase(t, b)
		var all []*lease.Leases
		var dbs []*sql.DB
		for range 8 {
			db := b.Raw(t, dsn)
			all, dbs = append(all, harness.NewLeases(t, db)), append(dbs, db)
		}
		const keys = 100
		var last [keys]atomic.Int64
		for i := range keys {
			key := fmt.Sprint("new/", i)
			var holders, grants atomic.Int32
			var wg sync.WaitGroup
			start := make(chan struct{})
			for _, leases := range all {
				wg.Go(func() {
					<-start
					l, err := leases.Acquire(t.Context(), key, lease.Timeout(harness.Patience), lease.Interval(time.Millisecond))
					if err != nil {
						t.Error(err)
						return
					}
					grants.Add(1)
					if n := holders.Add(1); n != 1 {
						t.Errorf("%s: %d holders", key, n)
					}
					if before := last[i].Swap(l.Token().Value); before >= l.Token().Value {
						t.Errorf("%s: token %d after %d", key, l.Token().Value, before)
					}
					holders.Add(-1)
					if err := l.Release(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			close(start)
			wg.Wait()
			if n := int64(grants.Load()); n != last[i].Load() || n != int64(len(all)) {
				t.Errorf("%s: %d leases, the last token is %d", key, n, last[i].Load())
			}
		}
		for _, db := range dbs {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
		if n := deadlocks(); n != 0 {
			t.Errorf("%d deadlocks", n)
		}
	})
}

// ownDatabase creates a separate database, and returns its DSN and a function that counts its deadlocks. The function
// must be called after all connections are closed, because the server updates the count at that time.
func ownDatabase(t *testing.T, b harness.Base) (dsn string, deadlocks func() int) {
	t.Helper()
	admin := b.Raw(t, harness.PostgresDSN(t))
	dsn = harness.PostgresDatabase(t)
	u, err := url.Parse(dsn)
	if err != nil {
		need.Missing(t, "postgres", fmt.Sprint("needs a URL as the DSN: ", err))
	}
	return dsn, func() (n int) {
		harness.Eventually(t, "the end of all sessions", func() bool {
			var sessions int
			if err := admin.QueryRow("SELECT numbackends, deadlocks FROM pg_stat_database WHERE datname = $1", strings.TrimPrefix(u.Path, "/")).Scan(&sessions, &n); err != nil {
				t.Fatal(err)
			}
			return sessions == 0
		})
		return n
	}
}
