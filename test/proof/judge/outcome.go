package judge

import (
	"encoding/json"
	"slices"

	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/test/proof/history"
)

// outcomes compares the responses with the landed writes.
func (j *Judge) outcomes() {
	c := &j.verdict.Counts
	for id, op := range j.h.Ops {
		c.Ops += max(1, len(op.Request.Steps))
		if (op.Answer.Is == fence.OK || op.Answer.Is == fence.Stale) && j.holdsTx(op) {
			c.Holds++
		}
		switch op.Answer.Is {
		case fence.Stale:
			c.Stale++
		case fence.Unknown:
			c.Unknown++
		case fence.Failed:
			c.Failed++
			c.Ops -= max(1, len(op.Request.Steps)) // where the server is away they cost nothing
		case fence.Held:
			c.Held++
		}
		if isWrite(op) {
			j.outcome(op, j.landed[id])
		}
	}
}

// holdsTx reports whether a request is a transaction that Hold fences.
func (j *Judge) holdsTx(op *history.Op) bool {
	return slices.ContainsFunc(op.Request.Steps, func(s fence.Step) bool {
		t := history.Find(j.h.Tables, s.Table)
		return isWrite(op) && t != nil && t.Held
	})
}

func (j *Judge) outcome(op *history.Op, landed int) {
	id, name := op.Request.ID, rowsOf(op)
	want, fixed := j.rows(op)
	switch {
	case op.Answer.Is == fence.OK && op.Answer.Rows < 0:
		if fixed && landed < want {
			j.violated(Kept, name, "%d was told that it has written %s, and %d of %d rows are", id, name, landed, want)
		} else if fixed && landed > want {
			j.violated(Whole, name, "%d was told that it has written %s, and %d rows are, not %d", id, name, landed, want)
		}
	case op.Answer.Is == fence.OK:
		if landed < int(op.Answer.Rows) {
			j.violated(Kept, name, "%d was told that %d rows of %s are written, and %d are", id, op.Answer.Rows, name, landed)
		} else if landed > int(op.Answer.Rows) {
			j.violated(Whole, name, "%d was told that %d rows of %s are written, and %d are", id, op.Answer.Rows, name, landed)
		}
	case op.Answer.Is == fence.Unknown:
		if landed > 0 {
			j.verdict.Counts.UnknownIn++
		}
		if landed > 0 && fixed && landed != want {
			j.violated(Whole, name, "%d has no outcome, and %d of its %d rows of %s are written", id, landed, want, name)
		}
	default:
		if landed > 0 {
			j.violated(Told, name, "%d was told %s (%s), and %d rows of %s are written: %s", id, op.Answer.Is, op.Answer.Error, landed, name, asked(op))
		}
	}
}

// rows returns how many rows a write changes, where no rows come and go.
func (j *Judge) rows(op *history.Op) (n int, fixed bool) {
	for _, s := range op.Request.Steps {
		t := history.Find(j.h.Tables, s.Table)
		if t == nil || t.Deletes {
			return 0, false
		}
		n++
		if s.Form == history.Bulk {
			n += int(t.Rows) - 1
		}
	}
	return n, true
}

// asked is the request as the fence has read it.
func asked(op *history.Op) string {
	line, err := json.Marshal(op.Request)
	if err != nil {
		return err.Error()
	}
	return string(line)
}

func rowsOf(op *history.Op) string {
	if len(op.Request.Steps) == 0 {
		return "nothing"
	}
	return row{op.Request.Steps[0].Table, op.Request.Steps[0].Row}.String()
}
