package rowlock

import (
	"context"
	"time"
)

// Request takes the row's lock for the user, if the row is at e.Serial and the
// lock is the user's already, or nobody's, or was never set, or has lapsed. A
// user who holds it keeps Since and gets a new term. One conditional UPDATE
// decides and writes; the row's version stays.
//
// Errors, with nothing written: [sqlfence.ErrGone] if there is no such row, a
// [*sqlfence.ConflictError] if it has another version, a [*sqlfence.LockedError]
// if someone else holds the lock, in this order; or one that says what is wrong
// with e, or the database's own. Here and in the methods below, on PostgreSQL a
// refusal costs the one round trip too; SQLite needs a second statement for it.
func (t *Table) Request(ctx context.Context, e Edit) (Lock, error) {
	c, err := t.check(e)
	if err != nil {
		return Lock{}, err
	}
	return t.grant(ctx, "request", t.request(c))
}

// Renew gives the user's lock a new term, the TTL from now on. It never takes a lock:
// one that the user lost, also by [Table.Release], is refused with [ErrNotHeld],
// or with what [Table.Request] returns if the row is gone, changed, or held by
// someone else. A lock that lapsed is renewed if nobody came in the meantime.
func (t *Table) Renew(ctx context.Context, e Edit) (Lock, error) {
	c, err := t.check(e)
	if err != nil {
		return Lock{}, err
	}
	return t.grant(ctx, "renew", claim{
		checked: c,
		set:     t.taken(c),
		allowed: func(columns columns) frag { return columns.mine(c.user) },
		held:    true,
	})
}

// Release gives the lock back without a change of the row, whatever its version:
// nobody holds it then, Since is the time of the release, and there is no expiry.
// It is harmless where the user holds no lock, or there is no row.
func (t *Table) Release(ctx context.Context, id, user any) error {
	c, err := t.check(Edit{ID: id, User: user})
	if err != nil {
		return err
	}
	return t.run(ctx, "release", func(ctx context.Context, q querier) error {
		text, args := render(t.dialect, "UPDATE ", t.quoted, " SET ", t.freed(), " ", t.where(c.key), " AND ", t.columns.mine(c.user))
		result, err := q.ExecContext(ctx, text, args...)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return err
		}
		return t.forget(ctx, q, c.key)
	})
}

// request is the claim of Request.
func (t *Table) request(c checked) claim {
	return claim{
		checked: c,
		set:     t.taken(c),
		allowed: func(columns columns) frag { return columns.open(c.user) },
	}
}

// grant carries out a claim that leaves the user with the lock.
func (t *Table) grant(ctx context.Context, do string, c claim) (lock Lock, err error) {
	err = t.run(ctx, do, func(ctx context.Context, q querier) error {
		if lock, err = t.claim(ctx, q, c); err != nil {
			return err
		}
		return t.note(ctx, q, c.key, c.Session)
	})
	if err != nil {
		return Lock{}, err
	}
	return lock, nil
}

// taken is what is written for the lock's holder. Who holds it already has
// started to edit before.
func (t *Table) taken(c checked) frag {
	now := now(t.dialect)
	return frag{
		t.columns.by, " = ", arg{c.user}, ", ",
		t.columns.since, " = CASE WHEN ", t.columns.mine(c.user), " THEN COALESCE(", t.columns.since, ", ", now, ") ELSE ", now, " END, ",
		t.columns.expiry, " = ", after(t.dialect, c.TTL),
	}
}

// given is what is written for a new holder.
func (t *Table) given(user any, ttl time.Duration) frag {
	return frag{
		t.columns.by, " = ", arg{user}, ", ", t.columns.since, " = ", now(t.dialect), ", ",
		t.columns.expiry, " = ", after(t.dialect, ttl),
	}
}

// freed is what is written where there is no holder any more.
func (t *Table) freed() frag {
	return frag{
		t.columns.by, " = ", arg{t.nobody}, ", ", t.columns.since, " = ", now(t.dialect), ", ",
		t.columns.expiry, " = NULL",
	}
}
