// Package judge says whether what happened in a storm keeps the promises: by what has to hold of the
// database's own record, by what the fences were told, and by a search for an order in which a
// sequential database would have given the same answers.
package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/test/proof/history"
)

// A Violation is a promise that wasn't kept.
type Violation struct {
	Promise string
	Text    string
	Name    string // of what: a table's row, a token's name, a lease
}

func (v Violation) String() string { return v.Promise + ": " + v.Text }

// The promises.
const (
	Falls    = "marks never fall"                               // G1
	Newest   = "only the newest token writes"                   // G2
	Rising   = "tokens are unique and rise"                     // G2, and what a lock service gives
	Whole    = "a request lands whole or not at all"            // G3
	Told     = "what was refused or has failed hasn't landed"   // G12
	Kept     = "what was acknowledged has landed"               // durability
	Known    = "each write is of a request"                     // the record itself
	Apart    = "leases of a key don't overlap"                  // lease
	Serials  = "versions rise by one, and a conflict is one"    // Serial
	Claims   = "only the newest claim writes"                   // Claim, ClaimOf
	Edits    = "a row that a user edits is written by no other" // EditLock, rowlock
	Ordered  = "some order explains the answers"                // linearizability
	Once     = "a token writes a row once"                      // SingleUse
	Unbroken = "each change of a mark begins where one has led" // the record itself
)

// A Verdict is what was found in a history.
type Verdict struct {
	Violations []Violation
	Counts     Counts
	Pictures   map[string][]byte // HTML of what no order explains, by the name of a row
}

// Counts tell whether there was anything to judge.
type Counts struct {
	Ops       int // statements and calls, but those that have failed
	Landed    int // events of rows
	Stale     int // refused for the token
	Unknown   int // without an outcome
	UnknownIn int // of those, the ones that had landed
	Failed    int
	Held      int
	Holds     int // transactions with a call of Hold that were committed or refused as stale
	Takeovers int // new tokens, leases and claims where there was an older one
	Searched  int // rows that an order was searched for
}

// Contended reports whether holders got in each other's way; a history without that proves nothing.
func (c Counts) Contended() bool { return c.Stale > 0 && c.Takeovers > 0 && c.Landed > 0 }

// A Judge follows a storm through its rounds: marks and tokens of one are there in the next.
type Judge struct {
	marks   map[row]int64
	ledger  map[string]int64
	leases  map[string]history.Event
	issued  map[token]bool
	verdict Verdict

	values map[row]int64
	wrote  map[row]int64 // the highest token that has written, by the requests

	h       *history.History
	landed  map[int64]int // events by request, in this round
	changed map[change]bool
	begin   beginning
}

// A change is that a request has written rows of a table.
type change struct {
	op    int64
	table string
}

// A beginning is what a round finds.
type beginning struct {
	ledger map[string]int64
	marks  map[row]int64
	values map[row]int64
}

type row struct {
	table string
	id    int64
}

type token struct {
	name  string
	value int64
}

// Add adds what was found in another round.
func (v *Verdict) Add(other Verdict) {
	v.Violations = append(v.Violations, other.Violations...)
	v.Counts.Add(other.Counts)
	if v.Pictures == nil {
		v.Pictures = make(map[string][]byte)
	}
	maps.Copy(v.Pictures, other.Pictures)
}

// Add adds other counts.
func (c *Counts) Add(o Counts) {
	c.Ops, c.Landed, c.Stale, c.Unknown = c.Ops+o.Ops, c.Landed+o.Landed, c.Stale+o.Stale, c.Unknown+o.Unknown
	c.UnknownIn, c.Failed, c.Held = c.UnknownIn+o.UnknownIn, c.Failed+o.Failed, c.Held+o.Held
	c.Holds, c.Takeovers, c.Searched = c.Holds+o.Holds, c.Takeovers+o.Takeovers, c.Searched+o.Searched
}

// New returns a judge for a storm from its beginning.
func New() *Judge {
	return &Judge{
		marks: make(map[row]int64), ledger: make(map[string]int64),
		leases: make(map[string]history.Event), issued: make(map[token]bool),
		values: make(map[row]int64), wrote: make(map[row]int64),
	}
}

// Check judges a round. Each search for an order ends after limit, without a verdict.
func (j *Judge) Check(h *history.History, limit time.Duration) Verdict {
	j.h, j.verdict = h, Verdict{Pictures: make(map[string][]byte)}
	j.landed, j.changed = make(map[int64]int), make(map[change]bool)
	j.begin = beginning{maps.Clone(j.ledger), maps.Clone(j.marks), maps.Clone(j.values)}
	for _, e := range h.Events {
		j.event(e)
	}
	j.outcomes()
	j.grants()
	j.orders(limit)
	return j.verdict
}

// Tokens judges issued tokens alone, by the responses, because a database that has lost acknowledged transactions has
// lost their records as well.
func (j *Judge) Tokens(h *history.History) Verdict {
	j.h, j.verdict, j.landed = h, Verdict{}, make(map[int64]int)
	for _, e := range h.Events {
		j.landed[e.Op]++
		j.verdict.Counts.Landed++
	}
	j.grants()
	j.verdict.Counts.Ops += len(h.Ops)
	for _, op := range h.Ops {
		switch {
		case op.Answer.Is == fence.Stale:
			j.verdict.Counts.Stale++
		case op.Answer.Is == fence.OK && op.Answer.Token > 1:
			j.verdict.Counts.Takeovers++
		}
	}
	return j.verdict
}

func (j *Judge) event(e history.Event) {
	switch e.What {
	case history.Ledger:
		j.ledgerEvent(e)
	case history.Grant, history.Renew, history.End:
		j.leaseEvent(e)
	case history.Commit:
		j.commitEvent(e)
	case history.Edit:
		j.editEvent(e)
	default:
		j.rowEvent(e)
	}
}

func (j *Judge) violated(promise, name, format string, args ...any) {
	v := Violation{Promise: promise, Name: name, Text: fmt.Sprintf(format, args...)}
	j.verdict.Violations = append(j.verdict.Violations, v)
}

// ops returns the requests in the order in which they were sent.
func (j *Judge) ops(kinds ...string) []*history.Op {
	var list []*history.Op
	for _, op := range j.h.Ops {
		if slices.Contains(kinds, op.Request.Do) {
			list = append(list, op)
		}
	}
	slices.SortFunc(list, func(a, b *history.Op) int {
		return cmp.Or(cmp.Compare(a.Call, b.Call), cmp.Compare(a.Request.ID, b.Request.ID))
	})
	return list
}

func isWrite(op *history.Op) bool {
	return op.Request.Do == fence.Write || op.Request.Do == fence.Claim
}
