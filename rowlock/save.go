package rowlock

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/sqlfence/sqlfence"
)

// SaveRelease saves the user's work and releases the lock, both or neither: it
// opens a transaction, or takes the one of [Table.In], makes sure that the row is
// at e.Serial and that nobody else holds its lock, frees it, and calls save, which
// changes the row in the transaction and raises its version as it always does.
// From the check to the commit nobody else can change the row.
//
// A lock that has lapsed doesn't stop the save if nobody has taken it over and
// the row is unchanged, nor does one that the user never held: what protects the
// row is its version. Errors are those of [Table.Request], with save not called,
// or what save returns, as it is, with everything rolled back (under In: for the
// caller to roll back), or the database's own. A panic of save rolls back too.
//
// It is not repeated by itself, since save may not bear it: to repeat it use In
// within [sqlfence.Retry], and note that a conflict here is not cured by that,
// because e.Serial stays.
func (t *Table) SaveRelease(ctx context.Context, e Edit, save func(context.Context, *sql.Tx) error) error {
	c, err := t.check(e)
	if err != nil {
		return err
	}
	claim := t.request(c)
	claim.set = t.freed()
	const do = "save and release"
	return t.save(ctx, do, claim, func(ctx context.Context, tx *sql.Tx) error {
		// First, because save may delete the row, or change its key.
		if err := t.forget(sqlfence.Bypass(ctx, "rowlock: "+do), tx, c.key); err != nil {
			return t.explain(do, err)
		}
		return save(ctx, tx)
	}, nil)
}

// SaveKeep is [Table.SaveRelease], but the user keeps the lock, with a new term,
// to go on editing; one that had lapsed is taken again. The Lock returned has the
// version that the row has after the save.
func (t *Table) SaveKeep(ctx context.Context, e Edit, save func(context.Context, *sql.Tx) error) (lock Lock, err error) {
	c, err := t.check(e)
	if err != nil {
		return Lock{}, err
	}
	err = t.save(ctx, "save and keep", t.request(c), save, func(ctx context.Context, tx *sql.Tx) error {
		if lock, err = t.look(ctx, tx, c.ID, c.key); err != nil {
			return err
		}
		return t.note(ctx, tx, c.key, c.Session)
	})
	if err != nil {
		return Lock{}, err
	}
	return lock, nil
}

// save carries out the claim, save and then the rest if there is any, in one
// transaction.
func (t *Table) save(ctx context.Context, do string, c claim, save, rest func(context.Context, *sql.Tx) error) error {
	tx := t.tx
	if tx == nil {
		var err error
		if tx, err = t.db.BeginTx(ctx, nil); err != nil {
			return t.explain(do, err)
		}
		// After a commit it does nothing. It runs also when save panics.
		defer tx.Rollback()
	}
	own := sqlfence.Bypass(ctx, "rowlock: "+do)
	if _, err := t.claim(own, tx, c); err != nil {
		return t.explain(do, err)
	}
	if err := save(ctx, tx); err != nil {
		return err
	}
	if rest != nil {
		if err := rest(own, tx); err != nil {
			return t.explain(do, err)
		}
	}
	if t.tx != nil {
		return nil
	}
	if err := tx.Commit(); err != nil {
		return t.explain(do, fmt.Errorf("commit: %w", err))
	}
	return nil
}
