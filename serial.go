package sqlfence

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence/rewrite"
)

// Serial counts the row's versions: column is an integer column that INSERT sets
// to 1 and every UPDATE raises by 1, in every form, unless the statement names
// the column itself. NULL counts as 0, so rows that were there before the column
// need no care. [WithSerial] makes a statement apply only to a row at one version;
// with [Required] no row is written without it.
//
// The version of a row never falls, nor stays while the row is written. An INSERT
// may give a new row any; but where UPDATE, DO UPDATE SET or MERGE assigns the
// column, the value has to raise the row's, or the statement is refused with a
// [ConflictError] that says Assigned. It is compared as a whole number: PostgreSQL
// rounds it as for an integer column; SQLite cuts it off, and takes a text for the
// number that it begins with. DEFAULT, and a value that can't be told from its
// neighbours, such as one of (a, b) = (SELECT ...), is refused with
// [ErrUnguardable]. An object-relational mapper should read the column and not
// write it.
//
// A table with Serial and no other rule needs no tokens. With [RowFence] or
// [Ledger] both do their part, and where the database refuses for both, a stale
// token is told rather than a conflict or a missing serial; [Key], [Resource] and
// [Optional] without either mean the ledger, as they do without Serial.
//
// In SQLite, where a column holds values of any type, one that is no whole number
// refuses the write with [ErrUnguardable]; PostgreSQL has errors of its own.
func Serial(column string, opts ...SerialOption) Rule {
	return func(t *table) {
		o := new(serialOptions)
		for _, opt := range opts {
			if opt == nil {
				t.fail(errors.New("Serial: nil option"))
				continue
			}
			opt(o)
		}
		t.once(&t.rules.Serial, "Serial", column)
		switch {
		case o.required > 1:
			t.fail(errors.New("Serial: Required twice"))
		case t.serial != nil && t.serial.required != o.required:
			t.fail(errors.New("Serial twice, with Required and without"))
		}
		t.serial, t.rules.SerialRequired = o, o.required > 0
	}
}

// A SerialOption changes what [Serial] does.
type SerialOption func(*serialOptions)

type serialOptions struct {
	required int // how often
}

// Required refuses writes on rows that are there with [ErrNoSerial], unless their
// context carries a serial ([WithSerial]). UPDATE, DELETE, and MERGE with an arm
// that does either are not sent; INSERT ... ON CONFLICT DO UPDATE is refused by the
// database where it would update. Other INSERTs need no serial.
//
// A MERGE can't be compared with one, so what remains of it is WHEN NOT MATCHED.
// In SQLite an upsert can't either: write INSERT ... ON CONFLICT DO NOTHING, and
// where it inserted no row, read that and UPDATE it.
func Required() SerialOption {
	return func(o *serialOptions) { o.required++ }
}

type serialKey struct{}

// WithSerial returns a context whose UPDATEs and DELETEs of tables with [Serial]
// apply only to rows at this version, the one that the caller has read. Where a
// row is at another, the statement is refused with a [ConflictError]; where it
// reaches no row, with [ErrGone]. Either way it has changed nothing, and it takes
// one round trip, as ever.
//
// ErrGone means that the statement wrote no row, so its WHERE should select the
// row by its key alone. Some statements that could have no clear answer are refused
// with [ErrUnguardable]: those that name the serial column in SET or WHERE, LIMIT,
// SKIP LOCKED, writes inside of WITH, a MERGE, and a query without RETURNING; in
// SQLite also OR IGNORE, an upsert, Exec of a statement with RETURNING, and text
// behind a semicolon. In PostgreSQL an upsert inserts only with serial 0, and has no
// RETURNING of its own. A plain INSERT is not compared with anything.
//
// The text doesn't show all that may keep a row from being written: a trigger that
// skips it, a policy of row-level security that hides it, a rule, a view whose
// trigger writes elsewhere, ONLY before the name of a table whose row is in another
// that inherits from it. Then ErrGone is told of a row that is there.
//
// A row that was deleted and inserted again starts at 1. Where a driver repeats a
// write whose answer was lost, the second one is a conflict; reading again tells.
//
// A negative serial refuses every write that would be compared with it.
func WithSerial(ctx context.Context, serial int64) context.Context {
	return context.WithValue(ctx, serialKey{}, serial)
}

