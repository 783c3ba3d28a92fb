package rowlock

import (
	"context"
	"database/sql"
	"errors"
)

// Current returns the row's version and its lock, with By empty if nobody holds
// it, or its time has run out. The answer may be out of date by the time it is
// read: it is for people. Errors: [sqlfence.ErrGone] if there is no such row, or
// the database's own.
func (t *Table) Current(ctx context.Context, id any) (lock Lock, err error) {
	key, err := t.key(id)
	if err != nil {
		return Lock{}, err
	}
	err = t.read1(ctx, func(ctx context.Context, q querier) error {
		lock, err = t.look(ctx, q, id, key)
		return err
	})
	return lock, err
}

// IsLocked reports whether someone holds the row's lock. See [Table.Current].
func (t *Table) IsLocked(ctx context.Context, id any) (bool, error) {
	lock, err := t.Current(ctx, id)
	return lock.By != "", err
}

// IsLockedBy reports whether user holds the row's lock. See [Table.Current].
func (t *Table) IsLockedBy(ctx context.Context, id, user any) (bool, error) {
	held, mine, err := t.whose(ctx, id, user)
	return held && mine, err
}

// Lockable reports whether [Table.Request] would get the lock for user, if the
// row is unchanged: whether it is free, or the user's. See [Table.Current].
func (t *Table) Lockable(ctx context.Context, id, user any) (bool, error) {
	held, mine, err := t.whose(ctx, id, user)
	return err == nil && (!held || mine), err
}

// whose compares the user as the database does.
func (t *Table) whose(ctx context.Context, id, user any) (held, mine bool, err error) {
	c, err := t.check(Edit{ID: id, User: user})
	if err != nil {
		return false, false, err
	}
	err = t.read1(ctx, func(ctx context.Context, q querier) error {
		text, args := render(t.dialect, "SELECT ", t.columns.live(), ", ", t.columns.mine(c.user), " FROM ", t.quoted, " ", t.where(c.key))
		err := q.QueryRowContext(ctx, text, args...).Scan(&held, &mine)
		if errors.Is(err, sql.ErrNoRows) {
			return errGone(t.name, id)
		}
		return err
	})
	return held, mine, err
}

// read1 sends one statement that only reads.
func (t *Table) read1(ctx context.Context, fn func(context.Context, querier) error) error {
	alone := *t
	alone.manager = nil // which would have a transaction opened
	return alone.run(ctx, "look", fn)
}

// look reads the lock of a row; one that isn't live as nobody's.
func (t *Table) look(ctx context.Context, q querier, id any, key []any) (Lock, error) {
	text, args := render(t.dialect, "SELECT ", t.facts(t.columns), ", ", t.columns.live(), " FROM ", t.quoted, " ", t.where(key))
	f, err := t.read(ctx, q, nil, text, args)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Lock{}, errGone(t.name, id)
	case err != nil:
		return Lock{}, err
	case !f.live:
		return Lock{Serial: t.lock(f).Serial}, nil
	}
	return t.lock(f), nil
}
