package dberr

import "github.com/sqlfence/sqlfence/internal/fact"

// Answers are how a database and its drivers answer: what an error says of a statement and its transaction,
// and what is particular to the values that they take and return.
type Answers struct {
	Remote       fact.Fact // it is reached over a connection that can be lost
	CommitsAfter fact.Fact // rolling back for a deadlock or the like, it commits each statement behind that by itself
	Unlocks      fact.Fact // rolling back to a savepoint gives up the locks that were taken after it was set
	BytesAreText fact.Fact // bytes are stored in a column of text as the text that they spell
	CountsRows   fact.Fact // drivers count the rows of a statement with RETURNING that is run by Exec
	CountsArgs   fact.Fact // a driver without NumInput refuses a wrong number of arguments for numbered placeholders

	// TimeType is the type of a column that holds a lock's time.
	TimeType string

	// Answered reports whether err is the database's answer to a statement, or to a
	// COMMIT, that failed and was undone. It isn't if the session ended with it.
	Answered func(err error) bool

	// KeepsTx reports whether the server may have the transaction open still, in a session that
	// goes on, after a COMMIT or ROLLBACK that failed with err.
	KeepsTx func(err error) bool

	// EndsTx reports whether a statement, which begins with this word, may commit the transaction that it stands in
	// though it isn't a COMMIT. Then the server commits each later statement on its own.
	EndsTx func(word, query string) bool

	// LeftNothing reports whether a failed statement has changed nothing, and its
	// transaction is as it was. In doubt it is false.
	LeftNothing func(f Failure) bool

	// ChoosesKey reports whether a new row may get another key than this one, which the
	// database chooses.
	ChoosesKey func(key string) bool
}

// A Failure is a statement that failed in the base driver or in the database.
type Failure struct {
	Err     error
	Query   string // as the application wrote it
	ByGuard bool   // Err is what a guard raised
	InTx    bool
	Saved   bool // a savepoint stands before it
	Aborts  bool // the statement said OR ABORT
}

// Never is the answer of a database in which something doesn't happen.
func Never[T any](T) bool { return false }

// Nowhere is [Answers.EndsTx] of a database in which only a COMMIT commits.
func Nowhere(_, _ string) bool { return false }
