package render

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Op is what an edit writes.
type Op uint8

const (
	opText         Op = iota // edit.text
	OpAbort                  // SQLite's OR ABORT
	OpFirst                  // the check of edit.rules before the first assignment
	OpAssign                 // what edit.rules assign
	OpCheck                  // the condition of edit.rules, for a written row
	OpCheckDeleted           // the same, for one that is deleted
	OpAnd                    // the same, behind another condition
	// the ledger's statements for the targets up to edit.row, behind edit.text: WITH or nothing
	OpWith
	OpColumn          // edit.text, which an INSERT names besides if the rule gives a value
	OpValue           // the rule's value for the row edit.row of an INSERT, behind edit.text
	OpValueAsking     // the same, after the ledger was asked
	OpRowAssign       // the same as an assignment, behind a comma and the column
	OpRowAssignAsking // the same, after the ledger was asked
	OpBeforeRow       // what has the ledger asked before a value of a row to insert
	OpBehindRow       // and what stands behind it
	OpBeforeAssigned  // what stands before a serial that the statement assigns
	OpBehindAssigned  // and behind it
	OpRepeat          // edit.text, a part of a condition, with the placeholders edit.row of the repeats
	OpStored          // the RETURNING that checks the keys of the rows as they were stored
	OpGone            // the RETURNING that distinguishes an inserted row from an updated one
	OpTail            // the clause behind the query of an INSERT that asks the ledger
)

// An Edit inserts something into the statement's text. Nothing is ever taken out.
type Edit struct {
	At     int32
	Op     Op
	apart  side
	Rules  RuleSet
	Target int32 // index in Plan.Targets
	Row    int32 // index of a row of an INSERT; its meaning for other Ops is at the Op
	Inputs int32 // number of the statement's placeholders before the edit, if they have no numbers
	Text   string
}

// side is the side of an insertion that needs a blank, so that the insertion doesn't grow together with a word of the
// user.
type side uint8

const (
	before side = 1 << iota
	behind
)

// Order sorts the edits of a statement, and notes where a blank must separate an edit from the statement's words.
func Order(edits []Edit, src string) {
	byPlace := func(a, b Edit) int { return int(a.At - b.At) }
	if !slices.IsSortedFunc(edits, byPlace) { // of many rows they mostly are
		slices.SortStableFunc(edits, byPlace)
	}
	for i := range edits {
		e := &edits[i]
		at := int(e.At)
		first := i == 0 || edits[i-1].At != e.At
		if first && at > 0 && lex.IsNamePart(src[at-1]) && lex.IsNamePart(e.begins()) {
			e.apart |= before
		}
		last := i == len(edits)-1 || edits[i+1].At != e.At
		joins := func(c byte) bool { return lex.IsNamePart(c) || strings.IndexByte(`'".`, c) >= 0 }
		if last && at < len(src) && lex.IsNamePart(e.ends()) && joins(src[at]) {
			e.apart |= behind
		}
	}
}

// begins returns the first byte that an edit writes, or a byte of the same kind.
func (e *Edit) begins() byte {
	switch e.Op {
	case opText, OpColumn:
		return e.Text[0]
	case OpAbort, OpGone, OpStored, OpRepeat, OpBehindRow, OpTail:
		return ' '
	case OpAssign:
		return ','
	case OpBehindAssigned:
		return ')'
	case OpWith, OpValue, OpValueAsking, OpRowAssign, OpRowAssignAsking:
		return (e.Text + " ")[0]
	case OpFirst:
		return '`'
	}
	return 'C'
}

// ends returns the last byte that an edit writes, or a byte of the same kind.
func (e *Edit) ends() byte {
	switch e.Op {
	case opText, OpColumn:
		return e.Text[len(e.Text)-1]
	case OpWith, OpFirst, OpBeforeRow: // no word stands behind the verb
		return ' '
	case OpBeforeAssigned:
		return '('
	}
	return 'D' // also of a repetition, which may be left out
}
