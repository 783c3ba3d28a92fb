package judge

import (
	"fmt"

	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/test/proof/history"
)

// rowEvent judges a change of a row.
func (j *Judge) rowEvent(e history.Event) {
	t := history.Find(j.h.Tables, e.Name)
	if t == nil {
		return
	}
	at := row{e.Name, e.Row}
	j.values[at] = e.Op
	j.follow(t, at, e)
	if e.Op == 0 {
		return // the suite's
	}
	op := j.h.Ops[e.Op]
	if op == nil {
		j.violated(Known, at.String(), "%s of %s by %d, which was never asked for", e.What, at, e.Op)
		return
	}
	j.landed[e.Op]++
	j.changed[change{e.Op, e.Name}] = true
	j.verdict.Counts.Landed++
	j.fences(t, at, e, op)
	j.holds(t, at, e.Seq, op)
	if t.Serial {
		j.serial(at, e, op)
	}
}

func (r row) String() string { return fmt.Sprintf("%s/%d", r.table, r.id) }

// follow keeps the mark of a row, which each change has to find as the one before has left it.
func (j *Judge) follow(t *history.Table, at row, e history.Event) {
	if t.Mark == "" {
		return
	}
	if mark, known := j.marks[at]; known && e.What != history.Insert && mark != e.Was {
		j.violated(Unbroken, at.String(), "%s of %s by %d finds %d, where %d was left", e.What, at, e.Op, e.Was, mark)
	}
	j.marks[at] = e.Mark // 0 once it is deleted
}

// fences compares the request's token with the mark, and with the row's generation.
func (j *Judge) fences(t *history.Table, at row, e history.Event, op *history.Op) {
	name := t.Resource(e.Row)
	value, _ := op.Token(name)
	switch {
	case t.Claim && op.Request.Do == fence.Claim:
		if e.Mark <= e.Was {
			j.violated(Claims, at.String(), "%d takes %s over from generation %d with %d", e.Op, at, e.Was, e.Mark)
		}
		j.verdict.Counts.Takeovers++
	case t.Claim:
		if value != e.Was || e.Mark != e.Was {
			j.violated(Claims, at.String(), "%d writes %s with claim %d, which has %d and gets %d", e.Op, at, value, e.Was, e.Mark)
		}
	case t.Strange:
		if value < j.wrote[at] {
			j.violated(Falls, at.String(), "%d writes %s with token %d, after %d has", e.Op, at, value, j.wrote[at])
		}
		j.wrote[at] = max(j.wrote[at], value)
	case t.Fence && e.What == history.Delete:
		if value < e.Was {
			j.violated(Falls, at.String(), "%d deletes %s with token %d, which has %d", e.Op, at, value, e.Was)
		}
	case t.Fence:
		if e.Mark < e.Was || value < e.Was {
			j.violated(Falls, at.String(), "%d writes %s with token %d: from %d to %d", e.Op, at, value, e.Was, e.Mark)
		} else if e.Mark != value {
			j.violated(Unbroken, at.String(), "%d writes %s with token %d, and leaves %d", e.Op, at, value, e.Mark)
		}
		if t.Single && e.What == history.Update && value == e.Was {
			j.violated(Once, at.String(), "%d writes %s again with token %d", e.Op, at, value)
		}
	}
}

// holds checks whether the request's token is the newest, once at the write and once at the commit of its transaction.
func (j *Judge) holds(t *history.Table, at row, seq int64, op *history.Op) {
	name := t.Resource(at.id)
	value, _ := op.Token(name)
	if newest, known := j.ledger[name]; t.Ledger && known && newest != value {
		j.violated(Newest, name, "%d writes %s with token %d, at %d, where %d is the newest: %s, told %s%s",
			op.Request.ID, at, value, seq, newest, asked(op), op.Answer.Is, j.around(name, at, seq))
	}
	if t.ClaimOf == "" {
		return
	}
	if generation, known := j.marks[row{t.ClaimOf, at.id}]; known && generation != value {
		j.violated(Claims, at.String(), "%d writes %s with claim %d, at %d, where %d is the newest",
			op.Request.ID, at, value, seq, generation)
	}
}

// commitEvent: a transaction's guards hold until its commit. A statement that has met no row has written nothing, and
// not every guard is asked then: on SQLite none that is to change rows of an empty table.
func (j *Judge) commitEvent(e history.Event) {
	op := j.h.Ops[e.Op]
	if op == nil {
		return
	}
	for _, s := range op.Request.Steps {
		t := history.Find(j.h.Tables, s.Table)
		if t != nil && op.Request.Do == fence.Write && j.changed[change{e.Op, s.Table}] {
			j.holds(t, row{s.Table, s.Row}, e.Seq, op)
		}
	}
}

func (j *Judge) serial(at row, e history.Event, op *history.Op) {
	switch {
	case e.What == history.Insert && e.Mark != 1, e.What == history.Update && e.Mark != e.Was+1:
		j.violated(Serials, at.String(), "%d writes %s: from version %d to %d", e.Op, at, e.Was, e.Mark)
	case e.What == history.Update && op.Request.Serial != 0 && op.Request.Serial != e.Was:
		j.violated(Serials, at.String(), "%d writes %s by version %d, which has %d", e.Op, at, op.Request.Serial, e.Was)
	}
}

// editEvent checks that no other user writes the row or takes the lock before the lock has ended.
func (j *Judge) editEvent(e history.Event) {
	at := row{e.Name, e.Row}
	if e.Was == 0 || e.Ended <= e.Began {
		return
	}
	switch op := j.h.Ops[e.Op]; {
	case e.Op == 0 && e.Mark != 0 && e.Mark != e.Was:
		j.violated(Edits, at.String(), "user %d takes the lock of %s, which user %d has for %d µs", e.Mark, at, e.Was, e.Ended-e.Began)
	case op != nil && op.Request.User != e.Was:
		j.violated(Edits, at.String(), "%d writes %s for user %d, which user %d has for %d µs", e.Op, at, op.Request.User, e.Was, e.Ended-e.Began)
	}
}

// around is what was recorded of a token's name and of a row near a moment.
func (j *Judge) around(name string, at row, seq int64) (text string) {
	for _, e := range j.h.Events {
		near := e.Seq > seq-60 && e.Seq < seq+20
		if near && (e.Name == name || e.Name == at.table && e.Row == at.id || j.h.Ops[e.Op] != nil && e.What == history.Commit) {
			text += fmt.Sprintf("\n\t%+v", e)
		}
	}
	return text
}
