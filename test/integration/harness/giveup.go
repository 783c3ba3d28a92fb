package harness

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"
)

const (
	// soon is less than the least time for which a session waits for a lock by itself: 40 s.
	soon = 25 * time.Second

	// atLast is more than the longest, which scripts/with-mariadb sets.
	atLast = 10 * time.Minute

	// A KILL is tried for 2 s. It may have come too late by a pause of standstill in the time of killing.
	killing    = 5 * time.Second
	standstill = 500 * time.Millisecond
)

// GiveUp calls giveUp, for a statement that waits for a lock, and waits until ended reports that the statement no
// longer waits. db must not be the statement's database handle. In MySQL somebody must kill the statement; otherwise it
// waits until the server's timeout. A late end fails the test, unless the machine or the server stood still.
func GiveUp(t testing.TB, db *sql.DB, giveUp func(), ended func() bool) {
	t.Helper()
	pauses := watchPauses(context.WithoutCancel(t.Context()), db)
	giveUp()
	began := time.Now()
	longest := sync.OnceValue(pauses)
	defer longest()
	for !ended() {
		took := time.Since(began)
		if took > killing {
			longest()
		}
		if took > soon && longest() < standstill || took > atLast {
			t.Fatalf("it has waited for %v since it was given up; the longest pause then was %v", took, longest())
		}
		time.Sleep(time.Millisecond)
	}
}
