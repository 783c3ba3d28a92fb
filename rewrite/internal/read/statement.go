package read

import (
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
)

// A Statement is the result of [Text.Next] for one statement, valid until the next call of Next.
//
// Parts are in the order of the text, except for IntoParts and HiddenParts, which come last. The fields of a [Write]
// are in the order of the text. A caller that checks the parts in order, and a Write's fields in order before its
// Failure, finds the first problem of the text first.
type Statement struct {
	lex.Range // its tokens; Hi is a semicolon or the end

	// CTEAt is the offset in bytes at which the caller can add a common table expression: before the statement, or
	// after the statement's WITH [RECURSIVE]. HasWith reports whether the statement has a WITH.
	CTEAt   int32
	HasWith bool

	Explained bool // EXPLAIN ANALYZE runs the statement
	Tabular   bool // MariaDB's ANALYZE without FORMAT runs the statement
	Wrapped   bool // the statement follows PREPARE name AS, or SET STATEMENT ... FOR

	Parts  []Part
	Writes []Write
}

// PartKind is the kind of a [Part].
type PartKind uint8

// The kinds of part.
const (
	// WritePart: a write of rows, Statement.Writes[Part.Write].
	WritePart PartKind = iota + 1
	// NamePart: WITH gives Name, at token At, to a part of the statement.
	NamePart
	// IntoPart: INTO Name, as PostgreSQL's SELECT ... INTO, which creates that
	// table. Range is the name with its schema.
	IntoPart
	// HiddenPart: the verb at token At belongs to no parsed write, and may begin a hidden write. Range runs from At to
	// the end of the enclosing brackets.
	HiddenPart
	// UnreadablePart: the structure of the tokens can't be read.
	UnreadablePart
	// TooDeepPart: from token At on the statement is nested too deeply to be read.
	TooDeepPart
	// OtherPart: a statement that isn't a write of rows, of the kind Class.
	OtherPart
)

// A Part is a range of a statement's tokens that shows, or may hide, a table that the statement writes to: a write of
// rows, the name of a WITH item, a verb that may begin a hidden write, or tokens that can't be read. Kind says which.
type Part struct {
	Kind  PartKind
	Class Class // for OtherPart: the kind of statement

	Reason advise.Code // for UnreadablePart: why the tokens can't be read; Readable if the reason is unknown

	Write     int32  // for WritePart: index of the write in Statement.Writes
	At        int32  // the token that a refusal of the part points at
	Name      string // for NamePart and IntoPart: normalised
	lex.Range        // the tokens in which the part may name tables
}

// Class is the kind of a statement that isn't a write, judged by its first words.
type Class uint8

// The classes.
const (
	// Unknown: none of the following.
	Unknown Class = iota
	// NoRows: it changes no rows, whatever it names.
	NoRows
	// Reading: a read, unless parts that follow are hidden writes.
	Reading
	// Definition: the statement creates an object, and neither changes rows of existing tables nor changes them
	// automatically later, as a trigger does; or it drops an object without rows.
	Definition
	// Joins: CREATE TABLE ... PARTITION OF or INHERITS, which makes a table a part of another table.
	Joins
	// Do: PostgreSQL's DO; see [Text.Code].
	Do
	// Call: CALL, or a statement that executes a string in its text.
	Call
	// Dynamic: the statement runs dynamic SQL, or writes to tables that the text doesn't show.
	Dynamic
)
