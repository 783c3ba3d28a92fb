package harness

import (
	"context"
	"database/sql"
	"testing"
	"time"
)

// pulse is how often an undisturbed test looks whether time goes on.
const pulse = 20 * time.Millisecond

// Undisturbed is for what has to happen in time, such as a heartbeat before its lease ends. It calls try
// until that returns no error. One counts, and fails the test, unless there was a pause meanwhile:
// this process, or the database, stood still for longer than longest.
func Undisturbed(t testing.TB, db *sql.DB, longest time.Duration, try func() error) {
	t.Helper()
	for began := time.Now(); ; {
		end := watchPauses(context.WithoutCancel(t.Context()), db)
		err := try()
		paused := end()
		if err == nil {
			return
		}
		if paused <= longest || time.Since(began) > 5*Patience {
			t.Fatalf("%v (the longest pause was %v)", err, paused)
		}
		t.Logf("begins anew after a pause of %v: %v", paused, err)
	}
}

// watchPauses asks the database all the time. The function returned ends that, and returns the longest time
// from one answer to the next.
func watchPauses(ctx context.Context, db *sql.DB) (end func() time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	var longest time.Duration
	last := time.Now()
	watching := Go(func() error {
		for ; ; time.Sleep(pulse) {
			if err := db.QueryRowContext(ctx, "SELECT 1").Scan(new(int)); err != nil {
				return err
			}
			longest, last = max(longest, time.Since(last)), time.Now()
		}
	})
	return func() time.Duration {
		cancel()
		_ = watching.Wait()
		return max(longest, time.Since(last))
	}
}
