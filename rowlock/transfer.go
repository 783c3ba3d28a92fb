package rowlock

import (
	"context"
	"database/sql"
	"errors"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Transfer gives the row's lock to another user, with the table's TTL, or frees it if to is nil. It is for an
// administrator: it succeeds with any holder of the lock and at any version of the row, which it doesn't change. No
// session keeps the lock alive until the new holder's first Request or Renew.
//
// Then the previous holder's Request, SaveRelease and SaveKeep return a [*sqlfence.LockedError] while the new holder
// has the lock; after a transfer to nil they succeed if the row is unchanged and no other user has taken the lock.
// Renew returns the same LockedError, or ErrNotHeld. Release does nothing.
//
// Errors: [sqlfence.ErrGone] if there is no such row, [sqlfence.ErrInvalid] for the id or user, or the database's.
func (t *Table) Transfer(ctx context.Context, id, to any) (lock Lock, err error) {
	key, err := t.key(id)
	if err != nil {
		return Lock{}, err
	}
	set, holder := setFree, sqltext.Pieces{}
	if to != nil {
		user, err := userID(to)
		if err != nil {
			return Lock{}, err
		}
		set = setNewHolder
		holder = sqltext.Pieces{"user": t.userPiece(user), "ttl": sqltext.Value(t.dialect.Ticks(t.ttl))}
	}
	err = t.run(ctx, "transfer", func(ctx context.Context, q querier) error {
		s, err := t.dialect.set(ctx, q, t, set, key, holder)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return errGone(t.name, id)
		case err != nil:
			return err
		}
		lock = s.lock()
		if to == nil {
			lock = Lock{Serial: lock.Serial}
			return t.unrecord(ctx, q, key)
		}
		return t.record(ctx, q, key, "")
	})
	if err != nil {
		return Lock{}, err
	}
	return lock, nil
}
