package rewrite

import (
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// op is what an edit writes.
type op uint8

const (
	opText         op = iota // edit.text
	opAbort                  // SQLite's OR ABORT
	opFirst                  // the check of edit.rules before the first assignment
	opAssign                 // what edit.rules assign
	opCheck                  // the condition of edit.rules, for a written row
	opCheckDeleted           // the same, for one that is deleted
	opAnd                    // the same, behind another condition
	// the ledger's statements for the targets up to edit.row, behind edit.text: WITH or nothing
	opWith
	opColumn          // edit.text, which an INSERT names besides if the rule gives a value
	opValue           // the rule's value for the row edit.row of an INSERT, behind edit.text
	opValueAsking     // the same, after the ledger was asked
	opRowAssign       // the same as an assignment, behind a comma and the column
	opRowAssignAsking // the same, after the ledger was asked
	opBeforeRow       // what has the ledger asked before a value of a row to insert
	opBehindRow       // and what stands behind it
	opBeforeAssigned  // what stands before a serial that the statement assigns
	opBehindAssigned  // and behind it
	opRepeat          // edit.text, a part of a condition, with the placeholders edit.row of the repeats
	opStored          // the RETURNING that checks the keys of the rows as they were stored
	opGone            // the RETURNING that distinguishes an inserted row from an updated one
	opTail            // the clause behind the query of an INSERT that asks the ledger
)

// An edit inserts something into the statement's text. Nothing is ever taken out.
type edit struct {
	at     int32
	op     op
	apart  side
	rules  ruleSet
	target int32 // index in Plan.Targets
	row    int32 // of an INSERT; of opPlaced and opWith see there
	inputs int32 // how many of the statement's placeholders stand before it, if these have no numbers
	text   string
}

// side is where an insertion needs a blank, so as not to grow together with a
// word of the user's.
type side uint8

const (
	before side = 1 << iota
	behind
)

// order sorts the edits of a statement and keeps them apart from its words.
func order(edits []edit, src string) {
	byPlace := func(a, b edit) int { return int(a.at - b.at) }
	if !slices.IsSortedFunc(edits, byPlace) { // of many rows they mostly are
		slices.SortStableFunc(edits, byPlace)
	}
	for i := range edits {
		e := &edits[i]
		at := int(e.at)
		first := i == 0 || edits[i-1].at != e.at
		if first && at > 0 && lex.IsNamePart(src[at-1]) && lex.IsNamePart(e.begins()) {
			e.apart |= before
		}
		last := i == len(edits)-1 || edits[i+1].at != e.at
		joins := func(c byte) bool { return lex.IsNamePart(c) || strings.IndexByte(`'".`, c) >= 0 }
		if last && at < len(src) && lex.IsNamePart(e.ends()) && joins(src[at]) {
			e.apart |= behind
		}
	}
}

// begins returns the first byte that an edit writes, or one of its kind.
func (e *edit) begins() byte {
	switch e.op {
	case opText, opColumn:
		return e.text[0]
	case opAbort, opGone, opStored, opRepeat, opBehindRow, opTail:
		return ' '
	case opAssign:
		return ','
	case opBehindAssigned:
		return ')'
	case opWith, opValue, opValueAsking, opRowAssign, opRowAssignAsking:
		return (e.text + " ")[0]
	case opFirst:
		return '`'
	}
	return 'C'
}

// ends returns the last byte that an edit writes, or one of its kind.
func (e *edit) ends() byte {
	switch e.op {
	case opText, opColumn:
		return e.text[len(e.text)-1]
	case opWith, opFirst, opBeforeRow: // no word stands behind the verb
		return ' '
	case opBeforeAssigned:
		return '('
	}
	return 'D' // also of a repetition, which may be left out
}
