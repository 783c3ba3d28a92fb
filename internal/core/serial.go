package core

import (
	"context"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/guard"
)

// findSerial plans the statement for rows at the version of the context (WithSerial), if the context has a version and
// the statement writes to a table with Serial. Otherwise it may return why the statement is refused.
func (e *Execution) findSerial(ctx context.Context) error {
	if !e.plan.Serial {
		return nil
	}
	serial, ok := serialFrom(ctx)
	if !ok {
		return e.requireSerial()
	}
	plan, err := e.planFor(guard.Versioned)
	if err != nil || !plan.Versioned {
		return err
	}
	t := e.registry.table(plan, 0)
	switch {
	case serial < 0:
		return fmt.Errorf("%w: table %q: the context's serial is %d; pass WithSerial the version that was read, 0 or "+
			"higher", ErrInvalid, t.Name, serial)
	case e.rows && !plan.Returns:
		return t.unguardable(nil, "a query that returns no rows doesn't show whether it reached a row; run it with "+
			"Exec, or add RETURNING")
	case !e.rows && plan.Returns && !e.conn.settings.profile.Errors.CountsRows.Is():
		return t.unguardable(nil, "drivers of this database miscount the rows of an Exec with RETURNING; run it with "+
			"Query, or leave RETURNING out")
	}
	e.take(plan, guard.Versioned)
	e.with.values.Serial = serial
	return nil
}

// requireSerial refuses a write under a context without a version if it changes rows of a table with Serial and
// Required.
func (e *Execution) requireSerial() error {
	for i := range e.plan.Targets {
		target := &e.plan.Targets[i]
		if t := e.table(target.Table); target.Changes && t.Rules.SerialRequired {
			return noSerial(t, nil)
		}
	}
	return nil
}

func noSerial(t *Table, err error) error {
	return &Refusal{Sentinel: ErrNoSerial, Reason: fmt.Sprintf("table %q: add the version that was read to the "+
		"context, with WithSerial", t.Name),
		Err: err, Table: t.Name}
}

// gone returns the error of a statement under WithSerial that affected no row: the row is gone. In Observe mode it only
// reports the error to observers, and returns nil.
func (e *Execution) gone(ctx context.Context) error {
	err := e.goneError(nil)
	if e.tolerates(err) {
		return nil
	}
	event := e.refusal(Refused, err)
	event.Sent = e.sent.Query
	e.report(ctx, event)
	return err
}

func (e *Execution) goneError(err error) error {
	return &Refusal{Sentinel: ErrGone, Err: err, Table: e.table(0).Name,
		Reason: fmt.Sprintf("table %q: the statement reached no row at serial %d", e.table(0).Name,
			e.with.values.Serial)}
}

// serialError returns the typed error for an error that the guard of the rule Serial or Claim threw.
func (e *Execution) serialError(m guard.Marker, err error) error {
	t := e.table(m.Table)
	switch m.Kind {
	case guard.Conflict:
		return t.factory.Conflict(Conflict{Table: t.Name, Expected: e.with.values.Serial, Current: m.Current}, err)
	case guard.Assigned:
		return t.factory.Conflict(Conflict{Table: t.Name, Current: m.Current, Assigned: true,
			Claim: t.Rules.Claim != ""}, err)
	case guard.Required:
		return noSerial(t, err)
	case guard.NotSerial:
		column, kind := t.Rules.Serial, "serial"
		if t.Rules.Claim != "" {
			column, kind = t.Rules.Claim, "claim"
		}
		return t.factory.Unguardable(Unguarded{
			Table:  t.Name,
			Column: column,
			Reason: fmt.Sprintf("the %s column %q holds %q, want an integer below 2⁶³-1; repair the row, under Bypass",
				kind, column, m.Found),
			Offset: -1,
		}, err)
	default:
		return e.goneError(err)
	}
}
