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

// Users are compared byte by byte, and locks are durable, under all session settings.
func TestRowLockInMySQLSessions(t *testing.T) {
	harness.EachMySQLSession(t, func(t *testing.T, db, plain *sql.DB) {
		ctx := t.Context()
		harness.MustExec(t, plain, `CREATE TABLE invoice (id varchar(20) PRIMARY KEY, serial bigint NOT NULL DEFAULT 1,
			editedby varchar(20), editedsince bigint, editedexpiry bigint)`)
		harness.MustExec(t, plain, "INSERT INTO invoice (id) VALUES ('7')")
		m, err := rowlock.NewManager(db)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Setup(ctx); err != nil {
			t.Fatal(err)
		}
		table, err := rowlock.New(db, "invoice", rowlock.WithManager(m))
		if err != nil {
			t.Fatal(err)
		}
		others, err := rowlock.New(plain, "invoice")
		if err != nil {
			t.Fatal(err)
		}
		for _, user := range []any{"ada", 7, "ädä"} {
			if _, err := table.Request(ctx, rowlock.Edit{ID: "7", Serial: 1, User: user}); err != nil {
				t.Fatal(err)
			}
			for _, other := range []any{"Ada", "ada ", "ada\t", "7x", "7.0", "07", "ÄDÄ", "bob"} {
				if _, err := others.Request(ctx, rowlock.Edit{ID: "7", Serial: 1, User: other}); !errors.Is(err, sqlfence.ErrLocked) {
					t.Errorf("%v holds it, and %q gets it: %v", user, other, err)
				}
			}
			if locks, err := m.Locks(ctx, rowlock.Filter{User: user}); err != nil || len(locks) != 1 {
				t.Errorf("the locks of %v: %+v, %v", user, locks, err)
			}
			if n, err := m.FreeUser(ctx, user); n != 1 || err != nil {
				t.Errorf("freed %d of %v's, %v", n, user, err)
			}
			if lock, err := others.Current(ctx, "7"); lock.By != "" || err != nil {
				t.Errorf("it is still locked: %v", err)
			}
		}
		// An ID longer than the column is refused, even if the database would cut it without an error.
		long := "a user whose ID is longer than the column"
		if lock, err := table.Request(ctx, rowlock.Edit{ID: "7", Serial: 1, User: long}); err == nil {
			t.Errorf("the lock is %+v", lock)
		}
		if lock, err := others.Current(ctx, "7"); lock.By != "" || err != nil {
			t.Errorf("it is locked by a part of the user's ID: %v", err)
		}
	})
}

// A request is given up in the caller's transaction, on the pool's only connection. Once the caller has rolled back,
// the server has ended the request's statement.
func TestRowLockCancelledInATransactionOnMySQL(t *testing.T) {
	d := &desk{Setting: harness.Setting{Base: harness.MySQL}, ada: "ada", bob: "bob"}
	d.open(t)
	d.db.SetMaxOpenConns(1)
	holder := harness.Begin(t.Context(), t, d.plain, sql.LevelDefault)
	if _, err := holder.Exec("UPDATE invoice SET total = 11"); err != nil {
		t.Fatal(err)
	}
	tx := harness.Begin(t.Context(), t, d.db, sql.LevelDefault)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request := harness.Go(func() error { _, err := d.invoice.In(tx).Request(ctx, edit("ada")); return err })
	harness.Eventually(t, "the request waits", func() bool { return d.Waiting(t, d.plain) == 1 })
	harness.GiveUp(t, d.plain, func() {
		cancel()
		if err := request.Wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("Request: %v", err)
		}
		_ = tx.Rollback() // its connection is closed
	}, func() bool { return d.Waiting(t, d.plain) == 0 })
}
