package rowlock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Request takes the row's lock for the user, if the row is at e.Serial and no other user holds the lock. If the user
// already holds the lock, Since stays and the TTL begins again. After a lapse, Since is the current time.
//
// Errors, in this order: [sqlfence.ErrInvalid] for the Edit; [sqlfence.ErrGone] if there is no such row; a
// [*sqlfence.ConflictError] if the row is at another version; a [*sqlfence.LockedError] if another user holds the lock.
func (t *Table) Request(ctx context.Context, e Edit) (Lock, error) {
	c, err := t.check(e)
	if err != nil {
		return Lock{}, err
	}
	return t.grant(ctx, "request", t.request(c))
}

// LoadLocked takes the lock as [Table.Request] does, but at any version of the row, and reads the row in the same round
// trip. Compare e.Serial with the returned version to learn whether the row has changed. columns is a list as after
// SELECT, such as "customer, total"; dest has a pointer for each column, as for [sql.Rows.Scan]. If LoadLocked can't
// store the values in dest, it returns an error, but the user may hold the lock.
func (t *Table) LoadLocked(ctx context.Context, e Edit, columns string, dest ...any) (Lock, error) {
	c, err := t.check(e)
	if err != nil {
		return Lock{}, err
	}
	if strings.TrimSpace(columns) == "" || len(dest) == 0 {
		return Lock{}, invalid("nothing to load: name columns and give variables for them")
	}
	u := t.request(c)
	u.anyVersion, u.load, u.dest = true, columns, dest
	return t.grant(ctx, "load", u)
}

// Renew extends the user's lock: the TTL begins again. A lapsed lock that no other user has taken can be renewed; Since
// is then the current time. The error is [ErrNotHeld] if the user has released or lost the lock and no other user holds
// it. Otherwise errors are those of [Table.Request].
func (t *Table) Renew(ctx context.Context, e Edit) (Lock, error) {
	c, err := t.check(e)
	if err != nil {
		return Lock{}, err
	}
	return t.grant(ctx, "renew", lockUpdate{checkedEdit: c, set: setHolder, allowed: "{mine}", mustHold: true})
}

// Release ends the user's lock, at any version of the row, and sets editedsince to the current time. If the user
// doesn't hold the lock, or the row doesn't exist, Release does nothing. An invalid id or user is
// [sqlfence.ErrInvalid].
func (t *Table) Release(ctx context.Context, id, user any) error {
	c, err := t.check(Edit{ID: id, User: user})
	if err != nil {
		return err
	}
	return t.run(ctx, "release", func(ctx context.Context, q owned) error {
		user := sqltext.Fragments{"user": t.userFragment(c.user)}
		n, err := t.exec(ctx, q, "UPDATE {table} SET "+setFree+" WHERE {row} AND {mine}", c.key, user)
		if err != nil || n == 0 {
			return err
		}
		return t.unrecord(ctx, q, c.key)
	})
}

