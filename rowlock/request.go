package rowlock

import (
	"context"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Request takes the row's lock for the user, if the row is at e.Serial and no other user holds the lock. A user who
// holds it keeps Since and gets a new TTL; a lapsed lock begins again. The row's version stays.
//
// Errors, with nothing written: [sqlfence.ErrGone] if there is no such row, a [*sqlfence.ConflictError] if it is at
// another version, a [*sqlfence.LockedError] if another user holds the lock, in this order; [sqlfence.ErrInvalid] for
// the Edit; or the database's.
func (t *Table) Request(ctx context.Context, e Edit) (Lock, error) {
	c, err := t.check(e)
	if err != nil {
		return Lock{}, err
	}
	return t.grant(ctx, "request", t.request(c))
}

// Renew extends the user's lock to the TTL from now, also a lapsed lock that no other user has taken, which begins
// again. It never takes a lock: if the user has lost or released the lock, the error is [ErrNotHeld], or
// [Table.Request]'s if the row is gone, changed, or held by another user.
func (t *Table) Renew(ctx context.Context, e Edit) (Lock, error) {
	c, err := t.check(e)
	if err != nil {
		return Lock{}, err
	}
	return t.grant(ctx, "renew", lockUpdate{checkedEdit: c, set: setHolder, allowed: "{mine}", mustHold: true})
}

// Release ends the user's lock, at any version of the row: Since is then the time of the release. If the user holds
// no lock, or there is no row, it does nothing. Errors: [sqlfence.ErrInvalid] for the id or user, or the database's.
func (t *Table) Release(ctx context.Context, id, user any) error {
	c, err := t.check(Edit{ID: id, User: user})
	if err != nil {
		return err
	}
	return t.run(ctx, "release", func(ctx context.Context, q querier) error {
		user := sqltext.Pieces{"user": t.userPiece(c.user)}
		n, err := t.exec(ctx, q, "UPDATE {table} SET "+setFree+" WHERE {row} AND {mine}", c.key, user)
		if err != nil || n == 0 {
			return err
		}
		return t.unrecord(ctx, q, c.key)
	})
}

// request is the lockUpdate of Request.
func (t *Table) request(c checkedEdit) lockUpdate {
	return lockUpdate{checkedEdit: c, set: setHolder, allowed: "{open}"}
}

// grant applies a lockUpdate after which the user has the lock.
func (t *Table) grant(ctx context.Context, do string, u lockUpdate) (lock Lock, err error) {
	err = t.run(ctx, do, func(ctx context.Context, q querier) error {
		if lock, err = t.apply(ctx, q, u); err != nil {
			return err
		}
		return t.record(ctx, q, u.key, u.Session)
	})
	if err != nil {
		return Lock{}, err
	}
	return lock, nil
}