func serialFrom(ctx context.Context) (int64, bool) {
	serial, ok := ctx.Value(serialKey{}).(int64)
	return serial, ok
}

// version turns the attempt into one on rows at the context's serial, if that
// carries one and the statement writes to such rows; or it tells why it can't.
func (a *attempt) version(ctx context.Context, as form) error {
	serial, ok := serialFrom(ctx)
	switch {
	case !a.plan.Serial:
		return nil
	case !ok:
		return a.unversioned()
	}
	plan := a.fence.rewriter.VersionedPlan(a.text)
	unguardable := func(reason string) error {
		return &UnguardableError{Table: a.fence.tables[plan.Tables[0]].name, Reason: reason}
	}
	asks := as == queryForm || as == preparedQueryForm
	switch {
	case plan.Verdict == rewrite.Refuse:
		return a.fence.unguardable(plan.Refusal)
	case !plan.Versioned:
		return nil
	case serial < 0:
		return unguardable(fmt.Sprintf("the context's serial is %d, which no row has; give WithSerial the one that was read", serial))
	case asks && !plan.Returns:
		return unguardable("a query that returns no rows doesn't tell whether the row was there; run it with Exec, or add RETURNING")
	case !asks && plan.Returns && a.fence.profile.dialect == SQLite:
		return unguardable("with RETURNING drivers of SQLite miscount the rows that Exec wrote; run it with Query, or leave RETURNING out")
	}
	a.plan, a.values.Serial = plan, serial
	return nil
}

// unversioned refuses a write on rows that need a serial in its context.
func (a *attempt) unversioned() error {
	for i := range a.plan.Targets {
		target := &a.plan.Targets[i]
		if t := a.table(target.Table); target.Changes && t.rules.SerialRequired {
			return noSerial(t, nil)
		}
	}
	return nil
}

func noSerial(t *table, err error) error {
	return &rowError{ErrNoSerial, fmt.Sprintf("table %q: add one with WithSerial: the version that was read", t.name), err}
}

// reached refuses the result of a versioned statement that reached no row.
func (a *attempt) reached(ctx context.Context, res driver.Result) error {
	if !a.plan.Versioned {
		return nil
	}
	n, err := res.RowsAffected()
	if err != nil {
		return fmt.Errorf("sqlfence: the driver doesn't tell whether the row was there: %w", err)
	}
	if n > 0 {
		return nil
	}
	return a.gone(ctx)
}

// gone reports and returns that a versioned statement reached no row; in Observe
// mode it only reports it.
func (a *attempt) gone(ctx context.Context) error {
	err := a.refuse(ctx, a.goneError(nil))
	a.tell(ctx, nil)
	return err
}

func (a *attempt) goneError(err error) error {
	return &rowError{ErrGone, fmt.Sprintf("the statement found no row that could be at serial %d", a.values.Serial), err}
}

// explainSerial returns the typed error for what the guard of a serial raised.
func (a *attempt) explainSerial(m rewrite.Marker, err error) error {
	t := a.table(m.Table)
	switch m.Kind {
	case rewrite.Conflict:
		return &ConflictError{Table: t.name, Expected: a.values.Serial, Current: m.Current, err: err}
	case rewrite.Assigned:
		return &ConflictError{Table: t.name, Current: m.Current, Assigned: true, err: err}
	case rewrite.Required:
		return noSerial(t, err)
	case rewrite.NotSerial:
		return &rowError{ErrUnguardable, fmt.Sprintf("table %q: the serial column %q holds %q, which can't be counted on; repair the row, under Bypass", t.name, t.rules.Serial, m.Found), err}
	default:
		return a.goneError(err)
	}
}
