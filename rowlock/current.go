package rowlock

import (
	"context"
	"database/sql"
	"errors"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Current returns the row's version and its lock, for display; By is empty without a live lock. Errors:
// [sqlfence.ErrGone] if there is no such row, [sqlfence.ErrInvalid] for the id.
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

// IsLockedBy reports whether user holds the row's lock. Errors are those of [Table.Current].
func (t *Table) IsLockedBy(ctx context.Context, id, user any) (bool, error) {
	held, mine, err := t.holder(ctx, id, user)
	return held && mine, err
}

// Lockable reports whether no other user holds the row's lock. Errors are those of [Table.Current].
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
			sqltext.Pieces{"user": t.userPiece(c.user)})
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
