package rowlock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// Check reads the catalogue and returns an error with all faults of the table: a missing column, a column of another
// type, a version that may be NULL, a holder's column that can't store the value of [WithNobody], and a key that isn't
// unique. Call it at start-up. It changes nothing.
func (t *Table) Check(ctx context.Context) error {
	var found map[string]column
	var unique bool
	err := t.readOnly(ctx, func(ctx context.Context, q owned) (err error) {
		if found, err = t.listColumns(ctx, q); err != nil {
			return err
		}
		text, args := t.render(t.dialect.hasUniqueKey, nil, nil)
		return q.row(ctx, text, args, &unique)
	})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("rowlock: there is no table %q, or this role can't see it", t.name)
	}
	faults := t.faults(found)
	if !unique {
		faults = append(faults, fmt.Errorf("its key %s has no unique index of its own; create one",
			strings.Join(t.keys, ", ")))
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("rowlock: the table %q can't be used: %w", t.name, err)
	}
	return nil
}

type column struct {
	typ     string // as the database writes it, in lower case
	notNull bool
}

// listColumns returns the table's columns by their quoted names.
func (t *Table) listColumns(ctx context.Context, q owned) (map[string]column, error) {
	text, args := t.render(t.dialect.listColumns, nil, nil)
	return readColumns(ctx, q, t.dialect, text, args)
}

// readColumns reads a query of listColumns: nothing if there is no such table.
func readColumns(ctx context.Context, q owned, d *dialect, text string, args []any) (map[string]column, error) {
	found := make(map[string]column)
	err := q.each(ctx, func(rows *sql.Rows) error {
		var name string
		var c column
		err := rows.Scan(&name, &c.typ, &c.notNull)
		found[d.Quote(name)] = c
		return err
	}, text, args...)
	return found, err
}

func (t *Table) faults(found map[string]column) (faults []error) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	c := t.columns
	for _, name := range append([]string{c.serial, c.by, c.since, c.expiry}, t.keys...) {
		if _, ok := found[name]; !ok {
			fault("it has no column %s", name)
		}
	}
	if serial, ok := found[c.serial]; ok {
		if !isInteger(serial.typ) {
			fault("its version column %s is of type %s, want bigint", c.serial, serial.typ)
		}
		if !serial.notNull {
			fault("its version column %s may be NULL; make it NOT NULL", c.serial)
		}
	}
	if found[c.by].notNull && t.noHolder == nil {
		fault("its column %s is NOT NULL; set the value for no holder with WithNobody", c.by)
	}
	for _, name := range []string{c.since, c.expiry} {
		time, ok := found[name]
		if !ok {
			continue
		}
		if time.notNull && name == c.expiry {
			fault("its column %s is NOT NULL, but is NULL while no user holds the lock; allow NULL", name)
		} else if !t.dialect.isTime(time.typ) {
			fault("its column %s is of type %s, want %s", name, time.typ, t.dialect.wantsTime)
		}
	}
	return faults
}

// isInteger reports whether a column of the type holds integers, by SQLite's rule.
func isInteger(typ string) bool { return strings.Contains(typ, "int") && typ != "interval" }
