package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// mostMessages is more than an operation sends to the server.
const mostMessages = 50

// wantFew fails the subtest of a message above the limit. The parent test can't check the limit: if -run excludes the
// subtest, met is true.
func wantFew(t *testing.T, message int, met bool) {
	t.Helper()
	if met && message == mostMessages {
		t.Error("too many messages")
	}
}

// eachMySQLFault runs test for each message to the server and each fault of the message or its response. arm sets the
// fault for the next operation. The test ends when an operation sends fewer messages.
func eachMySQLFault(t *testing.T, test func(t *testing.T, leases, direct *lease.Leases, key string, arm func() (disarm func()))) {
	t.Helper()
	dsn := harness.MySQLDatabase(t)
	direct := harness.NewLeases(t, harness.MySQL.Raw(t, dsn))
	for _, interpolated := range []bool{false, true} {
		for _, fenced := range []bool{false, true} {
			network := new(harness.Faulty)
			through := network.DSN(t, harness.MySQLWith(t, dsn, func(c *mysql.Config) { c.InterpolateParams = interpolated }))
			var db *sql.DB
			if fenced {
				db = harness.MySQL.Fenced(t, through, harness.Books())
			} else {
				db = harness.MySQL.Raw(t, through)
			}
			leases := harness.NewLeases(t, db)
			for fault := harness.Unsent; fault < harness.Faults; fault++ {
				for message, met := 0, true; met && message <= mostMessages; message++ {
					name := fmt.Sprintf("interpolated %v, fenced %v, fault %d, message %d", interpolated, fenced, fault, message)
					t.Run(name, func(t *testing.T) {
						met = false
						test(t, leases, direct, t.Name(), func() func() {
							skip := message
							network.Arm(fault, func(byte, []byte) bool { skip--; return skip < 0 })
							return func() {
								met = met || network.Met()
								network.Arm(harness.NoFault, nil)
							}
						})
						wantFew(t, message, met)
					})
				}
			}
		}
	}
}

// wantFree waits until nobody holds the key.
func wantFree(t *testing.T, direct *lease.Leases, key string) {
	t.Helper()
	harness.Eventually(t, "that the lease is undone", func() bool {
		locked, err := direct.IsLocked(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return !locked
	})
}

// Whatever part of an attempt is lost, the attempt returns the lease, or an error and leaves no lease.
func TestMySQLAcquireLosesItsAnswer(t *testing.T) {
	eachMySQLFault(t, func(t *testing.T, leases, direct *lease.Leases, key string, arm func() func()) {
		for round := range 2 { // first of a new key, then of one with a row
			disarm := arm()
			l, ok, err := leases.TryAcquire(t.Context(), key, lease.Resume("me"), lease.Timeout(harness.Patience))
			disarm()
			switch {
			case ok:
				if info, live, err := direct.LookupID(t.Context(), l.LockID()); !live || err != nil || info.Token != l.Token() || l.Err() != nil {
					t.Errorf("%v, the database says %v, %v, %v", l.Token(), info, live, err)
				}
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			case err == nil:
				t.Errorf("round %d: the lease isn't held by another, but by this attempt", round)
			}
			wantFree(t, direct, key)
		}
	})
}

// If the response to a release or an extension is lost, a lease that was held to the end isn't reported as lost.
func TestMySQLReleaseAndExtendLoseTheirAnswers(t *testing.T) {
	eachMySQLFault(t, func(t *testing.T, leases, _ *lease.Leases, key string, arm func() func()) {
		var disarm func()
		err := leases.Do(t.Context(), key, func(context.Context) error { disarm = arm(); return nil })
		disarm()
		if errors.Is(err, lease.ErrLeaseLost) {
			t.Errorf("Do: %v", err)
		}
		l := harness.MustAcquire(t, leases, key+"/extended", lease.TTL(30*time.Minute))
		disarm = arm()
		if err := l.Extend(t.Context(), time.Hour); errors.Is(err, lease.ErrNotHeld) || l.Err() != nil {
			t.Errorf("Extend: %v, then %v", err, l.Err())
		}
		disarm()
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("Release: %v", err)
		}
	})
}

// An attempt waits on the server for transactions with writes under the old token, and the driver gives up. The attempt
// returns an error, and leaves neither a waiting session nor a lease.
func TestMySQLAcquireIsCutOffWhileItWaits(t *testing.T) {
	dsn := harness.MySQLDatabase(t)
	db := harness.MySQL.Raw(t, dsn)
	direct := harness.NewLeases(t, db)
	limited := harness.MySQLWith(t, dsn, func(c *mysql.Config) {
		c.ReadTimeout, c.Params = 500*time.Millisecond, map[string]string{"innodb_lock_wait_timeout": "40"}
	})
	leases, err := lease.New(harness.MySQL.Raw(t, limited)) // a Setup may take longer
	if err != nil {
		t.Fatal(err)
	}
	harness.MustRelease(t, harness.MustAcquire(t, direct, "jobs"))
	writer, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Rollback()
	if _, err := writer.Exec("SELECT token FROM fencing_tokens WHERE name = 'jobs' LOCK IN SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	harness.GiveUp(t, db, func() {
		if _, ok, err := leases.TryAcquire(t.Context(), "jobs", lease.Timeout(harness.Patience)); ok || err == nil {
			t.Errorf("TryAcquire: %v, %v", ok, err)
		}
	}, func() bool { return harness.MySQL.Waiting(t, db) == 0 })
	if err := writer.Commit(); err != nil {
		t.Fatal(err)
	}
	harness.WantToken(t, harness.MustAcquire(t, direct, "jobs"), "jobs", 2)
}
