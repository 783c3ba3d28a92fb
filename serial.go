package sqlfence

import (
	"context"
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/core"
)

// Serial counts the row's versions: column is an integer column that INSERT sets
// to 1 and every UPDATE raises by 1, in every form, unless the statement names
// the column itself. NULL counts as 0, so existing rows need no change when the
// column is added. [WithSerial] makes a statement apply only to a row at one version;
// with [Required] no row is written without it.
//
// Every write of a row raises its version. An INSERT may start a row at any version; but if UPDATE,
// DO UPDATE SET or MERGE assigns the column, the value must be higher than the row's, or the
// statement is refused with a [ConflictError] that has Assigned set. Values are compared as
// integers: PostgreSQL rounds the new one as for an integer column; SQLite truncates it, and reads
// a text as the number that it begins with. DEFAULT is refused with [ErrUnguardable], and so is a
// value that isn't an expression by itself, such as one of (a, b) = (SELECT ...). An
// object-relational mapper should read the column and not write it.
//
// A table with Serial and no other rule needs no tokens. [Key], [Resource] or [Optional]
// imply [Ledger] unless there is a [RowFence], as they do without Serial. If the
// database finds both a stale token and a conflict or a missing serial, the error
// reports the token.
//
// In SQLite a column can hold values of any type; a write to a row with a version that isn't an
// integer is refused with a [UnguardableError]. PostgreSQL has errors of its own. In MySQL the column
// has to be BIGINT, which verify.Check checks.
func Serial(column string, opts ...SerialOption) Rule {
	return func(t *registration) {
		o := new(serialOptions)
		for _, opt := range opts {
			if opt == nil {
				t.Fail(errors.New("Serial: nil option"))
				continue
			}
			opt(o)
		}
		required := o.required > 0
		switch {
		case o.required > 1:
			t.Fail(errors.New("Serial: Required twice"))
		case t.Rules.Serial != "" && t.Rules.SerialRequired != required:
			t.Fail(errors.New("Serial twice, with Required and without"))
		}
		t.Once(&t.Rules.Serial, "Serial", column)
		t.Rules.SerialRequired = required
	}
}

// A SerialOption changes what [Serial] does.
type SerialOption func(*serialOptions)

type serialOptions struct {
	required int // how often
}

// Required refuses writes to existing rows with [ErrNoSerial], unless their context
// carries a serial ([WithSerial]). UPDATE, DELETE, and MERGE with an arm that does
// either are not sent; the database refuses INSERT ... ON CONFLICT DO UPDATE if it
// would update. Other INSERTs need no serial.
//
// A MERGE can't be compared with a serial, so only its WHEN NOT MATCHED arms can be
// used. Nor can an upsert in SQLite, MySQL and MariaDB: write INSERT ... ON CONFLICT DO NOTHING
// (INSERT IGNORE), and where it inserted no row, read the row and UPDATE it.
func Required() SerialOption {
	return func(o *serialOptions) { o.required++ }
}

// WithSerial returns a context that lets UPDATEs and DELETEs of tables with [Serial] apply only to
// rows at this version, the one that the caller has read. A statement that reaches a row at another
// version is refused with a [ConflictError]; one that reaches no row, with [ErrGone]. Either way it
// has changed nothing, and it takes one round trip, like any other.
//
// ErrGone means that the statement wrote no row, so its WHERE should select the row by its key
// alone. A plain INSERT is not compared. Statements with an ambiguous answer are refused with
// [ErrUnguardable]:
//
//   - those that name the serial column in SET or WHERE, LIMIT, SKIP LOCKED, writes inside
//     of WITH, a MERGE, and a query without RETURNING;
//   - in SQLite also OR IGNORE, an upsert, Exec of a statement with RETURNING, and text
//     after a semicolon;
//   - in MySQL and MariaDB also IGNORE, an upsert, and a write of joined tables;
//   - in PostgreSQL an upsert with a RETURNING of its own. One without inserts only with
//     serial 0.
//
// ErrGone is also returned for a row that exists, if the database leaves it unwritten
// for a reason that the statement doesn't show: a trigger skips it, a policy of
// row-level security hides it, a rule or a view's trigger writes elsewhere, or the
// statement says ONLY and the row is in a table that inherits from the named one.
//
// A row that was deleted and inserted again starts at 1. If a driver repeats a write because its
// answer was lost, the second one is a conflict; read the row again to find out whether the first
// was applied.
//
// A negative serial is invalid: every write that would be compared with it fails with
// [ErrInvalid].
func WithSerial(ctx context.Context, serial int64) context.Context {
	return core.WithSerial(ctx, serial)
}

// A ConflictError reports that a row changed after the caller read it, or that a statement assigned a serial or
// a claim ([Claim]) that isn't higher than the row's. errors.Is(err, [ErrConflict]) is true for it, and Unwrap
// returns the base driver's error.
type ConflictError struct {
	refusedAsConflict

	Table    string // as registered with [WithTable]
	Expected int64  // the serial that the caller had read; 0 if Assigned
	Current  int64  // the row's serial, or its claim

	// Assigned is true where the statement itself assigned the serial, NULL or a
	// number that isn't higher than Current.
	Assigned bool

	claim bool // Current is the claim of a row
}

func (e *ConflictError) Error() string {
	if e.claim {
		return fmt.Sprintf("sqlfence: claim not raised: table %q: the statement assigned a claim that isn't higher "+
			"than the row's, which is %d; assign COALESCE(column, 0) + 1", e.Table, e.Current)
	}
	if e.Assigned {
		return fmt.Sprintf("%v: table %q: the statement assigned a serial that doesn't raise the row's, which is %d; "+
			"leave the column out, it rises by itself", ErrConflict, e.Table, e.Current)
	}
	return fmt.Sprintf("%v: table %q: expected serial %d, but it is %d", ErrConflict, e.Table, e.Expected, e.Current)
}

// Temporary returns true, as reading the row again and repeating the change can
// succeed; but false if Assigned: the statement has to be written differently.
func (e *ConflictError) Temporary() bool { return !e.Assigned }
