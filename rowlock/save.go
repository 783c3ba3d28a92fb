package rowlock

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/sqlfence/sqlfence"
)

// SaveRelease saves the user's work and releases the lock, both or neither. In a transaction, or that of [Table.In], it
// checks that the row is at e.Serial and that no other user holds its lock, frees the lock, and calls save, which
// changes the row and must increment its version. Until the commit no other client can change the row. A user without a
// lock can save as well.
//
// Errors are those of [Table.Request], without calling save, and that of save, after a rollback (with In, the caller
// must roll back). A panic in save rolls back.
//
// SaveRelease isn't repeated after a serialization failure, because save may have other effects. To repeat it, use In
// within [sqlfence.Retry].
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

// SaveKeep is [Table.SaveRelease] for a user who keeps the lock, with a new TTL. The Lock has the row's new version.
// With [sqlfence.EditLock] the writes of save need [sqlfence.WithEditor] of the user.
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
