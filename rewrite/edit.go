package rewrite

import (
	"slices"
	"strings"
)

// op is what an edit writes.
type op uint8

const (
	opText       op = iota // edit.text
	opAbort                // SQLite's OR ABORT
	opMark                 // the expression for the row's mark
	opCheck                // the condition that a written row has to meet
	opLedger               // the ledger's condition (SQLite)
	opStatements           // the ledger's statements (PostgreSQL)
	opColumn               // what an INSERT names besides if there is a token
	opValue                // the token's value for the row edit.row of an INSERT
	opSerial               // the assignment of the next serial
	opTokens               // opCheck without the lock, which opRaisedEnd looks at
	opRaised               // what stands before a serial that the statement assigns
	opRaisedEnd            // and behind it
	opGone                 // the RETURNING that tells an inserted row from an updated one
)

// An edit inserts something into the statement's text. Nothing is ever taken out.
type edit struct {
	at     int32
	op     op
	apart  side
	target int32 // index in Plan.Targets
	row    int32
	text   string // for opText and opColumn; for opValue what separates it; for opMark, opCheck, opSerial, opTokens, opRaised, opRaisedEnd and opGone the columns' qualifier, for opLedger the schema, for opStatements WITH or nothing
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
	slices.SortStableFunc(edits, func(a, b edit) int { return int(a.at - b.at) })
	for i := range edits {
		e := &edits[i]
		at := int(e.at)
		if first := i == 0 || edits[i-1].at != e.at; first && at > 0 && isNamePart(src[at-1]) && isNamePart(e.begins()) {
			e.apart |= before
		}
		last := i == len(edits)-1 || edits[i+1].at != e.at
		if last && at < len(src) && isNamePart(e.ends()) && (isNamePart(src[at]) || strings.IndexByte(`'".`, src[at]) >= 0) {
			e.apart |= behind
		}
	}
}

// size returns about how many bytes an edit writes, for one token.
func (e *edit) size() int {
	switch e.op {
	case opText, opColumn:
		return len(e.text)
	case opAbort, opValue:
		return 16
	case opStatements:
		return 800
	}
	return 256
}

// begins returns the first byte that an edit writes, or one of its kind.
func (e *edit) begins() byte {
	switch e.op {
	case opText, opColumn:
		return e.text[0]
	case opAbort, opGone:
		return ' '
	case opMark, opSerial:
		return ','
	case opRaisedEnd:
		return ')'
	case opStatements, opValue:
		return (e.text + " ")[0]
	}
	return 'C'
}

// ends returns the last byte that an edit writes, or one of its kind.
func (e *edit) ends() byte {
	switch e.op {
	case opText, opColumn:
		return e.text[len(e.text)-1]
	case opStatements:
		return ' '
	case opRaised:
		return '('
	}
	return 'D'
}
