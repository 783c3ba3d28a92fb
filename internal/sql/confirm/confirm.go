// Package confirm reads a rendered statement and confirms that each piece of the
// guard stands where it guards: an assignment inside the SET list of its own UPDATE, a
// condition in the WHERE of its own verb, and so on.
//
// It is a second reading, independent of the one that placed the pieces: it knows
// their kind and their place, and takes nothing else from there. So a mistake in
// either doesn't become a guard in the wrong place. It isn't a parser, and says nothing
// about a statement's syntax; a statement that it can't confirm is to be refused.
//
// Its own rules are few. A word that can only begin another clause ends a SET list and a
// WHERE. A bracket is a frame of its own. A piece begins and ends with whole tokens, so
// none is part of a string or comment.
package confirm

import (
	"slices"
	"sync"
)

// A Kind says what a piece is, and so where it has to stand.
type Kind uint8

// The kinds. The zero Kind is none, and is never confirmed.
const (
	Assignment        Kind = iota + 1 // a comma and an assignment, at the end of a SET list
	BeforeValue                       // what opens around a value that a SET list assigns
	BehindValue                       // and what closes behind it
	Condition                         // first in the WHERE of a write, or in a MERGE's arm
	AndCondition                      // in the WHERE of a write, behind WHERE or AND
	Column                            // a column at the end of those that an INSERT names
	RowValue                          // a value at the end of a row to insert
	WithItems                         // items of the first WITH, with or without that word
	OrAbort                           // OR ABORT behind the verb
	Returning                         // RETURNING of an INSERT
	LeadingAssignment                 // an assignment and a comma, at the beginning of a SET list
	BeforeRowValue                    // the head of a CASE around a value of a row to insert
	BehindRowValue                    // and its END
	Tail                              // LIMIT or OFFSET behind the query of an INSERT
)

// isWhole reports whether a piece of the kind closes what it opens, and begins no
// other part of the statement.
func (k Kind) isWhole() bool { return k != BeforeValue && k != BehindValue && k != Returning }

// A Piece is what the guard has added to a statement, from Lo to Hi of its text.
type Piece struct {
	Kind   Kind
	Lo, Hi int

	// Target is the quoted name, or alias, of the table that an Assignment, a Condition or a
	// value is written for. Other kinds have none.
	Target string
}

// A Check confirms the pieces of one statement. It comes from [Begin].
type Check struct {
	scanner
	pieces []Piece
	frames []frame // the brackets that are open, the whole text first

	// Around a value that is assigned stand two pieces: how many frames there are
	// outside of them, and between them; 0 elsewhere.
	outside, between int
}

var checks = sync.Pool{New: func() any { return new(Check) }}

// maxFrames and maxPieces are what a check keeps room for when it is released.
const (
	maxFrames = 1 << 10
	maxPieces = 16 << 10
)

// Begin returns a check without pieces.
func Begin() *Check { return checks.Get().(*Check) }

// Grow makes room for n pieces more.
func (c *Check) Grow(n int) { c.pieces = slices.Grow(c.pieces, n) }

// Add adds a piece. Pieces are added in the order of the text.
func (c *Check) Add(p Piece) { c.pieces = append(c.pieces, p) }

// Confirms reports whether all pieces stand in text where they guard.
func (c *Check) Confirms(d *Dialect, text string) bool {
	c.scanner = scanner{dialect: d, text: text, numbers: c.numbers}
	c.frames = append(c.frames[:0], frame{head: true})
	c.outside, c.between = 0, 0
	return c.walk(c.pieces)
}

// Release keeps the check's room for the next one. It must not be used after.
func (c *Check) Release() {
	if cap(c.frames) > maxFrames || cap(c.pieces) > maxPieces {
		return
	}
	c.text = ""
	clear(c.pieces)
	c.pieces, c.numbers = c.pieces[:0], c.numbers[:0]
	checks.Put(c)
}
