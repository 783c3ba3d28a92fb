package rowlock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/sqlfence/sqlfence"
)

// facts are what a claim, or a look, has met.
type facts struct {
	serial        any
	by            sql.NullString
	since, expiry sql.NullInt64
	live          bool
	granted       bool
}

func (t *Table) lock(f facts) Lock {
	serial, _ := f.serial.(int64)
	return Lock{serial, f.by.String, moment(t.dialect, f.since), moment(t.dialect, f.expiry)}
}

// facts are the columns of [facts] but the last.
func (t *Table) facts(c columns) string {
	return list([]string{c.version(), "CAST(" + c.by + " AS text)", stamp(t.dialect, c.since), stamp(t.dialect, c.expiry), c.live()})
}

// read runs a statement that gives one row at most, and reads what the caller
// wants to load only where that was granted.
func (t *Table) read(ctx context.Context, q querier, dest []any, text string, args []any) (f facts, err error) {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return f, err
	}
	defer rows.Close()
	found := rows.Next()
	if found {
		names, err := rows.Columns()
		if err != nil {
			return f, err
		}
		all := []any{&f.serial, &f.by, &f.since, &f.expiry, &f.live, &f.granted}
		var none any
		for len(all) < len(names) {
			all = append(all, &none)
		}
		if err := rows.Scan(all...); err != nil {
			return f, err
		}
		if f.granted && len(dest) > 0 {
			const own = 10 // columns before those to load
			if len(names) != own+len(dest) {
				return f, fmt.Errorf("%d columns to load into %d variables", len(names)-own, len(dest))
			}
			copy(all[own:], dest)
			if err := rows.Scan(all...); err != nil {
				return f, err
			}
		}
	}
	// To the very end: a database may answer with the row first and then fail to
	// commit.
	for rows.Next() {
	}
	if err := rows.Err(); err != nil {
		return f, err
	}
	if !found {
		return f, sql.ErrNoRows
	}
	return f, nil
}

// refusal tells why c was refused by a row with these facts; nil if it would be
// granted now.
func (t *Table) refusal(c claim, f facts) error {
	lock := t.lock(f)
	if _, ok := f.serial.(int64); !ok {
		return fmt.Errorf("the version column %s holds %v (%[2]T), want an integer", t.columns.serial, f.serial)
	}
	switch {
	case !c.unchecked && lock.Serial != c.Serial:
		return &sqlfence.ConflictError{Table: t.name, Expected: c.Serial, Current: lock.Serial}
	case f.live:
		return &sqlfence.LockedError{Table: t.name, By: lock.By, Since: lock.Since, Expiry: lock.Expiry}
	case c.held:
		return ErrNotHeld
	}
	return nil
}

// isRefusal reports whether err says that the row's state stood against a claim,
// which is a result and no failure.
func isRefusal(err error) bool {
	for _, refusal := range []error{sqlfence.ErrGone, sqlfence.ErrConflict, sqlfence.ErrLocked, ErrNotHeld} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

func errGone(table string, id any) error {
	return fmt.Errorf("%w: table %q, key %v", sqlfence.ErrGone, table, id)
}
