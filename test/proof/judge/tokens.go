package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/test/proof/history"
)

// ledgerEvent: a new token is higher than all before.
func (j *Judge) ledgerEvent(e history.Event) {
	newest := j.ledger[e.Name]
	if e.Mark <= newest && newest > 0 || e.Mark <= e.Was && e.Was > 0 {
		j.violated(Rising, e.Name, "token %d of %s comes after %d", e.Mark, e.Name, max(newest, e.Was))
	}
	if newest > 0 {
		j.verdict.Counts.Takeovers++
	}
	j.ledger[e.Name] = max(newest, e.Mark)
}

// leaseEvent: a lease begins when the one before has ended, by the database's clock, and is extended
// before it ends.
func (j *Judge) leaseEvent(e history.Event) {
	before, known := j.leases[e.Name]
	j.leases[e.Name] = e
	switch e.What {
	case history.Grant:
		if e.Op > 0 && e.Began < e.Op {
			j.violated(Apart, e.Name, "lease %s is taken at %d, though the one before ends at %d", e.Name, e.Began, e.Op)
		}
		if known && before.What != history.End && before.Mark == e.Mark {
			j.violated(Rising, e.Name, "lease %s has the token %d of the one before", e.Name, e.Mark)
		}
	case history.Renew:
		if asked := e.Ended - j.h.TTL.Microseconds(); asked >= e.Op {
			j.violated(Apart, e.Name, "lease %s is extended at %d, though it ended at %d", e.Name, asked, e.Op)
		}
		if known && e.Mark != before.Mark {
			j.violated(Rising, e.Name, "lease %s is extended, and its token %d becomes %d", e.Name, before.Mark, e.Mark)
		}
	}
}

// grants: of two tokens of a name, the one that was asked for after the other had come is higher. None comes twice.
func (j *Judge) grants() {
	byName := make(map[string][]*history.Op)
	for _, op := range j.ops(fence.Issue, fence.Acquire, fence.Adopt) {
		if op.Answer.Is == fence.OK {
			byName[op.Request.Name] = append(byName[op.Request.Name], op)
		}
	}
	for name, ops := range byName {
		for _, op := range ops {
			if t := (token{name, op.Answer.Token}); j.issued[t] {
				j.violated(Rising, name, "token %d of %s was given twice, the second time to %d", t.value, name, op.Request.ID)
			} else {
				j.issued[t] = true
			}
		}
		j.inOrder(name, ops)
		if t := j.h.Tables[0]; t.Strange && !t.Ledger {
			j.verdict.Counts.Takeovers += len(ops) - 1
		}
	}
}

// inOrder goes through the calls by time, with the highest token that had come before each.
func (j *Judge) inOrder(name string, called []*history.Op) {
	returned := slices.Clone(called)
	slices.SortFunc(returned, func(a, b *history.Op) int { return cmp.Compare(a.Return, b.Return) })
	var highest int64
	for _, op := range called {
		for len(returned) > 0 && returned[0].Return < op.Call {
			highest = max(highest, returned[0].Answer.Token)
			returned = returned[1:]
		}
		if op.Answer.Token <= highest {
			j.violated(Rising, name, "%d gets token %d of %s, at %v, after %d was given", op.Request.ID, op.Answer.Token, name,
				op.Call.Round(time.Microsecond), highest)
		}
	}
}
