package lease_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/lease"
)

// writers is how many statements a database is sent before the next ones are shared.
func (d *database) writers() int {
	if d.dialect == sqlfence.Postgres {
		return 2
	}
	return 1
}

// isCommit reports whether c is the last statement of an attempt, shared or not.
func (d *database) isCommit(c fakedb.Call) bool {
	if d.dialect == sqlfence.Postgres {
		return isAcquire(c) || isRelease(c)
	}
	return c.Kind == fakedb.Commit || isRelease(c)
}

// crowd has n callers make a call at once, holds up the first statements until all callers wait, and returns their
// errors.
func (d *database) crowd(n int, call func(i int) error) []error {
	gate := make(chan struct{})
	d.failing(func(_ context.Context, c fakedb.Call) error {
		if isAcquire(c) || isRelease(c) {
			<-gate
		}
		return nil
	})
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = call(i) })
	}
	synctest.Wait()
	d.failing(nil)
	close(gate)
	wg.Wait()
	return errs
}

// take has n callers acquire different keys at once.
func (d *database) take(t *testing.T, leases *lease.Leases, n int) []*lease.Lease {
	t.Helper()
	all := make([]*lease.Lease, n)
	for _, err := range d.crowd(n, func(i int) (err error) {
		all[i], err = leases.Acquire(t.Context(), fmt.Sprint("k/", i), lease.TTL(time.Duration(i+1)*time.Second))
		return err
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// shared returns how many calls since the last [fakedb.DB.Sent] serve several callers.
func (d *database) shared() (n int) {
	for _, c := range d.Sent() {
		if isShared(c) || c.Kind == fakedb.Commit {
			n++
		}
	}
	return n
}

func TestManyCallersShareAStatement(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		const n = 20
		start := time.Now()
		all := d.take(t, leases, n)
		count := func(what string, want int) {
			t.Helper()
			got := 0
			for _, c := range d.Sent() {
				// On SQLite an attempt is a transaction; a separate release is one statement.
				if d.isCommit(c) && (c.Kind == fakedb.Commit || d.server != nil) {
					got++
				}
			}
			if got != want {
				t.Errorf("%s: %d commits, want %d", what, got, want)
			}
		}
		count("acquire", d.writers()+1)
		for i, l := range all {
			if l.Token() != (sqlfence.Token{Name: fmt.Sprint("k/", i), Value: 1}) || !l.ExpiresAt().Equal(start.Add(time.Duration(i+1)*time.Second)) {
				t.Errorf("%d: %v", i, l)
			}
			info, ok, err := leases.LookupID(t.Context(), l.LockID())
			if !ok || err != nil || info.Token != l.Token() {
				t.Errorf("%d: the database has %v, %v, %v", i, info, ok, err)
			}
		}
		d.Sent()
		for _, err := range d.crowd(n, func(i int) error { return all[i].Release(t.Context()) }) {
			if err != nil {
				t.Error(err)
			}
		}
		count("release", map[sqlfence.Dialect]int{sqlfence.Postgres: 3, sqlfence.SQLite: 1}[d.dialect])
		for i := range n {
			if !free(t, leases, fmt.Sprint("k/", i)) {
				t.Errorf("%d: not released", i)
			}
		}
		for i, l := range d.take(t, leases, n) {
			if l.Token().Value != 2 {
				t.Errorf("%d again: %v", i, l)
			}
			release(t, l)
		}
	})
}

// A batch reports a lease's holder, as a separate statement does.
func TestABatchFindsLeasesHeld(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		held := d.take(t, d.ready(t), 5)
		leases := d.new(t)
		d.Sent()
		for i, err := range d.crowd(5, func(i int) error {
			_, err := leases.Acquire(t.Context(), fmt.Sprint("k/", i), lease.Retries(0))
			return err
		}) {
			var e *lease.HeldError
			if !errors.As(err, &e) || !e.Until.Equal(held[i].ExpiresAt()) {
				t.Errorf("%d: %v", i, err)
			}
		}
		if n := d.shared(); d.server != nil && n != 1 {
			t.Errorf("%d shared statements, want 1", n)
		}
	})
}

// These attempts get a statement each, not a place in a batch: for a key whose row is locked, for an owner's live
// lease, and for a key without tokens left.
func TestABatchLeavesTheRest(t *testing.T) {
	onPostgres(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		mine := acquire(t, leases, "k/4", lease.Resume("me"))
		d.issued(t, "k/5", sqlfence.MaxToken)
		d.server.busy = map[string]bool{"k/3": true}
		d.Sent()
		all := make([]*lease.Lease, 7)
		for i, err := range d.crowd(7, func(i int) (err error) {
			all[i], err = leases.Acquire(t.Context(), fmt.Sprint("k/", i), lease.Resume("me"))
			return err
		}) {
			if i == 5 != errors.Is(err, sqlfence.ErrTokenLimit) || i != 5 && err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}
		if all[4].LockID() != mine.LockID() || all[4].Token().Value != 1 {
			t.Errorf("the owner got %v, want %v", all[4], mine)
		}
		if n := d.shared(); n != 1 {
			t.Errorf("%d shared statements, want 1", n)
		}
	})
}

