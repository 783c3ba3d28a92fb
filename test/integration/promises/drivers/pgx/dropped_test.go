package pgx_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/changes"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
	"github.com/sqlfence/sqlfence/verify"
)

// dropPrepared makes every free session of the pool drop its prepared statements, without pgx's knowledge.
func dropPrepared(t *testing.T, db *sql.DB) {
	t.Helper()
	for range db.Stats().Idle {
		c, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() // all at once
		if _, err := c.ExecContext(t.Context(), "DEALLOCATE ALL"); err != nil {
			t.Fatal(err)
		}
	}
}

// sqlfence's packages need no prepared statement that the application may have dropped.
func TestOwnStatementsAfterDeallocateAll(t *testing.T) {
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		s.Exec(t, "CREATE TABLE invoice (id integer PRIMARY KEY, serial bigint NOT NULL DEFAULT 1, editedby text, "+
			"editedsince timestamptz, editedexpiry timestamptz)")
		s.Exec(t, "INSERT INTO invoice (id) SELECT generate_series(1, 9)")
		s.Exec(t, "CREATE TABLE crayons (id integer)")
		for name, db := range map[string]*sql.DB{"fenced": s.DB, "plain": s.Raw(t, s.Source)} {
			t.Run(name, func(t *testing.T) {
				db.SetMaxIdleConns(4)
				eachOwnFunction(t, name, db, func(function string, call func(ctx context.Context) error) {
					for round := range 3 {
						if err := call(t.Context()); err != nil {
							t.Errorf("%s: round %d: %v", function, round, err)
						}
						dropPrepared(t, db)
					}
				})
			})
		}
	})
}

