// Package history is what has happened in a storm, from both sides: what the database has done, which
// triggers record in the same transactions ([Event]), and what the fences were asked and have answered
// ([Op]).
package history

import (
	"time"

	"github.com/sqlfence/sqlfence/test/proof/fence"
)

// A History is complete: all its requests and transactions have ended.
type History struct {
	Tables []Table
	Events []Event // by Seq
	Ops    map[int64]*Op
	TTL    time.Duration // of all leases
}

// An Event is a trigger's record. A trigger fires while its transaction holds the lock of the row, and the transaction
// keeps the lock until its end. So the events of a row, of a ledger name and of a lease are ordered by Seq.
type Event struct {
	Seq   int64
	What  What
	Name  string // the table, the token's name, or the lease's key
	Row   int64
	Op    int64 // the request that wrote it, by its value; 0 is the suite
	Was   int64 // the mark, generation, version or token before; 0 without one
	Mark  int64 // and after
	Began int64 // of a lease, or now, in microseconds by the database's clock
	Ended int64
}

// What an event is about.
type What string

const (
	Insert What = "insert" // of a row
	Update What = "update"
	Delete What = "delete"
	Edit   What = "edit"   // a row is written, or its lock: Was is the user before, until Ended, and Mark the one after; Op is 0 for the lock
	Commit What = "commit" // the transaction of Op is about to commit
	Ledger What = "ledger" // a token was issued or adopted
	Grant  What = "grant"  // a lease has a new holder
	Renew  What = "renew"
	End    What = "end"
)

// An Op is a request and what became of it, by the suite's clock: it was sent after Call, and the
// answer came before Return.
type Op struct {
	Request fence.Request
	Answer  fence.Answer
	Lane    int
	Call    time.Duration
	Return  time.Duration
}

// Token returns the value of the request's token of a name.
func (o *Op) Token(name string) (value int64, ok bool) {
	for _, t := range o.Request.Tokens {
		if t.Name == name {
			return t.Value, true
		}
	}
	return 0, false
}