// If a batch's statement fails, each caller sends a statement for the caller's key alone, so that no caller fails by
// another's error.
func TestABatchThatFailsIsLeftToItsMembers(t *testing.T) {
	for name, err := range map[string]error{
		"refused": stateError("40001"),
		"broken":  driver.ErrBadConn,
	} {
		t.Run(name, func(t *testing.T) {
			onPostgres(t, func(t *testing.T, d *database) {
				leases := d.ready(t)
				var n atomic.Int32
				fail := func(c fakedb.Call) error {
					if !isShared(c) {
						return nil
					}
					n.Add(1)
					return err
				}
				if name == "refused" {
					d.server.fails = fail
				} else {
					d.losing(fail)
				}
				all := d.take(t, leases, 10)
				for i, l := range all {
					if _, ok, err := leases.LookupID(t.Context(), l.LockID()); !ok || err != nil {
						t.Errorf("%d: %v, %v", i, ok, err)
					}
				}
				for i, err := range d.crowd(10, func(i int) error { return all[i].Release(t.Context()) }) {
					if err != nil {
						t.Errorf("%d: %v", i, err)
					}
				}
				if n.Load() < 2 {
					t.Errorf("%d statements were shared", n.Load())
				}
			})
		})
	}
}

// If the response to a batch is lost, the leases that it may have taken are released.
func TestALostBatchIsUndone(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		d.losing(func(c fakedb.Call) error {
			if isShared(c) || c.Kind == fakedb.Commit {
				return errLost
			}
			return nil
		})
		failed := 0
		for _, err := range d.crowd(10, func(i int) error {
			_, err := leases.Acquire(t.Context(), fmt.Sprint("k/", i))
			return err
		}) {
			if errors.Is(err, errLost) {
				failed++
			} else if err != nil {
				t.Error(err)
			}
		}
		d.losing(nil)
		time.Sleep(time.Second)
		live, err := leases.List(t.Context())
		if err != nil || len(live) != 10-failed || failed < 8 {
			t.Errorf("%d failed, and %d leases are live (%v)", failed, len(live), err)
		}
	})
}

// If a caller stops waiting for its batch, its lease is released. The batch's other callers get their leases.
func TestACallerLeavesItsBatch(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		ctx, cancel := context.WithCancel(t.Context())
		var stuck atomic.Int32
		gate := make(chan struct{})
		d.failing(func(_ context.Context, c fakedb.Call) error {
			if isShared(c) || d.server == nil && c.Kind == fakedb.Commit {
				if n := stuck.Add(1); d.server != nil || n == 2 {
					cancel()
					<-gate
				}
			}
			return nil
		})
		var wg sync.WaitGroup
		errs := make([]error, 10)
		for i := range 10 {
			wg.Go(func() {
				own := t.Context()
				if i == 9 {
					own = ctx
				}
				_, errs[i] = leases.Acquire(own, fmt.Sprint("k/", i))
			})
		}
		time.Sleep(3 * time.Second) // the attempt of the one that leaves is given up meanwhile
		close(gate)
		wg.Wait()
		time.Sleep(5 * time.Second)
		for i, err := range errs {
			if i < 9 && err != nil || i == 9 && err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%d: %v", i, err)
			}
			if held := !free(t, leases, fmt.Sprint("k/", i)); held != (err == nil) {
				t.Errorf("%d: error %v, and held: %v", i, err, held)
			}
		}
	})
}

// Statements without a response delay attempts at other keys by 10 ms.
func TestLateStatementsHoldUpNobody(t *testing.T) {
	onPostgres(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		gate := make(chan struct{})
		d.failing(func(_ context.Context, c fakedb.Call) error {
			if isAcquire(c) && strings.HasPrefix(c.Args[0].(string), "stuck/") {
				<-gate
			}
			return nil
		})
		var wg sync.WaitGroup
		for i := range d.writers() {
			wg.Go(func() {
				if _, err := leases.Acquire(t.Context(), fmt.Sprint("stuck/", i)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		start := time.Now()
		acquire(t, leases, "k")
		took(t, start, 10*time.Millisecond)
		start = time.Now()
		acquire(t, leases, "other")
		took(t, start, 0)
		close(gate)
		wg.Wait()
	})
}

// Above READ COMMITTED statements aren't shared.
func TestIsolatedStatementsAreNotShared(t *testing.T) {
	onPostgres(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		d.server.isolated = true
		d.server.busy = map[string]bool{}
		for i := range 10 {
			d.server.busy[fmt.Sprint("k/", i)] = true
		}
		all := d.take(t, leases, 10)
		if n := d.shared(); n != 1 {
			t.Errorf("%d shared statements, want one to find that out", n)
		}
		for _, l := range all {
			release(t, l)
		}
		d.take(t, leases, 10)
		if n := d.shared(); n != 0 {
			t.Errorf("%d shared statements then, want none", n)
		}
	})
}

// Two attempts at one key don't share a statement.
func TestOneKeyIsOnceInABatch(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d *database) {
		leases := d.ready(t)
		var mu sync.Mutex
		won := 0
		for _, err := range d.crowd(10, func(int) error {
			l, ok, err := leases.TryAcquire(t.Context(), "k")
			mu.Lock()
			defer mu.Unlock()
			if ok && l.Token().Value == 1 {
				won++
			}
			return err
		}) {
			if err != nil {
				t.Error(err)
			}
		}
		if won != 1 {
			t.Errorf("%d got the lease, want 1", won)
		}
	})
}
