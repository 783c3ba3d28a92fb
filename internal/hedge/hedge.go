// Package hedge sends the next statement of a key although the one under way has no answer yet.
// Statements of a key are sent one after the other, until one of them is late: it may have gone to a
// server that can't be reached. Or it waits there for another client's transaction, and holds a
// connection, so that only a few may be late at once.
package hedge

import (
	"database/sql"
	"sync"
	"time"
)

// Patience is how long a statement may take before it is late, if no other one is: twice as long for
// each that is, so that a slow database isn't flooded.
const Patience = 100 * time.Millisecond

// most is how many statements of a key may be late at once.
const most = 3

// A Lane has the statements of one key. The mutex of its owner guards it.
type Lane struct{ late int }

// Idle reports whether no statement is late.
func (l *Lane) Idle() bool { return l.late == 0 }

// A Statement is one under way.
type Statement struct {
	lane        *Lane
	overdue     *time.Timer
	ended, late bool
}

// Start records that a statement is sent, on a connection of db; a nil db stands for a pool without
// a limit. When the statement is late, and not too many are, overtaken is called under mu. The caller
// holds mu, and needs to call End.
func (l *Lane) Start(mu sync.Locker, db *sql.DB, overtaken func()) *Statement {
	s := &Statement{lane: l}
	s.overdue = time.AfterFunc(l.patience(), func() {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case s.ended:
		case l.late >= room(db):
			s.overdue.Reset(l.patience())
		default:
			s.late = true
			l.late++
			overtaken()
		}
	})
	return s
}

// End records that the statement has ended, and reports whether it was late. The caller holds the
// mutex.
func (s *Statement) End() (wasLate bool) {
	s.ended = true
	s.overdue.Stop()
	if s.late {
		s.lane.late--
	}
	return s.late
}

func (l *Lane) patience() time.Duration { return Patience << min(l.late, most) }

// room returns how many statements of a key may be late at once. In a pool of limited size those of
// one key leave three quarters to others, among them the transactions that they wait for.
func room(db *sql.DB) int {
	if db == nil {
		return most
	}
	if size := db.Stats().MaxOpenConnections; size > 0 {
		return min(most, size/4)
	}
	return most
}
