package rowlock

import (
	"context"
	"database/sql"
	"errors"
)

// Transfer gives the row's lock to another user, or to nobody if to is nil. It is
// an administrator's act, for a lock that its holder can't give back: it asks
// neither who holds the lock nor which version the row has, and doesn't change
// the version.
//
// The new holder's editing starts now, with a whole term of the table's TTL, and
// belongs to no session until the new holder's first Request or Renew. Nobody's is
// as after [Table.Release]. For the user who held it before:
//
//   - After a transfer to another user, Request, Renew, SaveRelease and SaveKeep
//     are refused with a [*sqlfence.LockedError] that names the new holder, as long
//     as that lock lives. A Release does nothing.
//   - After a transfer to nobody, Renew is refused with [ErrNotHeld]. Request,
//     SaveRelease and SaveKeep succeed if the row is unchanged and nobody else has
//     taken the lock: no work was lost, so none is thrown away.
//   - A write that doesn't ask for the lock is refused by the version as ever.
//
// Errors: [sqlfence.ErrGone] if there is no such row, one that says so if to is 0,
// "0" or "", or the database's own.
func (t *Table) Transfer(ctx context.Context, id, to any) (lock Lock, err error) {
	key, err := t.key(id)
	if err != nil {
		return Lock{}, err
	}
	set := t.freed()
	if to != nil {
		user, err := userID(to)
		if err != nil {
			return Lock{}, err
		}
		set = t.given(user, t.ttl)
	}
	err = t.run(ctx, "transfer", func(ctx context.Context, q querier) error {
		text, args := render(t.dialect, "UPDATE ", t.quoted, " SET ", set, " ", t.where(key), " RETURNING ", t.facts(t.columns), ", ", t.columns.live())
		f, err := t.read(ctx, q, nil, text, args)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return errGone(t.name, id)
		case err != nil:
			return err
		}
		lock = t.lock(f)
		if to == nil {
			lock = Lock{Serial: lock.Serial}
			return t.forget(ctx, q, key)
		}
		return t.note(ctx, q, key, "")
	})
	if err != nil {
		return Lock{}, err
	}
	return lock, nil
}
