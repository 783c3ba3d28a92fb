package judge

import (
	"maps"
	"slices"

	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/test/proof/history"
)

// A Plant puts a violation into a copy of a history. Into reports whether the history has a place for the violation.
type Plant struct {
	Name string
	into func(h *history.History) bool
}

// Into returns a copy with the violation in it.
func (p Plant) Into(h *history.History) (planted *history.History, ok bool) {
	c := *h
	c.Events = slices.Clone(h.Events)
	c.Ops = maps.Clone(h.Ops)
	return &c, p.into(&c)
}

// Plants are the violations that a judge has to find in any history.
var Plants = []Plant{
	{"a mark falls", func(h *history.History) bool {
		return onEvent(h, fenced, func(e *history.Event) { e.Mark = e.Was - 1 })
	}},
	{"two writes of a row change places", swapWrites},
	{"a stale write lands", func(h *history.History) bool {
		return onOp(h, landedOn(h, func(t *history.Table) bool { return t.Fence || t.Ledger }), func(op *history.Op) {
			op.Request.Tokens = slices.Clone(op.Request.Tokens)
			for i := range op.Request.Tokens {
				op.Request.Tokens[i].Value--
			}
		})
	}},
	{"a token is issued before a write of the one before is committed", commitLate},
	{"an acknowledged write is gone", func(h *history.History) bool {
		return onEvent(h, func(h *history.History, e history.Event) bool { return isRow(e) && acknowledged(h, e) }, func(e *history.Event) {
			e.What, e.Name, e.Op = history.Commit, "", 0
		})
	}},
	{"a refused write has landed", func(h *history.History) bool {
		return onOp(h, landedOn(h, func(*history.Table) bool { return true }), func(op *history.Op) { op.Answer.Is = fence.Stale })
	}},
	{"a token is issued twice", func(h *history.History) bool {
		return onEvent(h, func(_ *history.History, e history.Event) bool { return e.What == history.Ledger && e.Was > 0 },
			func(e *history.Event) { e.Mark = e.Was })
	}},
	{"a token comes out of order", func(h *history.History) bool {
		return onOp(h, func(op *history.Op) bool {
			return (op.Request.Do == fence.Issue || op.Request.Do == fence.Acquire) && op.Answer.Is == fence.OK && op.Answer.Token > 1 && later(h, op)
		}, func(op *history.Op) { op.Answer.Token = 0 })
	}},
	{"a lease begins before the one before has ended", func(h *history.History) bool {
		return onEvent(h, func(_ *history.History, e history.Event) bool { return e.What == history.Grant && e.Op > 0 },
			func(e *history.Event) { e.Began = e.Op - 1 })
	}},
	{"a lease that has ended is extended", func(h *history.History) bool {
		return onEvent(h, func(_ *history.History, e history.Event) bool { return e.What == history.Renew },
			func(e *history.Event) { e.Op = e.Ended - h.TTL.Microseconds() })
	}},
	{"a version is left out", func(h *history.History) bool {
		return onEvent(h, func(h *history.History, e history.Event) bool {
			return isTable(h, e, func(t *history.Table) bool { return t.Serial })
		},
			func(e *history.Event) { e.Mark++ })
	}},
	{"another writes a row that a user edits", func(h *history.History) bool {
		return onEvent(h, func(h *history.History, e history.Event) bool { return e.What == history.Edit && h.Ops[e.Op] != nil },
			func(e *history.Event) { e.Was, e.Ended = h.Ops[e.Op].Request.User+1, e.Began+1 })
	}},
	{"a claim isn't raised by a takeover", func(h *history.History) bool {
		return onEvent(h, func(h *history.History, e history.Event) bool {
			return isTable(h, e, func(t *history.Table) bool { return t.Claim }) && h.Ops[e.Op] != nil && h.Ops[e.Op].Request.Do == fence.Claim
		}, func(e *history.Event) { e.Mark = e.Was })
	}},
	{"a read sees what was never there", func(h *history.History) bool {
		return onOp(h, func(op *history.Op) bool {
			return op.Request.Do == fence.Read && op.Answer.Is == fence.OK && op.Request.Steps[0].Table == "leased"
		}, func(op *history.Op) { op.Answer.Value = -1 })
	}},
}

