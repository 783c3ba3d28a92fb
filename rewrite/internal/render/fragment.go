package render

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Op is what an edit writes.
type Op uint8

const (
	opText         Op = iota // Fragment.Text
	OpAbort                  // SQLite's OR ABORT
	OpFirst                  // the check of Fragment.Rules before the first assignment of a SET list
	OpAssign                 // the assignments of Fragment.Rules
	OpCheck                  // the condition with which Fragment.Rules check an updated row
	OpCheckDeleted           // the condition with which Fragment.Rules check a deleted row
	OpAnd                    // the condition with which Fragment.Rules check a row, after another condition and AND
	// the ledger's checks in WITH, for the targets from Fragment.Target up to Fragment.Row; Fragment.Text is "WITH" or
	// empty
	OpWith
	OpColumn            // Fragment.Text, a column in an INSERT's list, if the rule gives the column a value
	OpValue             // the rule's value for the row Fragment.Row of an INSERT, after Fragment.Text
	OpValueChecking     // OpValue inside of a CASE that checks the ledger
	OpRowAssign         // the rule's value as an assignment of an INSERT ... SET, after a comma and the column
	OpRowAssignChecking // OpRowAssign inside of a CASE that checks the ledger
	OpBeforeRow         // the SQL before a value of a row to insert, which checks the ledger or the key
	OpAfterRow          // the SQL after this value
	OpBeforeAssigned    // the SQL before the value of a serial or claim that the statement assigns
	OpAfterAssigned     // the SQL after this value
	// Fragment.Text, a part of a condition, with the placeholders at index Fragment.Row of the Repeats
	OpRepeat
	OpStored // the RETURNING that checks the keys of the rows as they were stored
	OpGone   // the RETURNING that distinguishes an inserted row from an updated row
	OpTail   // the clause after the query of an INSERT that checks the ledger
)

// A Fragment inserts something into the statement's text. Nothing is ever taken out.
type Fragment struct {
	At     int32
	Op     Op
	apart  side
	Rules  RuleSet
	Target int32 // index in Plan.Targets
	Row    int32 // index of a row of an INSERT; its meaning for other Ops is at the Op
	Inputs int32 // number of the statement's placeholders before the edit, if they have no numbers
	Text   string
}

// side is the side of an inserted fragment that needs a blank, so that the fragment and a word of the statement aren't
// read as one word.
type side uint8

const (
	before side = 1 << iota
	after
)

// Order sorts the edits of a statement, and records where a blank must separate an inserted fragment from the
// statement's words.
func Order(edits []Fragment, src string) {
	byPlace := func(a, b Fragment) int { return int(a.At - b.At) }
	if !slices.IsSortedFunc(edits, byPlace) { // the edits of many rows are usually sorted
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
			e.apart |= after
		}
	}
}

// begins returns the first byte that an edit writes, or a byte of the same kind.
func (e *Fragment) begins() byte {
	switch e.Op {
	case opText, OpColumn:
		return e.Text[0]
	case OpAbort, OpGone, OpStored, OpRepeat, OpAfterRow, OpTail:
		return ' '
	case OpAssign:
		return ','
	case OpAfterAssigned:
		return ')'
	case OpWith, OpValue, OpValueChecking, OpRowAssign, OpRowAssignChecking:
		return (e.Text + " ")[0]
	case OpFirst:
		return '`'
	}
	return 'C'
}

// ends returns the last byte that an edit writes, or a byte of the same kind.
func (e *Fragment) ends() byte {
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
