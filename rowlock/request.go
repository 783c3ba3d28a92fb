package rowlock

import (
	"context"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Request takes the row's lock for the user, if the row is at e.Serial and no other user holds the
// lock: it is the user's, or free, or has lapsed. A user who holds it keeps Since and gets another
// TTL; a lock that has lapsed begins anew, also if it was the user's. One conditional UPDATE
// decides and writes; the row's version stays.
//
// Errors, with nothing written: [sqlfence.ErrGone] if there is no such row, a
// [*sqlfence.ConflictError] if it is at another version, a [*sqlfence.LockedError] if another user
// holds the lock, in this order; [sqlfence.ErrInvalid] for a bad Edit; or the database's own. Here
// and in the methods below, a refusal costs one round trip on PostgreSQL, and a second statement on
// SQLite.
func (t *Table) Request(ctx context.Context, e Edit) (Lock, error) {
	c, err := t.check(e)
	if err != nil {
		return Lock{}, err
	}
	return t.grant(ctx, "request", t.request(c))
}

// Renew extends the user's lock to the TTL from now on. It never takes a lock: one that the user
// has lost, also by [Table.Release], is refused with [ErrNotHeld], or with [Table.Request]'s error
// if the row is gone, changed, or held by another user. A lock that has lapsed is renewed if no
// other user took it in the meantime; it begins anew.
func (t *Table) Renew(ctx context.Context, e Edit) (Lock, error) {
	c, err := t.check(e)
	if err != nil {
		return Lock{}, err
	}
	return t.grant(ctx, "renew", lockUpdate{checkedEdit: c, set: setHolder, allowed: "{mine}", mustHold: true})
}

// Release gives the user's lock back and doesn't change the row, whatever its version: then no user
// holds it, Since is the time of the release, and there is no expiry. If the user holds no lock, or
// there is no row, it does nothing. Errors: [sqlfence.ErrInvalid] for a bad id or user, or the
// database's own.
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
