package read

import (
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
)

// A Write is one INSERT, UPDATE, DELETE, MERGE or REPLACE, with its target and the positions of its clauses. Positions
// are indexes of tokens. Position 0 means a missing clause, or a clause after the place where reading failed.
//
// UPDATE books AS b SET price = 1, title = $1 WHERE id = 2 RETURNING id is
//
//	At 0, Verb Update, Target{Name: "books", Alias: "b"}
//	Set      "price = 1, title = $1", Items {"price" = "1"} {"title" = "$1"}
//	From     the token WHERE, as there is no FROM
//	Where    At the token WHERE, Span "id = 2"
//	Returning the token RETURNING
//
// INSERT INTO books (id, price) VALUES (1, 2), (3, 4) ON CONFLICT (id) DO UPDATE SET
// price = excluded.price WHERE books.price < 9 is
//
//	Insertion.List "id, price", Columns "id" "price"
//	Insertion.Source Values, SourceAt the token VALUES, Rows from it to "(3, 4)"
//	Insertion.Arms   one, Values, Rows "1, 2" "3, 4"
//	Conflicts        one, Update true, Set and Where as those of an UPDATE
//	ConflictsAt      the token ON; ConflictsEnd the end
//
// MERGE INTO books b USING new n ON b.id = n.id WHEN MATCHED AND n.gone THEN DELETE
// WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id) is
//
//	Arms[0] Kind Matched, When At the first token AND, Span "n.gone", Action Delete
//	Arms[1] Kind NotMatched, When At the token THEN, empty, Action Insert,
//	        Insertion as that of an INSERT
//
// If reading fails, Failure holds the place and the reason, and only the fields before the failure are set.
type Write struct {
	Verb   Verb
	At     int32 // the verb
	Depth  int32 // how many brackets it is inside of
	Or     Or    // SQLite's OR x, and MySQL's IGNORE
	OrAt   int32 // x
	Target Target
	Joined bool // of MySQL's UPDATE and DELETE: its rows come from several tables; each written to has a Write
	Join   Join // how

	Set   Assignments // of UPDATE, and MySQL's INSERT ... SET
	From  int32       // of UPDATE and DELETE: where FROM or USING stands or would stand
	Where Condition   // of UPDATE and DELETE
	Limit int32       // of UPDATE and DELETE: ORDER BY or LIMIT

	Insertion    Insertion // of INSERT and REPLACE
	Conflicts    []Conflict
	ConflictsAt  int32 // where the first ON CONFLICT stands or would stand
	ConflictsEnd int32 // behind the last one

	Arms []Arm // of MERGE

	Returning int32
	Failure   Failure
}

// Verb is the verb of a [Write], or the action of an [Arm].
type Verb uint8

// The verbs.
const (
	Nothing Verb = iota // DO NOTHING
	Insert
	Replace // SQLite's other word for INSERT OR REPLACE
	Update
	Delete
	Merge
)

// Or is SQLite's way of dealing with a broken constraint.
type Or uint8

// The ways.
const (
	OrNone Or = iota
	OrAbort
	OrRollback
	OrIgnore
	OrFail
	OrReplace
	OrOther // no word that SQLite knows
)

// A Target is the table that is written to.
type Target struct {
	Schema, Name string // normalised
	Alias        string // normalised; empty for none
	At           int32  // the first token of the name
	NameAt       int32  // the token of Name, as it is spelled
	AliasAt      int32  // that of Alias; 0 for none
}

// Assignments are a SET list. Span is empty where reading failed in it.
type Assignments struct {
	lex.Span
	Items []Assignment
}

// An Assignment is an item of a SET list; see [Text.Assigns] and [Text.Value].
type Assignment struct {
	lex.Span
	Names lex.Span // the column, or the tokens in the bracket of several
}

// A Condition is a WHERE, or the AND of a MERGE's arm. At is the keyword, or the token before which the keyword could
// be added; Span is the expression after the keyword.
type Condition struct {
	At int32
	lex.Span
}

// End returns the token after the condition, or the token before which a condition could be added.
func (c Condition) End() int32 { return max(c.At, c.Hi) }

// An Insertion has the columns and rows of an INSERT, or of the INSERT in a MERGE's arm.
type Insertion struct {
	List    lex.Span // what is in the bracket of the columns; zero for none. MySQL's may be empty, which is as none
	Columns []lex.Span

	Overriding int32 // the word behind OVERRIDING, SYSTEM or USER

	Source   Source
	SourceAt int32    // its first token, also where it can't be read
	Rows     lex.Span // the rows, up to ON CONFLICT or RETURNING; zero if reading failed there
	Arms     []RowArm

	// MySQL's alias for the rows, and for their columns; zero for none.
	RowAlias   string
	RowColumns lex.Span
}

// Source is the kind of clause that provides the rows of an [Insertion].
type Source uint8

// The sources.
const (
	NoSource Source = iota // it can't be read
	Defaults               // DEFAULT VALUES
	Values                 // it begins with VALUES
	Query                  // it begins otherwise
	Assigned               // MySQL's INSERT ... SET: Write.Set
)

// A RowArm is one of the VALUES and SELECT that UNION and the like combine, in the
// order of the text.
type RowArm struct {
	Rows    []lex.Span // of VALUES: what is in the brackets
	Columns lex.Span   // of SELECT: its columns, with DISTINCT or ALL
	Select  bool
	Empty   bool  // of SELECT: it names no column
	After   int32 // the token behind
	Last    bool  // of VALUES: nothing is combined with it, also behind ORDER BY or LIMIT
}

// A Conflict is an ON CONFLICT clause, or ON DUPLICATE KEY UPDATE.
type Conflict struct {
	At     int32 // ON
	Update bool  // DO UPDATE, not DO NOTHING
	Set    Assignments
	Where  Condition // its Lo is 0 where there is none
}

// An Arm is a WHEN of a MERGE.
type Arm struct {
	At        int32 // WHEN
	Kind      Match
	When      Condition
	Action    Verb // Nothing, Insert, Update or Delete
	Set       Assignments
	Insertion Insertion
}

// Match says for which rows an [Arm] is.
type Match uint8

// The rows.
const (
	Matched Match = iota
	NotMatched
	NotMatchedBySource
)

// A Failure is a place where a write can't be read, and the reason. The zero Failure means none.
type Failure struct {
	Reason advise.Code
	At     int32 // the token
}
