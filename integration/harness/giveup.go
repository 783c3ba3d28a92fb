package harness

import (
	"context"
	"database/sql"
	"testing"
	"time"
)

const (
	// soon is less than the least time for which a session waits for a lock by itself: 40 s.
	soon = 25 * time.Second

	// atLast is more than the longest, which scripts/with-mariadb sets.
	atLast = 10 * time.Minute

	// standstill is a pause by which a KILL may have come too late: it is tried for 2 s.
	standstill = 250 * time.Millisecond
)

// GiveUp calls giveUp, for a statement that waits for a lock, and waits until db, which isn't the
// statement's, tells that nothing of it waits any more. In MySQL somebody has to end it there: one
// that nobody ends waits until the server gives it up. That fails the test, too, unless the machine or the server
// stood still, so that it couldn't be ended in time.
func GiveUp(t testing.TB, db *sql.DB, giveUp func(), ended func() bool) {
	t.Helper()
	pauses := watchPauses(context.WithoutCancel(t.Context()), db)
	giveUp()
	began := time.Now()
	var took time.Duration
	for ; !ended(); time.Sleep(time.Millisecond) {
		if took = time.Since(began); took > atLast {
			break
		}
	}
	if pause := pauses(); took > soon && (pause < standstill || took > atLast) {
		t.Fatalf("it waited for %v after it was given up, and the longest pause was %v", took, pause)
	}
}
