//go:build linux

package pgbouncer_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/verify"
)

// standbyConf adds a standby to pgpool's configuration. pgpool sends every query to the standby that it considers
// read-only.
const standbyConf = `backend_weight0 = 0
backend_hostname1 = '127.0.0.1'
backend_port1 = %d
backend_weight1 = 1
load_balance_mode = on
statement_level_load_balance = on
num_init_children = 20
sr_check_period = 1
sr_check_user = 'sqlfence'
sr_check_password = '%s'
sr_check_database = 'postgres'
`

// behindPgpoolWithStandby starts a primary, a standby that replays with a delay of one hour, and a pgpool for both.
// through connects through pgpool, and direct to the primary.
func behindPgpoolWithStandby(t *testing.T) (through, direct *sql.DB, standby *harness.Server, dsn string) {
	t.Helper()
	if testing.Short() {
		t.Skip("in the long run only")
	}
	primary, standby := harness.NewServer(t, ""), harness.NewServer(t, "")
	primary.Start(t)
	primary.Stop(t)
	primary.CopyTo(t, standby)
	primary.StartAgain(t)
	standby.Signal(t, "standby.signal")
	standby.Configure(t, fmt.Sprintf("primary_conninfo = 'host=127.0.0.1 port=%d user=sqlfence password=%s'\n"+
		"recovery_min_apply_delay = 1h", primary.Port, primary.Password))
	standby.Start(t)
	dsn = behindPgpoolWith(t, primary.DSN(), fmt.Sprintf(standbyConf, standby.Port, primary.Password))
	b := baseNamed("pgx")
	through, direct = b.Raw(t, dsn), b.Raw(t, primary.DSN())
	harness.Eventually(t, "pgpool sends reads to the standby", func() bool {
		var port int
		return through.QueryRow("SELECT inet_server_port()").Scan(&port) == nil && port == standby.Port
	})
	return through, direct, standby, dsn
}

// pgpool sends reads to a standby that is an hour behind. Queries whose result decides something must reach the
// primary, as guarded writes do. Queries whose result is only displayed may reach the standby.
func TestPgpoolDecidesByThePrimary(t *testing.T) {
	through, direct, _, dsn := behindPgpoolWithStandby(t)
	store, leases := harness.NewStore(t, through), harness.NewLeases(t, through)
	harness.MustExec(t, direct, "CREATE TABLE books (id int PRIMARY KEY, price int, fence_token bigint NOT NULL DEFAULT 0)")
	harness.MustExec(t, direct, "INSERT INTO books VALUES (1, 10)")
	db := baseNamed("pgx").Fenced(t, dsn, harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Ledger()))
	for round := range harness.Rounds(t, 10) {
		old, err := store.Issue(t.Context(), "books")
		if err != nil {
			t.Fatal(err)
		}
		newer, err := store.Issue(t.Context(), "books")
		if err != nil {
			t.Fatal(err)
		}
		if current, err := store.Current(t.Context(), "books"); err != nil || current != newer {
			t.Errorf("Current: %v, %v; want %v", current, err, newer)
		}
		harness.WantError(t, store.Check(t.Context(), old), sqlfence.ErrStale)
		_, err = db.ExecContext(sqlfence.WithFence(t.Context(), newer), "UPDATE books SET price = $1 WHERE id = 1", round)
		if err != nil {
			t.Error(err)
		}
		_, err = db.ExecContext(sqlfence.WithFence(t.Context(), old), "UPDATE books SET price = -1 WHERE id = 1")
		harness.WantStale(t, err, old.Value, newer.Value)
		l := harness.MustAcquire(t, leases, "jobs")
		if locked, err := leases.IsLocked(t.Context(), "jobs"); err != nil || !locked {
			t.Errorf("IsLocked: %v, %v", locked, err)
		}
		if _, held, err := leases.LookupID(t.Context(), l.LockID()); err != nil || !held {
			t.Errorf("LookupID: %v, %v", held, err)
		}
		harness.MustRelease(t, l)
	}
	found, err := verify.Check(t.Context(), db)
	if err != nil {
		t.Error(err)
	}
	for _, f := range found {
		if f.Level >= slog.LevelWarn {
			t.Errorf("verify.Check: %v", f)
		}
	}
	for token, err := range store.List(t.Context(), "books") {
		if !errors.Is(err, sqlfence.ErrNotSetUp) { // the standby has no ledger yet
			t.Errorf("List: %v, %v; want the standby's answer: the others were asked of it in vain", token, err)
		}
	}
}

// With pgpool each client has a session, so a listener receives notifications. But pgpool sends a query of a setting to
// the standby, so sqlfence can't verify that the session belongs to the client, and an ephemeral lease is refused.
func TestPgpoolSessions(t *testing.T) {
	through, _, _, _ := behindPgpoolWithStandby(t)
	leases := harness.NewLeases(t, through)
	_, err := leases.Acquire(t.Context(), "jobs", lease.Ephemeral())
	harness.WantError(t, err, lease.ErrNoSessions)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard, ended := make(chan string, 9), make(chan error, 1)
	go func() {
		ended <- lease.PoolListener(through).Listen(ctx, "sqlfence_leases", func(s string) { heard <- s })
	}()
	select {
	case <-heard:
	case err := <-ended:
		t.Errorf("PoolListener: %v, want that it listens", err)
	}
}

// verify.Check reports that the server is a standby. verify.OnConnect permits connections to it, because a pool may be
// for reading only.
func TestVerifyOfAStandby(t *testing.T) {
	_, direct, standby, _ := behindPgpoolWithStandby(t)
	harness.MustExec(t, direct, "CREATE TABLE books (id int PRIMARY KEY, price int, fence_token bigint NOT NULL DEFAULT 0)")
	standby.Configure(t, "recovery_min_apply_delay = 0")
	standby.Ask(t, "SELECT pg_reload_conf()::text")
	harness.Eventually(t, "the standby has the table", func() bool {
		return standby.Ask(t, "SELECT (to_regclass('books') IS NOT NULL)::text") == "true"
	})
	db := baseNamed("pgx").Fenced(t, standby.DSN(), harness.Books(sqlfence.RowFence("fence_token")), verify.OnConnect())
	if err := db.PingContext(t.Context()); err != nil {
		t.Error(err)
	}
	found, err := verify.Check(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	warned := false
	for _, f := range found {
		warned = warned || f.Code == "wrong-server" && f.Level == slog.LevelWarn
	}
	if !warned {
		t.Errorf("found %v, want wrong-server", found)
	}
}