func eachOwnFunction(t *testing.T, name string, db *sql.DB, test func(name string, call func(ctx context.Context) error)) {
	store, leases := harness.NewStore(t, db), harness.NewLeases(t, db, lease.WithDefaults(lease.TTL(time.Hour)))
	counter, err := changes.New(db)
	if err != nil {
		t.Fatal(err)
	}
	manager, err := rowlock.NewManager(db)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(leases.Setup(t.Context()), manager.Setup(t.Context()), counter.Setup(t.Context(), "crayons")); err != nil {
		t.Fatal(err)
	}
	locks, err := rowlock.New(db, "invoice")
	if err != nil {
		t.Fatal(err)
	}
	managed, err := rowlock.New(db, "invoice", rowlock.WithManager(manager))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	round := 0
	next := func(prefix string) string { round++; return fmt.Sprint(name, "/", prefix, "/", round) }
	edit := rowlock.Edit{ID: 1, Serial: 1, User: "ada", TTL: time.Hour}

	for _, f := range []struct {
		name string
		call func() error
	}{
		{"tokens.Setup", func() error { return store.Setup(ctx) }},
		{"tokens.Ensure", func() error { return store.Ensure(ctx, next("ensured")) }},
		{"tokens.Issue", func() error { _, err := store.Issue(ctx, name); return err }},
		{"tokens.IssueMany", func() error { _, err := store.IssueMany(ctx, name, name+"/2"); return err }},
		{"tokens.Current", func() error { _, err := store.Current(ctx, name); return err }},
		{"tokens.Check", func() error {
			token, err := store.Current(ctx, name)
			return errors.Join(err, store.Check(ctx, token))
		}},
		{"tokens.Adopt", func() error { return store.Adopt(ctx, sqlfence.Token{Name: next("adopted"), Value: 1 << 20}) }},
		{"tokens.List", func() (err error) {
			for _, err = range store.List(ctx, "") {
			}
			return err
		}},
		{"tokens.RecordIssuers", func() error { return store.RecordIssuers(ctx) }},
		{"tokens.ListIssued", func() (err error) {
			for _, err = range store.ListIssued(ctx, "") {
			}
			return err
		}},
		{"tokens.Repair", func() error { _, err := store.Repair(ctx, 10); return err }},
		{"tokens.Repair dry", func() error { _, err := store.Repair(ctx, 11, tokens.DryRun()); return err }},
		{"tokens.Retires", func() error { _, err := store.Retires(ctx, name); return err }},
		{"tokens.Delete", func() error { _, err := store.Delete(ctx, name+"/2"); return err }},
		{"tokens.Rotate", func() error {
			old := next("old")
			return errors.Join(store.Ensure(ctx, old), func() error { _, err := store.Rotate(ctx, old); return err }())
		}},

		{"lease.Setup", func() error { return leases.Setup(ctx) }},
		{"lease.Acquire", func() error {
			l, err := leases.Acquire(ctx, next("key"))
			if err == nil {
				err = errors.Join(l.Extend(ctx, time.Minute), l.Release(ctx))
			}
			return err
		}},
		{"lease.Acquire with an owner", func() error { _, err := leases.Acquire(ctx, name+"/owner", lease.Resume("me")); return err }},
		{"lease.Acquire ephemeral", func() error {
			l, err := leases.Acquire(ctx, next("key"), lease.Ephemeral())
			if err == nil {
				err = l.Release(ctx)
			}
			return err
		}},
		{"lease.Do", func() error {
			return leases.Do(ctx, name+"/do", func(context.Context) error { return nil }, lease.MinHold(time.Microsecond))
		}},
		{"lease.IsLocked", func() error { _, err := leases.IsLocked(ctx, name+"/owner"); return err }},
		{"lease.Lookup", func() error { _, _, err := leases.Lookup(ctx, name+"/owner"); return err }},
		{"lease.List", func() error { _, err := leases.List(ctx); return err }},
		{"lease.Sweep", func() error { _, err := leases.Sweep(ctx); return err }},

		{"rowlock.Check", func() error { return locks.Check(ctx) }},
		{"rowlock.Request", func() error { _, err := locks.Request(ctx, edit); return err }},
		{"rowlock.Renew", func() error { _, err := locks.Renew(ctx, edit); return err }},
		{"rowlock.Current", func() error { _, err := locks.Current(ctx, 1); return err }},
		{"rowlock.IsLockedBy", func() error { _, err := locks.IsLockedBy(ctx, 1, "ada"); return err }},
		{"rowlock.LoadLocked", func() error { _, err := locks.LoadLocked(ctx, edit, "id", new(int)); return err }},
		{"rowlock.Transfer", func() error { _, err := locks.Transfer(ctx, 1, "ada"); return err }},
		{"rowlock.Request with a manager", func() error {
			_, err := managed.Request(ctx, rowlock.Edit{ID: 2, Serial: 1, User: "ada", TTL: time.Hour, Session: "s"})
			return err
		}},
		{"rowlock.Locks", func() error { _, err := manager.Locks(ctx, rowlock.Filter{}); return err }},
		{"rowlock.Heartbeat", func() error { return manager.Heartbeat(ctx, "s") }},
		{"rowlock.FreeAll", func() error { _, err := manager.FreeAll(ctx); return err }},

		{"changes.Setup", func() error { return counter.Setup(ctx, "crayons") }},
		{"changes.Count", func() error { _, err := counter.Count(ctx, "crayons"); return err }},
		{"schema.AddFence", func() error { return schema.AddFence(ctx, db, "crayons", "fence_token") }},
	} {
		test(f.name, func(context.Context) error { return f.call() })
	}
	if name == "plain" {
		return
	}
	test("Verify", func(ctx context.Context) error { _, err := verify.Check(ctx, db); return err })
	test("schema.AddFences", func(ctx context.Context) error { return schema.AddFences(ctx, db) })
}

// The queries that a connection sends by itself, before a guarded write and before EXECUTE, don't use a prepared
// statement that DEALLOCATE ALL may have dropped. In a transaction the error would end it.
func TestOwnQueriesAfterDeallocateAll(t *testing.T) {
	onPgx(t, func(t *testing.T, s *harness.Shop) {
		s.Reset(t, 9)
		ctx := harness.Holding(t, 9)
		for _, begin := range []string{"SELECT 1", "BEGIN"} {
			c, err := s.DB.Conn(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for _, query := range []string{
				begin, "SELECT set_config('search_path', current_setting('search_path'), false)",
				"UPDATE books SET price = 1 WHERE id = 1", "PREPARE read AS SELECT 1", "EXECUTE read",
				"DEALLOCATE ALL", "UPDATE books SET price = 2 WHERE id = 1",
				"PREPARE read AS SELECT 1", "EXECUTE read", "DEALLOCATE ALL", "PREPARE read AS SELECT 1", "EXECUTE read",
				"UPDATE books SET price = 3 WHERE id = 1", "DEALLOCATE ALL", "COMMIT",
			} {
				if _, err := c.ExecContext(ctx, query); err != nil {
					t.Fatalf("after %s: %s: %v", begin, query, err)
				}
			}
		}
	})
}
