package sqlfence

import (
	"context"
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/core"
)

// Serial counts a row's versions in an integer column (bigint): INSERT sets 1 and every UPDATE adds 1, unless the
// statement assigns the column. NULL counts as 0. [WithSerial] makes a statement apply only to one version.
//
// A value that an UPDATE, upsert or MERGE assigns must be higher than the row's, otherwise the statement fails with a
// [ConflictError] that has Assigned set.
//
// A table with Serial alone needs no tokens. Rules about tokens, such as [Key], imply [Ledger] unless there is a
// [RowFence].
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

// A SerialOption changes [Serial].
type SerialOption func(*serialOptions)

type serialOptions struct {
	required int // number of times that the rule Required was given
}

// Required refuses UPDATEs and DELETEs with [ErrNoSerial] if the context carries no serial ([WithSerial]), and MERGEs
// and upserts that would update or delete a row. docs/data/rules.md has a replacement for upserts.
func Required() SerialOption {
	return func(o *serialOptions) { o.required++ }
}

// WithSerial returns a context in which UPDATEs and DELETEs of tables with [Serial] apply only to rows at the version
// that the caller has read. A statement that reaches another version fails with a [ConflictError]. A statement that
// writes no row fails with [ErrGone] (docs/data/rules.md has the reasons), so WHERE should select the row by its key
// alone. A failed statement changes nothing. The comparison takes no round trip. A plain INSERT isn't compared. If it
// would be unclear whether a row was written, the error is [ErrUnguardable]. A negative serial is [ErrInvalid].
func WithSerial(ctx context.Context, serial int64) context.Context {
	return core.WithSerial(ctx, serial)
}

// A ConflictError has the details of an [ErrConflict].
type ConflictError struct {
	refusedAsConflict

	Table    string // as registered
	Expected int64  // the serial that the caller read; 0 if Assigned
	Current  int64  // the row's serial, or its claim

	// Assigned is true if the statement assigned a value that isn't higher than Current.
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

// Temporary returns !e.Assigned: the caller can read the row and try again.
func (e *ConflictError) Temporary() bool { return !e.Assigned }