// Transfer gives the row's lock to another user, with the table's TTL, or frees the lock if to is nil. Transfer is for
// an administrator: it works with any holder and at any version of the row. The lock belongs to no session until the
// new holder's first Request or Renew.
//
// While the new holder has the lock, the previous holder's Request, Renew, SaveRelease and SaveKeep return a
// [*sqlfence.LockedError]. After a transfer to nil, the previous holder's Renew returns ErrNotHeld. The previous
// holder's Release does nothing.
//
// Errors: [sqlfence.ErrGone] if there is no such row, and [sqlfence.ErrInvalid] for an invalid id or user.
func (t *Table) Transfer(ctx context.Context, id, to any) (lock Lock, err error) {
	key, err := t.key(id)
	if err != nil {
		return Lock{}, err
	}
	set, holder := setFree, sqltext.Fragments{}
	if to != nil {
		user, err := userID(to)
		if err != nil {
			return Lock{}, err
		}
		set = setNewHolder
		holder = sqltext.Fragments{"user": t.userFragment(user), "ttl": sqltext.Value(t.dialect.Ticks(t.ttl))}
	}
	err = t.run(ctx, "transfer", func(ctx context.Context, q owned) error {
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

func (t *Table) request(c checkedEdit) lockUpdate {
	return lockUpdate{checkedEdit: c, set: setHolder, allowed: "{open}"}
}

// grant applies a lockUpdate after which the user has the lock.
func (t *Table) grant(ctx context.Context, do string, u lockUpdate) (lock Lock, err error) {
	err = t.run(ctx, do, func(ctx context.Context, q owned) error {
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

// record writes the row's lock into rowlocks, kept alive by session.
func (t *Table) record(ctx context.Context, q owned, key []any, session string) error {
	if t.manager == nil {
		return nil
	}
	_, err := t.exec(ctx, q, `INSERT INTO rowlocks (table_name, row_key, user_id, session, since, expiry, heartbeat)
	SELECT {text {tablename}}, {keytext}, {holder}, {stored {text {session}}}, {since}, {expiry}, {now} `+
		`FROM {table} WHERE {row}
	`+t.dialect.upsert,
		key, sqltext.Fragments{"session": sqltext.Value(session)})
	return err
}

func (t *Table) unrecord(ctx context.Context, q owned, key []any) error {
	if t.manager == nil {
		return nil
	}
	_, err := t.exec(ctx, q, `DELETE FROM rowlocks
	WHERE table_name = {stored {tablename}} AND row_key = (SELECT {stored {keytext}} FROM {table} WHERE {row})`,
		key, nil)
	return err
}

// SaveRelease saves the user's work and releases the lock, both or neither. In a new transaction, or in the transaction
// of [Table.In], it checks that the row is at e.Serial and that no other user holds its lock, frees the lock, and calls
// save. save changes the row, and must increment the row's version. Until the commit no other client can change the
// row. A user who holds no lock can also save.
//
// Errors are those of [Table.Request] and of save. After an error or a panic SaveRelease rolls back; with In, the
// caller must roll back. SaveRelease isn't repeated after a serialization failure, because save may have other effects;
// use In within [sqlfence.Retry].
func (t *Table) SaveRelease(ctx context.Context, e Edit, save func(context.Context, *sql.Tx) error) error {
	c, err := t.check(e)
	if err != nil {
		return err
	}
	u := t.request(c)
	u.set = setFree
	const do = "save and release"
	return t.save(ctx, do, u, func(ctx context.Context, tx *sql.Tx) error {
		// Before save, which may delete the row or change its key.
		if err := t.unrecord(sqlfence.Bypass(ctx, "rowlock: "+do), owned{tx}, c.key); err != nil {
			return t.explain(ctx, do, err)
		}
		return save(ctx, tx)
	}, nil)
}

// SaveKeep saves the user's work as [Table.SaveRelease] does, but the user keeps the lock, with a new TTL. The returned
// Lock has the row's new version. With the rule [sqlfence.EditLock], save must write with a context of
// [sqlfence.WithEditor] for the user.
func (t *Table) SaveKeep(
	ctx context.Context, e Edit, save func(context.Context, *sql.Tx) error,
) (lock Lock, err error) {
	c, err := t.check(e)
	if err != nil {
		return Lock{}, err
	}
	err = t.save(ctx, "save and keep", t.request(c), save, func(ctx context.Context, q owned) error {
		if lock, err = t.current(ctx, q, c.ID, c.key); err != nil {
			return err
		}
		return t.record(ctx, q, c.key, c.Session)
	})
	if err != nil {
		return Lock{}, err
	}
	return lock, nil
}

// save applies u and calls save, and then finish, in one transaction.
func (t *Table) save(ctx context.Context, do string, u lockUpdate, save func(context.Context, *sql.Tx) error,
	finish func(context.Context, owned) error) error {
	tx := t.tx
	if tx == nil {
		var err error
		if tx, err = t.db.BeginTx(ctx, nil); err != nil {
			return t.explain(ctx, do, err)
		}
		// It does nothing after a commit. It also runs when save panics.
		defer tx.Rollback()
	}
	bypassed := sqlfence.Bypass(ctx, "rowlock: "+do)
	if _, err := t.apply(bypassed, owned{tx}, u); err != nil {
		return t.explain(ctx, do, err)
	}
	if err := save(ctx, tx); err != nil {
		return err
	}
	if finish != nil {
		if err := finish(bypassed, owned{tx}); err != nil {
			return t.explain(ctx, do, err)
		}
	}
	if t.tx != nil {
		return nil
	}
	if err := tx.Commit(); err != nil {
		return t.explain(ctx, do, fmt.Errorf("commit: %w", err))
	}
	return nil
}
