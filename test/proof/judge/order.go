package judge

import (
	"bytes"
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sqlfence/sqlfence/test/proof/fence"
	"github.com/sqlfence/sqlfence/test/proof/history"
)

// A register models a row and the newest token of its name in a database that executes one operation at a time.
type register struct {
	newest int64
	mark   int64 // of the last write
	value  int64
}

// A step is a request's effect on a register.
type step struct {
	do    string
	token int64
	value int64
	is    string
}

// do reports whether a step's response is possible, and returns the next register. A ledger compares with the newest
// token, a mark with the token of the last write.
func (r register) do(s step, ledger bool) (bool, register) {
	if s.do == fence.Read {
		return s.value == r.value, r
	}
	if s.do != fence.Write { // a grant
		return s.token > r.newest, register{s.token, r.mark, r.value}
	}
	holds := s.token >= r.mark
	if ledger {
		holds = s.token == r.newest
	}
	if s.is == fence.Stale {
		return !holds, r
	}
	return holds, register{r.newest, s.token, s.value}
}

// registers is the sequential database.
var registers = porcupine.Model{
	DescribeOperation: func(input, _ any) string {
		s := input.(step)
		switch s.do {
		case fence.Read:
			return fmt.Sprintf("read → %d", s.value)
		case fence.Write:
			return fmt.Sprintf("write %d with token %d → %s", s.value, s.token, s.is)
		}
		return fmt.Sprintf("%s → token %d", s.do, s.token)
	},
	DescribeState: func(state any) string {
		r := state.(register)
		return fmt.Sprintf("newest token %d, mark %d, value %d", r.newest, r.mark, r.value)
	},
}

// orders searches, row by row, for an order that explains the answers. Only rows with separate tokens are searched. The
// database's record shows whether a write without an outcome has landed, but not when. The time of a token without a
// response is unknown as well.
func (j *Judge) orders(limit time.Duration) {
	steps := make(map[row][]porcupine.Operation)
	var last time.Duration
	told := make(map[token]bool)
	for _, op := range j.ops(fence.Issue, fence.Acquire, fence.Adopt, fence.Write, fence.Read) {
		last = max(last, op.Return)
		if op.Answer.Is == fence.OK {
			told[token{op.Request.Name, op.Answer.Token}] = true
		}
	}
	for _, op := range j.ops(fence.Issue, fence.Acquire, fence.Adopt, fence.Write, fence.Read) {
		for _, s := range op.Request.Steps {
			j.addStep(steps, row{s.Table, s.Row}, op, last)
		}
		if at, ok := j.register(op.Request.Name); ok {
			j.addStep(steps, at, op, last)
		}
	}
	for _, e := range j.h.Events {
		if at, ok := j.register(e.Name); ok && e.What == history.Ledger && e.Mark > 0 && !told[token{e.Name, e.Mark}] {
			steps[at] = append(steps[at], porcupine.Operation{Input: step{do: "a lost grant", token: e.Mark}, Return: int64(last) + 1})
		}
	}
	for at, list := range steps {
		j.search(at, list, limit)
	}
}

// register returns the row that a token's name is for, if an order is searched for it.
func (j *Judge) register(name string) (at row, ok bool) {
	for _, t := range j.h.Tables {
		if !searched(&t) {
			continue
		}
		if n, _ := fmt.Sscanf(name, t.Name+"/%d", &at.id); n == 1 {
			at.table = t.Name
			return at, true
		}
	}
	return row{}, false
}

// searched reports whether an order is searched for each row of a table.
func searched(t *history.Table) bool { return t.Keyed && t.Fence && !t.Strange }

func (j *Judge) addStep(steps map[row][]porcupine.Operation, at row, op *history.Op, last time.Duration) {
	t := history.Find(j.h.Tables, at.table)
	if t == nil || !searched(t) {
		return
	}
	name := t.Resource(at.id)
	s := step{do: op.Request.Do, is: op.Answer.Is, token: op.Answer.Token, value: op.Answer.Value}
	until := op.Return
	if s.do == fence.Write {
		s.token, _ = op.Token(name)
		s.value = op.Request.ID
		if s.is == fence.Unknown && j.landed[op.Request.ID] > 0 {
			s.is, until = fence.OK, last+1
		}
		if s.is == fence.Stale && len(op.Request.Steps) > 1 {
			return // it may be for another row
		}
	}
	if s.is == fence.OK || s.is == fence.Stale && s.do == fence.Write {
		steps[at] = append(steps[at], porcupine.Operation{ClientId: op.Lane, Input: s, Call: int64(op.Call), Return: int64(until)})
	}
}

func (j *Judge) search(at row, list []porcupine.Operation, limit time.Duration) {
	model := registers
	t := history.Find(j.h.Tables, at.table)
	begin := register{j.begin.ledger[t.Resource(at.id)], j.begin.marks[at], j.begin.values[at]}
	model.Init = func() any { return begin }
	model.Step = func(state, input, _ any) (bool, any) { return state.(register).do(input.(step), t.Ledger) }
	j.verdict.Counts.Searched++
	if porcupine.CheckOperationsTimeout(model, list, limit) != porcupine.Illegal {
		return
	}
	j.violated(Ordered, at.String(), "no order of %d requests on %s gives their answers, from %+v", len(list), at, begin)
	_, info := porcupine.CheckOperationsVerbose(model, list, limit)
	var page bytes.Buffer
	if err := porcupine.Visualize(model, info, &page); err == nil {
		j.verdict.Pictures[at.String()] = page.Bytes()
	}
}
