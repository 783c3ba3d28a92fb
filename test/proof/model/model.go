// Package model explores every order of the steps of a few sessions that write under a guard, take tokens, wait, crash
// and lose their primary server. It says by which order a promise is broken, if a guard has one of the known mistakes.
//
// The model has PostgreSQL's rules: a row lock makes other writers wait, a transaction at REPEATABLE READ reads its
// snapshot, and a transaction that ends releases its locks. It allows each order that the locks allow, also those that
// PostgreSQL's queues of waiting sessions exclude. So it proves that nothing stale lands, and not that each session
// gets its turn.
package model

import (
	"fmt"
	"math/bits"
	"slices"
)

// A Design is a guard, and the setting that it is explored in. The zero value is the guard of Ledger at READ COMMITTED.
type Design struct {
	Rule       Rule
	Snapshot   bool // transactions are at REPEATABLE READ
	Crash      bool // the server crashes once
	Failover   Failover
	Mistake    Mistake
	Interferes bool // a third session locks the row for a while, and writes nothing
}

// A Rule is what a write is compared with.
type Rule uint8

const (
	Ledger   Rule = iota // the newest token of the name, at the end of the statement
	RowFence             // the token that the row stores
	Hold                 // the newest token, at the beginning of the transaction
)

// A Failover is what happens to the primary server.
type Failover uint8

const (
	NoFailover   Failover = iota
	Synchronous           // the standby has every commit that was acknowledged
	Asynchronous          // the standby may lack the last commits
)

// A Mistake is one that a guard, or the issue of tokens, could make.
type Mistake uint8

const (
	None                 Mistake = iota
	WithoutLock                  // the ledger is read by a plain subquery, which takes no lock
	OldSnapshot                  // the ledger is read under the lock, by the transaction's snapshot
	CheckedBeforeWait            // the ledger's lock is released before the statement waits for the row
	SnapshotOfRow                // the row's token is read before the statement waits for the row
	RolledBackTo                 // ROLLBACK TO SAVEPOINT releases the lock of Hold, and the transaction is committed
	NotDurable                   // a token is returned before its transaction is on disk
	SameAfterFailover            // after a failover tokens continue from what the standby has
	IssuedWithoutLock            // a token is issued without waiting for open writes
	ReturnedBeforeCommit         // a token is returned before its transaction is committed
)

// A data is what a server has committed.
type data struct {
	newest  int8 // the token in the ledger
	mark    int8 // the token in the row
	version int8 // number of the row's changes
}

// A state is one state of the model. It is comparable.
type state struct {
	primary, disk, standby data
	epoch                  int8 // number of failovers
	crashed                bool
	returned               tokens // those that clients have got
	sessions               [3]session
}

// tokens is a set: bit n stands for token n.
type tokens uint32

func (t tokens) has(n int8) bool { return t>>n&1 == 1 }

func (t tokens) highest() int8 { return int8(bits.Len32(uint32(t) >> 1)) }

// A session is a client with its connection.
type session struct {
	at                     step
	token                  int8 // 0: none yet
	asks, writes           int8 // how many tokens and writes it has left
	snapshot               data
	row, shared, exclusive bool // the locks of its transaction
	next                   int8 // the token that it is taking
	known                  int8 // the highest token that was returned before it asked
}

// A step is the place of a session in its program.
type step uint8

const (
	idle step = iota
	issuing
	stored // the token is stored, and not yet committed
	committed
	begun
	checked
	rowLocked
	ready // to commit
	resting
)

// A move leads from one state to another.
type move struct {
	what   string
	to     state
	broken string // the promise that this move breaks, or ""
}

// walk visits every move of every state that a design can reach, the nearest states first, until visit returns false.
func (d Design) walk(visit func(from state, m move, isNew bool) bool) (states int) {
	seen := map[state]bool{d.start(): true}
	for queue := []state{d.start()}; len(queue) > 0; queue = queue[1:] {
		for _, m := range d.moves(queue[0]) {
			isNew := !seen[m.to]
			if !visit(queue[0], m, isNew) {
				return len(seen)
			}
			if isNew {
				seen[m.to] = true
				queue = append(queue, m.to)
			}
		}
	}
	return len(seen)
}

// Explore returns how many states a design can reach, and the shortest order of steps that breaks a promise; nil if
// none does.
func Explore(d Design) (states int, trace []string) {
	type origin struct {
		from state
		what string
	}
	first := d.start()
	came := make(map[state]origin)
	states = d.walk(func(from state, m move, isNew bool) bool {
		if m.broken != "" {
			trace = []string{m.broken, m.what}
			for s := from; s != first; s = came[s].from {
				trace = append(trace, came[s].what)
			}
			slices.Reverse(trace)
		} else if isNew {
			came[m.to] = origin{from, m.what}
		}
		return trace == nil
	})
	return states, trace
}

// start returns the first state: two holders, who may write twice each, and of whom one may take a second token; and a
// third session.
func (d Design) start() state {
	s := state{}
	for i := range 2 {
		s.sessions[i].asks, s.sessions[i].writes = int8(2-i), 2
	}
	if !d.Interferes {
		s.sessions[2].at = resting
	}
	return s
}

// moves returns the moves that are possible in a state.
func (d Design) moves(s state) (all []move) {
	for i := range s.sessions {
		all = append(all, d.movesOf(s, i)...)
	}
	if d.Crash && !s.crashed {
		to := s
		to.crashed, to.primary = true, s.disk
		to.lose()
		all = append(all, move{what: "the server crashes, and starts again", to: to})
	}
	if d.Failover != NoFailover && s.epoch == 0 {
		to := s
		to.epoch, to.primary, to.disk = 1, s.standby, s.standby
		to.lose()
		all = append(all, move{what: fmt.Sprintf("the standby is promoted, and has %v", s.standby), to: to})
	}
	if s.disk != s.primary {
		to := s
		to.disk = s.primary
		all = append(all, move{what: "the server writes its log to the disk", to: to})
	}
	if d.Failover == Asynchronous && s.standby != s.primary && s.epoch == 0 {
		to := s
		to.standby = s.primary
		all = append(all, move{what: "the standby gets the log", to: to})
	}
	return all
}

func (d data) String() string {
	return fmt.Sprintf("token %d in the ledger and %d in the row", d.newest, d.mark)
}

// lose ends all transactions, as the end of their server does.
func (s *state) lose() {
	for i := range s.sessions {
		c := &s.sessions[i]
		c.end()
		if c.at != resting {
			c.at = idle
		}
	}
}

// end releases the locks of the session's transaction.
func (c *session) end() {
	*c = session{at: c.at, token: c.token, asks: c.asks, writes: c.writes}
}

// others reports whether a session other than i has a lock.
func (s *state) others(i int, has func(*session) bool) bool {
	for j := range s.sessions {
		if j != i && has(&s.sessions[j]) {
			return true
		}
	}
	return false
}
