package rowlock_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func (d *desk) transfer(t testing.TB, to any) (lock rowlock.Lock, err error) {
	t.Helper()
	err = d.do(t.Context(), func(table *rowlock.Table) error {
		lock, err = table.Transfer(t.Context(), 7, to)
		return err
	})
	return lock, err
}

// The row after an administrator's transfer, and the old holder's errors afterwards.
func TestRowLockTransfer(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		d.set(t, d.user(d.ada), d.time(1800))
		before, err := d.invoice.Current(t.Context(), 7)
		if err != nil {
			t.Fatal(err)
		}
		lock, err := d.transfer(t, d.bob)
		if err != nil {
			t.Fatal(err)
		}
		now, err := d.invoice.Current(t.Context(), 7)
		if err != nil || lock != now || !lock.Since.After(before.Since) || lock.Serial != 1 {
			t.Errorf("%+v became %+v, now %+v (%v)", before, lock, now, err)
		}
		near(t, "Since", lock.Since, time.Now())
		near(t, "Expiry", lock.Expiry, lock.Since.Add(10*time.Minute))
		d.holds(t, "total = 10 AND serial = 1 AND editedby = "+d.user(d.bob))
		for _, err := range []error{d.renewOld(t), d.saveOld(t), d.keepOld(t)} {
			d.wantLocked(t, err, d.bob)
		}
		_, err = d.request(t, edit(d.ada))
		d.wantLocked(t, err, d.bob)
		if err := d.do(t.Context(), func(table *rowlock.Table) error { return table.Release(t.Context(), 7, d.ada) }); err != nil {
			t.Error(err)
		}
		d.holds(t, "editedby = "+d.user(d.bob))
	})
}

// After a transfer to nobody, the old holder can still save its work, unless another user has taken the lock.
func TestRowLockTransferToNobody(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		d.set(t, d.user(d.ada), d.time(1800))
		d.mustTransfer(t, nil)
		d.holds(t, "total = 10 AND serial = 1 AND editedby IS NULL AND editedexpiry IS NULL AND editedsince > "+d.time(-1800))
		harness.WantError(t, d.renewOld(t), rowlock.ErrNotHeld)
		if err := d.keepOld(t); err != nil {
			t.Errorf("saving after a transfer to nobody: %v", err)
		}
		d.holds(t, "total = 20 AND serial = 2 AND editedby = "+d.user(d.ada))
		d.mustTransfer(t, nil)
		d.mustRequest(t, rowlock.Edit{ID: 7, Serial: 2, User: d.bob})
		wantLockConflict(t, d.saveOld(t), 1, 2)
		changed := edit(d.ada)
		changed.Serial = 2
		_, err := d.request(t, changed)
		d.wantLocked(t, err, d.bob)

		// A write that ignores the lock is still refused by its old version.
		d.exec(t, "UPDATE invoice SET serial = 3")
		result, err := d.plain.Exec("UPDATE invoice SET total = 30, serial = serial + 1 WHERE id = 7 AND serial = 2")
		if n, _ := harness.Affected(result, err); n != 0 {
			t.Errorf("an old version was written: %v", err)
		}
	})
}

// A free lock can be transferred, too, but not to a user who can't hold a lock.
func TestRowLockTransferFromNobody(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		d.exec(t, "UPDATE invoice SET serial = 3")
		d.mustTransfer(t, nil)
		if lock := d.mustTransfer(t, d.bob); lock.Serial != 3 {
			t.Errorf("lock = %+v, want version 3", lock)
		}
		for _, nobody := range []any{0, "", "0", sql.NullString{}} {
			before := d.row(t)
			if _, err := d.transfer(t, nobody); err == nil || d.row(t) != before {
				t.Errorf("transfer to %#v: %v", nobody, err)
			}
		}
		d.exec(t, "DELETE FROM invoice")
		for _, to := range []any{d.bob, nil} {
			_, err := d.transfer(t, to)
			harness.WantError(t, err, sqlfence.ErrGone)
		}
	})
}

// renewOld, saveOld and keepOld are operations of ada, the former holder, at version 1.
func (d *desk) renewOld(t *testing.T) error {
	return d.do(t.Context(), func(table *rowlock.Table) error { _, err := table.Renew(t.Context(), edit(d.ada)); return err })
}

func (d *desk) saveOld(t *testing.T) error {
	return d.do(t.Context(), func(table *rowlock.Table) error {
		return table.SaveRelease(d.holder(t), edit(d.ada), saving(20))
	})
}

func (d *desk) keepOld(t *testing.T) error {
	return d.do(t.Context(), func(table *rowlock.Table) error {
		_, err := table.SaveKeep(d.holder(t), edit(d.ada), saving(20))
		return err
	})
}

func (d *desk) mustTransfer(t testing.TB, to any) rowlock.Lock {
	t.Helper()
	lock, err := d.transfer(t, to)
	if err != nil {
		t.Fatalf("transfer to %v: %v", to, err)
	}
	return lock
}

// A refusal doesn't end the caller's transaction, which can continue and commit.
func TestRowLockRefusalLeavesTheTransaction(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		if !d.inTx {
			t.Skip("by themselves")
		}
		d.set(t, d.user(d.bob), d.time(1800))
		d.exec(t, "INSERT INTO invoice (id, total, serial) VALUES (8, 10, 2)")
		tx := harness.Begin(t.Context(), t, d.db, d.Level)
		table := d.invoice.In(tx)
		_, err := table.Request(t.Context(), edit(d.ada))
		harness.WantError(t, err, sqlfence.ErrLocked)
		_, err = table.Renew(t.Context(), rowlock.Edit{ID: 8, Serial: 2, User: d.ada})
		harness.WantError(t, err, rowlock.ErrNotHeld)
		_, err = table.Request(t.Context(), rowlock.Edit{ID: 8, Serial: 1, User: d.ada})
		harness.WantError(t, err, sqlfence.ErrConflict)
		_, err = table.Request(t.Context(), rowlock.Edit{ID: 9, Serial: 1, User: d.ada})
		harness.WantError(t, err, sqlfence.ErrGone)
		if _, err = table.Request(t.Context(), rowlock.Edit{ID: 8, Serial: 2, User: d.ada}); err != nil {
			t.Error(err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		if held, err := d.invoice.IsLockedBy(t.Context(), 8, d.ada); err != nil || !held {
			t.Errorf("held %v, %v", held, err)
		}
	})
}
