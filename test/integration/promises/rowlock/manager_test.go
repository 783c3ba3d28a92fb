package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// eachManaged is eachDesk with a Manager of the table, and a second row, 8.
func eachManaged(t *testing.T, test func(t *testing.T, d *desk, m *rowlock.Manager)) {
	t.Helper()
	eachDesk(t, func(t *testing.T, d *desk) {
		m, err := rowlock.NewManager(d.db)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := m.Setup(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		d.exec(t, "INSERT INTO invoice (id, total) VALUES (8, 10)")
		d.invoice = d.table(t, rowlock.WithManager(m))
		test(t, d, m)
	})
}

// wantLocks compares the live locks with "row user session", in order.
func wantLocks(t testing.TB, m *rowlock.Manager, f rowlock.Filter, want ...string) {
	t.Helper()
	locks, err := m.Locks(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range locks {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", l.Row, l.User, l.Session)))
		if l.Table != "invoice" || l.Since.IsZero() || !l.Expiry.After(l.Since) || l.Heartbeat.IsZero() {
			t.Errorf("lock %+v", l)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("locks with %+v are %q, want %q", f, got, want)
	}
}

func (d *desk) take(t testing.TB, row int, user any, session string) {
	t.Helper()
	d.mustRequest(t, rowlock.Edit{ID: row, Serial: 1, User: user, Session: session})
}

func TestRowLockManagerKnowsTheLocks(t *testing.T) {
	eachManaged(t, func(t *testing.T, d *desk, m *rowlock.Manager) {
		ada, bob := fmt.Sprint(d.ada), fmt.Sprint(d.bob)
		all := rowlock.Filter{}
		wantLocks(t, m, all)
		d.take(t, 7, d.ada, "s1")
		d.take(t, 8, d.bob, "")
		wantLocks(t, m, all, "[7] "+ada+" s1", "[8] "+bob)
		wantLocks(t, m, rowlock.Filter{User: d.ada}, "[7] "+ada+" s1")
		wantLocks(t, m, rowlock.Filter{Row: " [ 8 ]"}, "[8] "+bob)
		wantLocks(t, m, rowlock.Filter{Table: "invoice", Row: "[7]", User: d.ada}, "[7] "+ada+" s1")
		wantLocks(t, m, rowlock.Filter{Table: "order"})
		wantLocks(t, m, rowlock.Filter{Row: "[8]", User: d.ada})
		for _, bad := range []rowlock.Filter{{Row: "7"}, {User: 0}} {
			if _, err := m.Locks(t.Context(), bad); err == nil {
				t.Errorf("%+v: no error", bad)
			}
		}

		// The manager's record equals the row, and a refusal adds no record.
		lock, err := d.invoice.Current(t.Context(), 7)
		held, err2 := m.Locks(t.Context(), rowlock.Filter{Row: "[7]"})
		if err != nil || err2 != nil || !held[0].Since.Equal(lock.Since) || !held[0].Expiry.Equal(lock.Expiry) {
			t.Errorf("the row says %+v, the manager %+v (%v, %v)", lock, held, err, err2)
		}
		_, err = d.request(t, rowlock.Edit{ID: 7, Serial: 1, User: d.bob, Session: "s2"})
		d.wantLocked(t, err, d.ada)
		wantLocks(t, m, all, "[7] "+ada+" s1", "[8] "+bob)

		// A lapsed lock isn't live, and the next user's lock replaces it.
		d.exec(t, "UPDATE invoice SET editedexpiry = "+d.time(-1)+" WHERE id = 7")
		d.exec(t, "UPDATE rowlocks SET expiry = "+d.time(-1)+" WHERE row_key = '[7]'")
		wantLocks(t, m, all, "[8] "+bob)
		d.take(t, 7, d.bob, "s2")
		wantLocks(t, m, rowlock.Filter{User: d.bob}, "[7] "+bob+" s2", "[8] "+bob)

		// Each method that ends a lock removes the lock's entry.
		if err := d.do(t.Context(), func(table *rowlock.Table) error { return table.Release(t.Context(), 8, d.bob) }); err != nil {
			t.Error(err)
		}
		wantLocks(t, m, all, "[7] "+bob+" s2")
		err = d.do(t.Context(), func(table *rowlock.Table) error {
			_, err := table.SaveKeep(d.holder(t), rowlock.Edit{ID: 7, Serial: 1, User: d.bob, Session: "s3"}, saving(20))
			return err
		})
		if err != nil {
			t.Error(err)
		}
		wantLocks(t, m, all, "[7] "+bob+" s3")
		d.mustTransfer(t, d.ada)
		wantLocks(t, m, all, "[7] "+ada)
		if err := d.save(t, d.ada, 2); err != nil {
			t.Error(err)
		}
		wantLocks(t, m, all)
		d.mustTransfer(t, d.ada)
		d.mustTransfer(t, nil)
		wantLocks(t, m, all)
	})
}

// The lock and the manager's record are written in the same transaction.
func TestRowLockManagerIsInTheTransaction(t *testing.T) {
	eachManaged(t, func(t *testing.T, d *desk, m *rowlock.Manager) {
		tx, err := d.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: d.Level})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.invoice.In(tx).Request(t.Context(), edit(d.ada)); err != nil {
			t.Error(err)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		wantLocks(t, m, rowlock.Filter{})
		d.holds(t, "editedby IS NULL")
		d.take(t, 7, d.ada, "s1")
		stop := errors.New("stop")
		err = d.do(t.Context(), func(table *rowlock.Table) error {
			return table.SaveRelease(t.Context(), edit(d.ada), func(context.Context, *sql.Tx) error { return stop })
		})
		harness.WantError(t, err, stop)
		wantLocks(t, m, rowlock.Filter{}, "[7] "+fmt.Sprint(d.ada)+" s1")
	})
}

// wantFreed compares how many locks a method has freed.
func wantFreed(t *testing.T, what string, want int, n int, err error) {
	t.Helper()
	if n != want || err != nil {
		t.Errorf("%s freed %d, %v; want %d", what, n, err, want)
	}
}

func TestRowLockManagerFrees(t *testing.T) {
	eachManaged(t, func(t *testing.T, d *desk, m *rowlock.Manager) {
		bob := fmt.Sprint(d.bob)
		d.take(t, 7, d.ada, "s1")
		d.take(t, 8, d.bob, "s2")
		n, err := m.FreeUser(t.Context(), d.ada)
		wantFreed(t, "FreeUser", 1, n, err)
		d.holds(t, "editedby IS NULL AND editedexpiry IS NULL AND serial = 1")
		wantLocks(t, m, rowlock.Filter{}, "[8] "+bob+" s2")
		n, err = m.FreeUser(t.Context(), d.ada)
		wantFreed(t, "second FreeUser", 0, n, err)

		d.take(t, 7, d.bob, "s3")
		n, err = m.FreeSession(t.Context(), "s3")
		wantFreed(t, "FreeSession", 1, n, err)
		wantLocks(t, m, rowlock.Filter{}, "[8] "+bob+" s2")
		d.take(t, 7, d.ada, "")
		n, err = m.FreeAll(t.Context())
		wantFreed(t, "FreeAll", 2, n, err)
		wantLocks(t, m, rowlock.Filter{})
		d.holds(t, "editedby IS NULL")

		for _, err := range []error{
			m.Heartbeat(t.Context(), ""),
			second(m.FreeSession(t.Context(), "")),
			second(m.FreeSilent(t.Context(), 0)),
			second(m.FreeUser(t.Context(), nil)),
		} {
			if err == nil || !strings.HasPrefix(err.Error(), "rowlock: ") {
				t.Errorf("err = %v", err)
			}
		}
	})
}

// The sessions s1 and s2 are silent for too long. Then s1 sends a heartbeat, and FreeSilent frees only the lock of s2.
// It never frees a lock without a session, because such a lock has no heartbeat.
func TestRowLockManagerFreesTheSilent(t *testing.T) {
	eachManaged(t, func(t *testing.T, d *desk, m *rowlock.Manager) {
		ada := fmt.Sprint(d.ada)
		d.take(t, 7, d.ada, "s1")
		d.take(t, 8, d.bob, "s2")
		d.exec(t, "UPDATE rowlocks SET heartbeat = "+d.time(-10_000))
		if err := m.Heartbeat(t.Context(), "s1"); err != nil {
			t.Error(err)
		}
		n, err := m.FreeSilent(t.Context(), time.Hour)
		wantFreed(t, "FreeSilent", 1, n, err)
		wantLocks(t, m, rowlock.Filter{}, "[7] "+ada+" s1")
		d.take(t, 8, d.ada, "")
		d.exec(t, "UPDATE rowlocks SET heartbeat = "+d.time(-10_000))
		d.take(t, 7, d.ada, "s1") // counts as a heartbeat
		n, err = m.FreeSilent(t.Context(), time.Hour)
		wantFreed(t, "FreeSilent", 0, n, err)

		// FreeSilent also removes the entry of an expired lock that nobody has taken over.
		if n, err := m.FreeAll(t.Context()); n != 2 || err != nil {
			t.Errorf("FreeAll: %d, %v", n, err)
		}
		d.take(t, 7, d.ada, "s1")
		d.exec(t, "UPDATE rowlocks SET expiry = "+d.time(-1)+", heartbeat = "+d.time(-10_000))
		d.exec(t, "UPDATE invoice SET editedexpiry = "+d.time(-1))
		n, err = m.FreeSilent(t.Context(), time.Hour)
		wantFreed(t, "FreeSilent of a lapsed lock", 1, n, err)
	})
}

func second(_ int, err error) error { return err }

// Locks of a table that another process manages are listed, and not freed.
func TestRowLockManagerOfAnotherTable(t *testing.T) {
	eachManaged(t, func(t *testing.T, d *desk, m *rowlock.Manager) {
		d.take(t, 7, d.ada, "s1")
		other, err := rowlock.NewManager(d.db)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := other.FreeAll(t.Context()); n != 0 || err != nil {
			t.Errorf("freed %d, %v", n, err)
		}
		wantLocks(t, other, rowlock.Filter{}, "[7] "+fmt.Sprint(d.ada)+" s1")
	})
}

// A row has one entry, whatever Go type its key has. Keys that are texts or have several columns are found again.
func TestRowLockManagerKeys(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		dsn := b.DSN(t)
		db := b.Raw(t, dsn)
		m, err := rowlock.NewManager(db)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
		typ, insert := "timestamptz", "INSERT INTO invoice (region, number) VALUES ($1, 9007199254740993)"
		switch b.Dialect {
		case sqlfence.SQLite:
			typ = "integer"
		case sqlfence.MySQL:
			typ, insert = "bigint", "INSERT INTO invoice (region, number) VALUES (?, 9007199254740993)"
		}
		harness.MustExec(t, db, "CREATE TABLE invoice (region varchar(200), number bigint, serial bigint NOT NULL DEFAULT 1, editedby text, editedsince "+typ+", editedexpiry "+typ+", PRIMARY KEY (region, number))")
		table, err := rowlock.New(db, "invoice", rowlock.WithKey("region", "number"), rowlock.WithManager(m))
		if err != nil {
			t.Fatal(err)
		}
		if err := table.Check(t.Context()); err != nil {
			t.Error(err)
		}
		for _, region := range []string{"eu", `"<ü>", \ '`} {
			harness.MustExec(t, db, insert, region)
			for range 2 {
				for _, number := range []any{int64(9007199254740993), sql.NullInt64{Int64: 9007199254740993, Valid: true}} {
					if _, err := table.Request(t.Context(), rowlock.Edit{ID: rowlock.CompositeKey{region, number}, Serial: 1, User: "ada"}); err != nil {
						t.Error(err)
					}
				}
			}
			locks, err := m.Locks(t.Context(), rowlock.Filter{})
			if err != nil || len(locks) != 1 {
				t.Fatalf("locks %+v, %v", locks, err)
			}
			if again, err := m.Locks(t.Context(), rowlock.Filter{Row: locks[0].Row}); err != nil || len(again) != 1 {
				t.Errorf("by its key %s: %+v, %v", locks[0].Row, again, err)
			}
			if n, err := m.FreeAll(t.Context()); n != 1 || err != nil {
				t.Errorf("freed %d, %v", n, err)
			}
		}
	})
}

