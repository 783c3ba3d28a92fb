package rowlock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Current returns the row's version and its lock, for display. If no user holds the lock, all fields but Serial are
// empty. Errors: [sqlfence.ErrGone] if there is no such row, [sqlfence.ErrInvalid] for the id.
func (t *Table) Current(ctx context.Context, id any) (lock Lock, err error) {
	key, err := t.key(id)
	if err != nil {
		return Lock{}, err
	}
	err = t.readOnly(ctx, func(ctx context.Context, q owned) error {
		lock, err = t.current(ctx, q, id, key)
		return err
	})
	return lock, err
}

// IsLockedBy reports whether user holds the row's lock. Errors are those of [Table.Current], and [sqlfence.ErrInvalid]
// for the user.
func (t *Table) IsLockedBy(ctx context.Context, id, user any) (bool, error) {
	held, mine, err := t.holder(ctx, id, user)
	return held && mine, err
}

// Lockable reports whether user could take the row's lock, because no other user holds it. Errors are those of
// [Table.IsLockedBy].
func (t *Table) Lockable(ctx context.Context, id, user any) (bool, error) {
	held, mine, err := t.holder(ctx, id, user)
	return err == nil && (!held || mine), err
}

// holder reports whether the lock is held, and whether the row names user as its holder, as the database compares
// users.
func (t *Table) holder(ctx context.Context, id, user any) (held, mine bool, err error) {
	c, err := t.check(Edit{ID: id, User: user})
	if err != nil {
		return false, false, err
	}
	err = t.readOnly(ctx, func(ctx context.Context, q owned) error {
		text, args := t.render("SELECT {live}, {mine} FROM {table} WHERE {row}", c.key,
			sqltext.Fragments{"user": t.userFragment(c.user)})
		err := q.row(ctx, text, args, &held, &mine)
		if errors.Is(err, sql.ErrNoRows) {
			return errGone(t.name, id)
		}
		return err
	})
	return held, mine, err
}

// readOnly sends a statement that only reads, without a transaction but the caller's.
func (t *Table) readOnly(ctx context.Context, fn func(context.Context, owned) error) error {
	alone := *t
	alone.manager = nil // with one, run opens a transaction
	return alone.run(ctx, "read", fn)
}

// current reads the version and the lock of a row. A lock that isn't live has no holder.
func (t *Table) current(ctx context.Context, q owned, id any, key []any) (Lock, error) {
	text, args := t.render("SELECT {state} FROM {table} WHERE {row}", key, nil)
	s, err := readState(ctx, q, text, args, nil, 0)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Lock{}, errGone(t.name, id)
	case err != nil:
		return Lock{}, err
	case !s.live:
		return Lock{Serial: s.lock().Serial}, nil
	}
	return s.lock(), nil
}

// Check reads the database's catalogue, and returns an error that lists all defects of the table, such as a missing
// column, a version that may be NULL, or a key that isn't unique. Call it at start-up.
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
	faults := t.errs(found)
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

func (t *Table) errs(found map[string]column) (faults []error) {
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