// onEvent changes the event in the middle of those that are meant.
func onEvent(h *history.History, meant func(*history.History, history.Event) bool, change func(*history.Event)) bool {
	var places []int
	for i, e := range h.Events {
		if meant(h, e) {
			places = append(places, i)
		}
	}
	if len(places) == 0 {
		return false
	}
	change(&h.Events[places[len(places)/2]])
	return true
}

// onOp changes the request in the middle of those that are meant.
func onOp(h *history.History, meant func(*history.Op) bool, change func(*history.Op)) bool {
	var places []int64
	for id, op := range h.Ops {
		if meant(op) {
			places = append(places, id)
		}
	}
	if len(places) == 0 {
		return false
	}
	slices.Sort(places)
	op := *h.Ops[places[len(places)/2]]
	change(&op)
	h.Ops[op.Request.ID] = &op
	return true
}

func isRow(e history.Event) bool {
	return e.What == history.Insert || e.What == history.Update || e.What == history.Delete
}

func isTable(h *history.History, e history.Event, meant func(*history.Table) bool) bool {
	t := history.Find(h.Tables, e.Name)
	return e.What == history.Update && e.Op != 0 && t != nil && meant(t)
}

func fenced(h *history.History, e history.Event) bool {
	return isTable(h, e, func(t *history.Table) bool { return t.Fence }) && e.Was > 0
}

func acknowledged(h *history.History, e history.Event) bool {
	op := h.Ops[e.Op]
	return op != nil && op.Answer.Is == fence.OK && op.Answer.Rows > 0
}

// landedOn finds acknowledged writes of a single row of a table.
func landedOn(h *history.History, meant func(*history.Table) bool) func(*history.Op) bool {
	return func(op *history.Op) bool {
		if op.Request.Do != fence.Write || op.Answer.Is != fence.OK || op.Answer.Rows <= 0 || len(op.Request.Steps) != 1 {
			return false
		}
		t := history.Find(h.Tables, op.Request.Steps[0].Table)
		return t != nil && meant(t)
	}
}

// later reports whether a token of the name had been given before the request was sent.
func later(h *history.History, op *history.Op) bool {
	for _, other := range h.Ops {
		if other.Request.Name == op.Request.Name && other.Answer.Is == fence.OK && other.Answer.Token > 0 && other.Return < op.Call {
			return true
		}
	}
	return false
}

// swapWrites has two writes of a row, with different tokens, change their places in the record.
func swapWrites(h *history.History) bool {
	last := make(map[row]int)
	var pairs [][2]int
	for i, e := range h.Events {
		if !fenced(h, e) {
			continue
		}
		at := row{e.Name, e.Row}
		if before, ok := last[at]; ok && h.Events[before].Mark < e.Mark {
			pairs = append(pairs, [2]int{before, i})
		}
		last[at] = i
	}
	if len(pairs) == 0 {
		return false
	}
	a, b := pairs[len(pairs)/2][0], pairs[len(pairs)/2][1]
	h.Events[a], h.Events[b] = h.Events[b], h.Events[a]
	return true
}

// commitLate has a transaction that has written with the newest token commit behind the next one.
func commitLate(h *history.History) bool {
	wrote := make(map[int64]string)   // by request, the name of its token
	committed := make(map[string]int) // by name, the last commit
	var places [][2]int
	for i, e := range h.Events {
		t := history.Find(h.Tables, e.Name)
		switch {
		case e.What == history.Ledger:
			if commit, ok := committed[e.Name]; ok {
				places = append(places, [2]int{commit, i})
				delete(committed, e.Name)
			}
		case e.What == history.Commit && wrote[e.Op] != "":
			committed[wrote[e.Op]] = i
		case isRow(e) && t != nil && t.Ledger && h.Ops[e.Op] != nil:
			wrote[e.Op] = t.Resource(e.Row)
		}
	}
	if len(places) == 0 {
		return false
	}
	commit, token := places[len(places)/2][0], places[len(places)/2][1]
	e := h.Events[commit]
	copy(h.Events[commit:token], h.Events[commit+1:token+1])
	h.Events[token] = e
	return true
}