// A refusal isn't repeated in another transaction.
func TestRowLockManagerRefusesOnce(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		d := &desk{Setting: harness.Setting{Base: b, Level: sql.LevelDefault}, ada: "ada", bob: "bob"}
		d.open(t)
		calls := new(harness.Counter)
		counted, err := sqlfence.OpenDB(b.Counting(t, d.source, calls), sqlfence.WithDialect(b.Dialect))
		d.db = harness.CloseAtEnd(t, counted, err)
		m, err := rowlock.NewManager(d.db)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
		table := d.table(t, rowlock.WithManager(m))
		calls.Reset()
		old := edit("ada")
		old.Serial = 0
		_, err = table.Request(t.Context(), old)
		wantLockConflict(t, err, 0, 1)
		begins := slices.DeleteFunc(calls.Calls(), func(c harness.Call) bool { return c.Kind != "begin" })
		if len(begins) != 1 {
			t.Errorf("%d transactions, want 1", len(begins))
		}
	})
}

// If a save deletes the row, the list has no lock of it.
func TestRowLockManagerOfADeletedRow(t *testing.T) {
	eachManaged(t, func(t *testing.T, d *desk, m *rowlock.Manager) {
		d.take(t, 7, d.ada, "s1")
		err := d.do(d.holder(t), func(table *rowlock.Table) error {
			return table.SaveRelease(d.holder(t), edit(d.ada), func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "DELETE FROM invoice WHERE id = 7")
				return err
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		wantLocks(t, m, rowlock.Filter{})
	})
}
