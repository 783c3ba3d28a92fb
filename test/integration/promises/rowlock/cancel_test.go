package rowlock_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// An operation is cancelled while it waits for the row. It returns and frees its connection, and leaves nothing on the
// server: no waiting session, and no later write.
func TestRowLockCancelledWhileItWaits(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s harness.Setting) {
		d := &desk{Setting: s, ada: "ada", bob: "bob"}
		d.open(t)
		d.mustRequest(t, edit("ada"))
		m, err := rowlock.NewManager(d.db)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
		managed := d.table(t, rowlock.WithManager(m))
		was := d.row(t)
		holder := harness.Begin(t.Context(), t, d.plain, sql.LevelDefault)
		if _, err := holder.Exec("UPDATE invoice SET total = 11"); err != nil {
			t.Fatal(err)
		}
		for what, call := range map[string]func(context.Context) error{
			"Request":         func(ctx context.Context) error { _, err := d.invoice.Request(ctx, edit("ada")); return err },
			"Renew":           func(ctx context.Context) error { _, err := d.invoice.Renew(ctx, edit("ada")); return err },
			"Release":         func(ctx context.Context) error { return d.invoice.Release(ctx, 7, "ada") },
			"Transfer":        func(ctx context.Context) error { _, err := d.invoice.Transfer(ctx, 7, "bob"); return err },
			"SaveRelease":     func(ctx context.Context) error { return d.invoice.SaveRelease(ctx, edit("ada"), saving(20)) },
			"managed Request": func(ctx context.Context) error { _, err := managed.Request(ctx, edit("ada")); return err },
			"managed Release": func(ctx context.Context) error { return managed.Release(ctx, 7, "ada") },
		} {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			failed := make(chan error, 1)
			go func() { failed <- call(ctx) }()
			harness.Eventually(t, what+" waits", func() bool { return d.Waiting(t, d.plain) == 1 })
			harness.GiveUp(t, d.plain, func() {
				cancel()
				if err := <-failed; err == nil { // of the context, or lib/pq's own
					t.Errorf("%s succeeded", what)
				}
				harness.Eventually(t, "the connection is free", func() bool { return d.db.Stats().InUse == 0 })
			}, func() bool { return d.Waiting(t, d.plain) == 0 })
		}
		if err := holder.Rollback(); err != nil {
			t.Fatal(err)
		}
		if now := d.row(t); now != was {
			t.Errorf("the row was %s, and is %s", was, now)
		}
		if locks, err := m.Locks(t.Context(), rowlock.Filter{}); len(locks) != 0 || err != nil {
			t.Errorf("recorded: %v, %v", locks, err)
		}
	})
}
