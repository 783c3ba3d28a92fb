package rowlock

import (
	"context"
	"database/sql"
	"errors"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Transfer gives the row's lock to another user, or frees it if to is nil. It succeeds with any
// holder of the lock and at any version of the row, which it doesn't change. It is for an
// administrator, when the holder can't release the lock.
//
// The new holder begins to edit now, with the table's TTL. No session keeps the lock alive until
// the new holder's first Request or Renew. Transfer to nil has the effect of [Table.Release]. For
// the user who held it before:
//
//   - After a transfer to another user, Request, Renew, SaveRelease and SaveKeep fail
//     with a [*sqlfence.LockedError] that names the new holder, until that lock lapses. A
//     Release does nothing.
//   - After a transfer to nil, Renew fails with [ErrNotHeld]. Request, SaveRelease and SaveKeep
//     succeed if the row is unchanged and no other user has taken the lock: no work was lost, so
//     none is thrown away.
//   - A write that doesn't ask for the lock is refused if the row has changed, by its
//     version as always.
//
// Errors: [sqlfence.ErrGone] if there is no such row, [sqlfence.ErrInvalid] for a bad id
// or user, such as 0, or the database's own.
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
