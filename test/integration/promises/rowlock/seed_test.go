package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// How version and lock work together: a test for each rule of the design from which both come.
func TestRowLockAndVersion(t *testing.T) {
	writeAsRead := func(d *desk, total, version int) error {
		// Every write increments the version, with or without a lock.
		write := harness.Write{Query: "UPDATE invoice SET total = $1, serial = serial + 1 WHERE id = 7 AND serial = $2"}.As(d.Dialect)
		result, err := d.plain.Exec(write.Query, total, version)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, sqlfence.ErrConflict)
		}
		return nil
	}
	for _, row := range []struct {
		name string
		test func(t *testing.T, d *desk)
	}{
		{"always present: the version; on request: the lock", func(t *testing.T, d *desk) {
			if err := writeAsRead(d, 20, 1); err != nil { // without any lock
				t.Error(err)
			}
			harness.WantError(t, writeAsRead(d, 30, 1), sqlfence.ErrConflict)
			d.holds(t, "total = 20 AND serial = 2 AND editedby IS NULL")
		}},
		{"a conflict is found at the write: the version; before editing: the lock", func(t *testing.T, d *desk) {
			d.mustRequest(t, edit(d.ada))
			_, err := d.request(t, edit(d.bob)) // bob hasn't begun
			d.wantLocked(t, err, d.ada)
			if err := writeAsRead(d, 20, 1); err != nil { // a job that ignores the lock
				t.Error(err)
			}
			wantLockConflict(t, d.save(t, d.ada, 1), 1, 2) // ada learns of the conflict only after her work
		}},
		{"held resources: none; a reservation that lapses", func(t *testing.T, d *desk) {
			d.mustRequest(t, edit(d.ada))
			if open := d.db.Stats().InUse; open != 0 {
				t.Errorf("%d connections are in use while ada edits", open)
			}
			d.exec(t, "UPDATE invoice SET editedexpiry = "+d.time(-1))
			d.mustRequest(t, edit(d.bob))
		}},
		{"crosses transactions, seen by others: only the lock", func(t *testing.T, d *desk) {
			d.mustRequest(t, edit(d.ada))
			other, err := rowlock.New(d.Raw(t, d.source), "invoice")
			if err != nil {
				t.Fatal(err)
			}
			lock, err := other.Current(t.Context(), 7)
			if held, err2 := other.IsLockedBy(t.Context(), 7, d.ada); err != nil || err2 != nil || !held || lock.Serial != 1 {
				t.Errorf("another connection sees %+v, %v; held %v, %v", lock, err, held, err2)
			}
		}},
		{"on a conflict: temporary, or gone; the holder's name", func(t *testing.T, d *desk) {
			d.mustRequest(t, edit(d.ada))
			_, err := d.request(t, edit(d.bob))
			d.wantLocked(t, err, d.ada)
			d.exec(t, "UPDATE invoice SET serial = 2")
			err = d.save(t, d.ada, 1)
			wantLockConflict(t, err, 1, 2)
			d.exec(t, "DELETE FROM invoice")
			err = d.save(t, d.ada, 1)
			harness.WantError(t, err, sqlfence.ErrGone)
			var temporary interface{ Temporary() bool }
			if errors.As(err, &temporary) && temporary.Temporary() {
				t.Errorf("%v is temporary", err)
			}
		}},
		{"raises the version: every save; no lock", func(t *testing.T, d *desk) {
			d.mustRequest(t, edit(d.ada))
			err := d.do(t.Context(), func(table *rowlock.Table) error {
				_, err := table.Renew(t.Context(), edit(d.ada))
				return errors.Join(err, table.Release(t.Context(), 7, d.ada))
			})
			if err != nil {
				t.Error(err)
			}
			d.mustTransfer(t, d.bob)
			d.mustTransfer(t, d.ada)
			d.holds(t, "serial = 1 AND total = 10")
			if err := d.save(t, d.ada, 1); err != nil {
				t.Error(err)
			}
			d.holds(t, "serial = 2")
		}},
		{"guarantee: no lost update ever; an early notice", func(t *testing.T, d *desk) {
			// ada's lock lapses. bob takes it over and saves. Then ada tries to save.
			d.mustRequest(t, edit(d.ada))
			d.exec(t, "UPDATE invoice SET editedexpiry = "+d.time(-1))
			d.mustRequest(t, edit(d.bob))
			d.wantLocked(t, d.save(t, d.ada, 1), d.bob) // while bob has the lock
			if err := d.save(t, d.bob, 1); err != nil {
				t.Error(err)
			}
			wantLockConflict(t, d.save(t, d.ada, 1), 1, 2) // after bob's save
			d.holds(t, "total = 20 AND serial = 2")
		}},
		{"a save succeeds after the lock has lapsed, if the other has left the row unchanged", func(t *testing.T, d *desk) {
			d.mustRequest(t, edit(d.ada))
			d.exec(t, "UPDATE invoice SET editedexpiry = "+d.time(-1))
			d.mustRequest(t, edit(d.bob))
			if err := d.invoice.Release(t.Context(), 7, d.bob); err != nil {
				t.Error(err)
			}
			if err := d.save(t, d.ada, 1); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) { eachDesk(t, row.test) })
	}
}

// save is a user's save of the total 20, which releases the lock.
func (d *desk) save(t testing.TB, user any, version int64) error {
	e := edit(user)
	e.Serial = version
	return d.do(t.Context(), func(table *rowlock.Table) error {
		return table.SaveRelease(d.holder(t), e, func(ctx context.Context, tx *sql.Tx) error { return saving(20)(ctx, tx) })
	})
}
