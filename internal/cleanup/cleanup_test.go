package cleanup_test

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence/internal/cleanup"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// newDB returns a pool of at most two connections, to a database without errors.
func newDB(t *testing.T) *sql.DB {
	db := sql.OpenDB(fakedb.New(func(context.Context, fakedb.Call) (fakedb.Response, error) { return fakedb.Response{}, nil }))
	db.SetMaxOpenConns(2)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

var errDown = errors.New("no answer")

// A failing task is tried again after growing pauses, until the task is done or its time is over.
func TestTaskIsTriedUntilItIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := cleanup.New(newDB(t))
		start := time.Now()
		var tries, dropped int
		var last time.Time
		q.Add(&cleanup.Task{
			For: time.Minute,
			Do: func(context.Context, *sql.DB) (bool, error) {
				tries++
				last = time.Now()
				if tries < 4 {
					return false, errDown
				}
				return true, nil
			},
			Dropped: func(error) { dropped++ },
		})
		time.Sleep(time.Hour)
		synctest.Wait()
		if took := last.Sub(start); tries != 4 || dropped != 0 || took != 350*time.Millisecond { // 50, 100 and 200 ms
			t.Errorf("%d tries within %v, dropped %d times", tries, took, dropped)
		}
		var err error
		began := time.Now()
		q.Add(&cleanup.Task{
			For:     10 * time.Second,
			Do:      func(context.Context, *sql.DB) (bool, error) { return false, errDown },
			Dropped: func(e error) { err, last = e, time.Now() },
		})
		time.Sleep(time.Hour)
		synctest.Wait()
		if took := last.Sub(began); !errors.Is(err, errDown) || took != 10*time.Second {
			t.Errorf("dropped after %v by %v", took, err)
		}
	})
}

// While callers wait for connections, tasks are done in a quarter of the time, one after the other.
func TestTasksLeaveTheConnectionsToCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDB(t)
		var busy []*sql.Conn
		for range 2 {
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			busy = append(busy, conn)
		}
		q := cleanup.New(db)
		atOnce, most := 0, 0
		var done atomic.Int32
		for range 200 {
			q.Add(&cleanup.Task{For: time.Hour, Do: func(context.Context, *sql.DB) (bool, error) {
				atOnce++
				most = max(most, atOnce)
				time.Sleep(10 * time.Millisecond)
				atOnce--
				done.Add(1)
				return true, nil
			}})
		}
		time.Sleep(4500 * time.Millisecond)
		synctest.Wait()
		if n := done.Load(); n < 100 || n > 130 {
			t.Errorf("%d done in 4.5 s", n)
		}
		_ = busy[0].Close()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := done.Load(); n != 200 || most != 1 {
			t.Errorf("%d done once a connection is free, at most %d at once", n, most)
		}
		_ = busy[1].Close()
	})
}

// A queue has at most 1,000 tasks. A further task drops the oldest. After the database is closed, all tasks are dropped
// without a report.
func TestTasksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDB(t)
		q := cleanup.New(db)
		dropped, tries := 0, 0
		for range 1100 {
			q.Add(&cleanup.Task{
				For: 24 * time.Hour,
				Do: func(ctx context.Context, db *sql.DB) (bool, error) {
					tries++
					if err := db.PingContext(ctx); err != nil {
						return false, err
					}
					return false, errDown
				},
				Dropped: func(error) { dropped++ },
			})
		}
		synctest.Wait()
		if dropped != 100 {
			t.Errorf("%d of 1,100 were dropped", dropped)
		}
		_ = db.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		before := tries
		time.Sleep(time.Hour)
		synctest.Wait()
		if tries != before || dropped != 100 {
			t.Errorf("%d tries after the end of the database, %d dropped", tries-before, dropped)
		}
	})
}

// A failing task doesn't delay another task's first try. If there are too many tasks, repeated tasks are dropped first.
func TestTaskThatFailsKeepsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := cleanup.New(newDB(t))
		failing := func(context.Context, *sql.DB) (bool, error) { return false, errDown }
		q.Add(&cleanup.Task{For: time.Hour, Do: failing})
		time.Sleep(time.Minute)
		synctest.Wait()
		start, done := time.Now(), time.Duration(-1)
		q.Add(&cleanup.Task{For: time.Hour, Do: func(context.Context, *sql.DB) (bool, error) {
			done = time.Since(start)
			return true, nil
		}})
		synctest.Wait()
		if done != 0 {
			t.Errorf("done after %v", done)
		}
		var dropped atomic.Int32
		for range 999 {
			q.Add(&cleanup.Task{
				For: time.Hour, Do: func(context.Context, *sql.DB) (bool, error) { return false, nil }, Dropped: func(error) { dropped.Add(1) },
			})
		}
		time.Sleep(time.Second)
		synctest.Wait()
		tried := 0
		for range 5 {
			q.Add(&cleanup.Task{For: time.Hour, Do: func(context.Context, *sql.DB) (bool, error) { tried++; return true, nil }})
		}
		synctest.Wait()
		if n := dropped.Load(); tried != 5 || n > 5 {
			t.Errorf("%d of 5 new tasks were tried, %d others dropped", tried, n)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
	})
}
