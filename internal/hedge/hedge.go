// Package hedge lets the next statement of a key, such as a lease's name, be sent although an earlier one is
// unanswered. Statements of a key are sent one after the other until a statement is late: its server may be
// unreachable. But a late statement may also just be waiting for a lock, and holds a connection. So only a few
// statements may be late at once.
package hedge

import (
	"database/sql"
	"sync"
	"time"
)

// Timeout is the time after which a statement counts as late, if no other statement of the key is late. The time
// doubles for each late statement, so that a slow database isn't flooded.
const Timeout = 100 * time.Millisecond

// most is the maximum number of late statements of a key.
const most = 3

// A Slot tracks the statements of one key. The owner's mutex guards the Slot.
type Slot struct{ late int }

// Idle reports whether no statement is late.
func (l *Slot) Idle() bool { return l.late == 0 }

// A Statement is a statement without a response yet.
type Statement struct {
	slot        *Slot
	overdue     *time.Timer
	ended, late bool
}

// Start records that a statement is sent, on a connection of db; a nil db stands for a pool without a limit. Once the
// statement is late, Start's timer calls overtaken, with mu held, so that the owner sends the key's next statement: but
// only while fewer statements are late than [capacity] allows. The caller must hold mu, and must call End.
func (l *Slot) Start(mu sync.Locker, db *sql.DB, overtaken func()) *Statement {
	s := &Statement{slot: l}
	s.overdue = time.AfterFunc(l.timeout(), func() {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case s.ended:
		case l.late >= capacity(db):
			s.overdue.Reset(l.timeout())
		default:
			s.late = true
			l.late++
			overtaken()
		}
	})
	return s
}

// End records that the statement has ended, and reports whether it was late. The caller must hold the mutex.
func (s *Statement) End() (wasLate bool) {
	s.ended = true
	s.overdue.Stop()
	if s.late {
		s.slot.late--
	}
	return s.late
}

func (l *Slot) timeout() time.Duration { return Timeout << min(l.late, most) }

// capacity returns how many statements of a key may be late at once. In a pool of limited size a key leaves three
// quarters of the connections to other work, such as the transactions that its late statements wait for.
func capacity(db *sql.DB) int {
	if db == nil {
		return most
	}
	if size := db.Stats().MaxOpenConnections; size > 0 {
		return min(most, size/4)
	}
	return most
}
