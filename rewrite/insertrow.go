package rewrite

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/rewrite/internal/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

// assignedRow plans an INSERT whose row is a SET list.
func (p *planner) assignedRow(w *read.Write) bool {
	p.insertion = insertion{listed: true, key: -1}
	set := &w.Set
	if set.Empty() {
		return true // it can't be read
	}
	var seen []string
	for n := range set.Items {
		item := &set.Items[n]
		column, _ := p.Name(int(item.Names.Lo))
		if slices.Contains(seen, column) {
			return p.refuseTarget(item.Lo, twice)
		}
		seen = append(seen, column)
		if !p.inserts(column, item.Lo, n) {
			return false
		}
	}
	if !p.showsKeys(w, &w.Insertion) || p.readsKeys() && !p.rowKey(p.PlainValue(set.Items[p.insertion.key])) {
		return false
	}
	if p.passesLedger() && !p.asksByMark() && !slices.ContainsFunc(set.Items, func(a read.Assignment) bool { return p.ledgerAround(p.PlainValue(a)) }) {
		return p.refuseTarget(set.Lo, noValue)
	}
	at := p.After(set.Hi)
	p.eachAdded(func(_ int, a added) {
		if a.value != "" {
			p.insertText(at, ", "+a.column+" = "+a.value)
		}
	})
	p.eachAdded(func(r int, a added) {
		if a.value == "" {
			o := opRowAssign
			if p.asksByMark() {
				o = opRowAssignAsking
			}
			p.insert(at, o, setOf(r), ", "+a.column+" = ")
		}
	})
	return true
}

// asksByMark reports whether the ledger is asked before the mark's value in the first of
// the rows, and not before one of the application's.
func (p *planner) asksByMark() bool {
	return p.passesLedger() && p.dialect.ledgerInRow() && p.target.rules.FenceColumn != "" && !p.insertion.unmarked
}

// noValue refuses an INSERT without a value that the ledger's check can stand around.
const noValue = "the ledger is asked before a value of the first row, and none of them is a placeholder or a plain constant; write one so"

// ledgerInRows has the ledger asked by the first row of each part of an INSERT's rows: it is
// evaluated before anything is inserted.
func (p *planner) ledgerInRows(ins *read.Insertion) bool {
	for i := range ins.Arms {
		arm := &ins.Arms[i]
		switch {
		case arm.Select:
			return p.refuseTarget(ins.SourceAt, "the ledger can't be asked by an INSERT ... SELECT here; select the rows first, and write INSERT ... VALUES")
		case len(arm.Rows) == 0:
			continue // it can't be read
		case !p.ledgerInFirst(arm.Rows[0]):
			return p.refuseTarget(ins.SourceAt, noValue)
		}
	}
	return true
}

// ledgerInFirst puts the ledger's check around a value of a row.
func (p *planner) ledgerInFirst(row read.Span) bool {
	for n := 0; ; n++ {
		value := p.Item(row, n)
		if value.Empty() {
			return false
		}
		if p.ledgerAround(value) {
			return true
		}
	}
}

// ledgerAround puts the ledger's check around a value, if that is stored alike inside of a
// CASE: a placeholder, NULL, or a plain constant. To some servers NOW() or 0x41 isn't.
func (p *planner) ledgerAround(value read.Span) bool {
	switch tok := value.Lo; {
	case value.Hi-value.Lo != 1:
		return false
	case p.Word(tok, "null"), p.Tokens[tok].Kind == lex.Param:
	case p.Tokens[tok].Kind == lex.Text && p.TokenText(tok)[0] == '\'':
	case p.Tokens[tok].Kind == lex.Number && strings.Trim(p.TokenText(tok), "0123456789.") == "":
	default:
		return false
	}
	at := p.Offset(value.Lo)
	p.insert(at, opBeforeRow, setOf(ruleLedger), "")
	p.insert(p.After(value.Hi), opBehindRow, setOf(ruleLedger), "")
	return true
}
