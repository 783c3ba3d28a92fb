package dberr

import "github.com/sqlfence/sqlfence/internal/fact"

// Classifier classifies the errors of a database and its drivers: what state the statement and the transaction are in
// after an error. It also has facts about how values are stored and counted.
type Classifier struct {
	Remote        fact.Fact // the database uses a network connection that can be lost
	CommitsAfter  fact.Fact // after an error that rolled the transaction back, later statements commit separately
	HidesRollback fact.Fact // an error doesn't show whether it rolled the transaction back; see [IsRolledBack]
	Unlocks       fact.Fact // a rollback to a savepoint releases the locks that were taken after the savepoint
	BytesAreText  fact.Fact // a text column stores bytes as the text that they spell
	CountsRows    fact.Fact // drivers count the rows of a statement with RETURNING in Exec
	CountsArgs    fact.Fact // a driver without NumInput refuses a wrong number of arguments for numbered placeholders

	// TimeType is the type of a column with a lock's time.
	TimeType string

	// IsResponse reports whether err is the database's response to a statement or COMMIT that failed and was undone. It
	// returns false if the session ended with err.
	IsResponse func(err error) bool

	// KeepsTx reports whether the transaction may still be open, in a session that continues, after a COMMIT or
	// ROLLBACK that failed with err.
	KeepsTx func(err error) bool

	// EndsTx reports whether a statement, which begins with word and isn't COMMIT, may commit its transaction. The
	// server then commits each later statement separately.
	EndsTx func(word, query string) bool

	// IsOpen reports whether the error of a BEGIN shows that a transaction is open. It is used if HidesRollback.
	IsOpen func(begin error) bool

	// LeftNothing reports whether a failed statement changed neither data nor its transaction; false in doubt.
	LeftNothing func(f Failure) bool

	// ChoosesKey reports whether the database may store a new row under another key, as MySQL for 0 in AUTO_INCREMENT.
	ChoosesKey func(key string) bool
}

// A Failure is a statement that failed in the base driver or in the database.
type Failure struct {
	Err     error
	Query   string // as the application wrote it
	ByGuard bool   // a guard threw Err
	InTx    bool
	Saved   bool // a savepoint precedes the statement
	Aborts  bool // the statement said OR ABORT
}

// Never is a function of [Classifier] that always returns false.
func Never[T any](T) bool { return false }

// Nowhere is [Classifier.EndsTx] for databases in which only COMMIT commits.
func Nowhere(_, _ string) bool { return false }
