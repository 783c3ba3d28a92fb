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
//	Where    At the token WHERE, Range "id = 2"
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
//	Arms[0] Kind Matched, When At the first token AND, Range "n.gone", Action Delete
//	Arms[1] Kind NotMatched, When At the token THEN, empty, Action Insert,
//	        Insertion as that of an INSERT
//
// If reading fails, Failure holds the place and the reason, and only the fields before the failure are set.
type Write struct {
	Verb   Verb
	At     int32 // the verb
	Depth  int32 // number of brackets around the write
	Or     Or    // SQLite's OR x, and MySQL's IGNORE
	OrAt   int32 // the word after OR, or IGNORE
	Target Target
	// Joined is set if MySQL's UPDATE or DELETE takes its rows from several tables, as Join describes. Each table that
	// the statement writes to has a Write.
	Joined bool
	Join   Join

	Set   Assignments // for UPDATE and MySQL's INSERT ... SET
	From  int32       // for UPDATE and DELETE: the token FROM or USING, or the token before which it could be added
	Where Condition   // for UPDATE and DELETE
	Limit int32       // for UPDATE and DELETE: the token ORDER or LIMIT

	Insertion    Insertion // for INSERT and REPLACE
	Conflicts    []Conflict
	ConflictsAt  int32 // the first ON CONFLICT, or the token before which it could be added
	ConflictsEnd int32 // the token after the last ON CONFLICT

	Arms []Arm // for MERGE

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

// Or is the clause OR x of a write in SQLite, which decides what happens if a row breaks a constraint.
type Or uint8

// The clauses. OrIgnore also means MySQL's IGNORE.
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
	Alias        string // normalised; empty if the table has no alias
	At           int32  // first token of the name
	NameAt       int32  // token of Name
	AliasAt      int32  // token of Alias; 0 if the table has no alias
}

// Assignments are the items of a SET list. Range is empty if reading failed inside the list.
type Assignments struct {
	lex.Range
	Items []Assignment
}

// An Assignment is an item of a SET list; see [Text.Assigns] and [Text.Value].
type Assignment struct {
	lex.Range
	Names lex.Range // the assigned column, or the columns in the brackets of (column, ...) = ...
}

// A Condition is a WHERE, or the AND of a MERGE's arm. At is the keyword, or the token before which the keyword could
// be added; Range is the expression after the keyword.
type Condition struct {
	At int32
	lex.Range
}

// End returns the token after the condition, or the token before which a condition could be added.
func (c Condition) End() int32 { return max(c.At, c.Hi) }

// An Insertion has the columns and rows of an INSERT, or of the INSERT in a MERGE's arm.
type Insertion struct {
	List    lex.Range // tokens in the brackets of the columns; zero without brackets. MySQL accepts () for no columns
	Columns []lex.Range

	Overriding int32 // the token SYSTEM or USER after OVERRIDING

	Source   Source
	SourceAt int32     // first token of the source, even if reading the source failed
	Rows     lex.Range // the rows, up to ON CONFLICT or RETURNING; zero if reading failed there
	Arms     []RowArm

	// MySQL's alias for the rows to insert, and the aliases for their columns. Both are zero if the statement has none.
	RowAlias   string
	RowColumns lex.Range
}

// Source is the kind of clause that provides the rows of an [Insertion].
type Source uint8

// The sources.
const (
	NoSource Source = iota // reading failed before or in the source
	Defaults               // DEFAULT VALUES
	Values                 // a query that begins with VALUES
	Query                  // any other query
	Assigned               // MySQL's INSERT ... SET, see Write.Set
)

// A RowArm is one VALUES or SELECT in the query of an [Insertion]. UNION, INTERSECT and EXCEPT combine several.
type RowArm struct {
	Rows    []lex.Range // for VALUES: the values in each row's brackets
	Columns lex.Range   // for SELECT: the columns, including DISTINCT or ALL
	Select  bool
	Empty   bool  // for SELECT: it selects no column
	After   int32 // the token after the arm
	Last    bool  // for VALUES: neither UNION, INTERSECT nor EXCEPT follows
}

// A Conflict is an ON CONFLICT clause, or ON DUPLICATE KEY UPDATE.
type Conflict struct {
	At     int32 // ON
	Update bool  // DO UPDATE, not DO NOTHING
	Set    Assignments
	Where  Condition // Lo is 0 if there is no WHERE
}

// An Arm is one WHEN clause of a MERGE.
type Arm struct {
	At        int32 // WHEN
	Kind      Match
	When      Condition
	Action    Verb // Nothing, Insert, Update or Delete
	Set       Assignments
	Insertion Insertion
}

// Match is the kind of rows that an [Arm] is executed for.
type Match uint8

// The kinds of rows.
const (
	Matched Match = iota
	NotMatched
	NotMatchedBySource
)

// A Failure is the token at which reading a write failed, and the reason. The zero Failure means success.
type Failure struct {
	Reason advise.Code
	At     int32 // the token
}
