package core_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// A resettingConn runs a function of the test when the pool hands it out. The pointers hold whether the connection is
// valid and responds.
type resettingConn struct {
	*fakedb.RecorderConn
	reset func()
	link  *fakeLink
}

// A fakeLink is the state of the connections of a test.
type fakeLink struct {
	opened, pings int
	invalid, dead bool // state of the open connections
}

func (c resettingConn) ResetSession(context.Context) error {
	if c.reset != nil {
		c.reset()
	}
	return nil
}
func (c resettingConn) IsValid() bool { return !c.link.invalid }
func (c resettingConn) Ping(context.Context) error {
	if c.link.pings++; c.link.dead {
		return driver.ErrBadConn
	}
	return nil
}

// linked gives the fake's connections the link, and opens a database.
func (l *fakeLink) linked(t *testing.T, base *fakedb.Recorder, reset func()) *sql.DB {
	base.Form = func(c *fakedb.RecorderConn) driver.Conn {
		l.opened++
		l.invalid, l.dead = false, false
		return resettingConn{c, reset, l}
	}
	db := openPostgres(t, base, sqlfence.WithTable("books", fenced))
	db.SetMaxOpenConns(1)
	return db
}

// idleLimit is how long a connection may be idle without a check.
const idleLimit = time.Second

// A connection gets no write if the base driver reports it as invalid, or if it was idle and doesn't respond to a
// check. database/sql retries on another connection.
func TestOutcomeOnALostConnection(t *testing.T) {
	for _, tt := range []struct {
		name          string
		idle          time.Duration
		dead, invalid bool
		opened, pings int
	}{
		{"in use", 700 * time.Millisecond, false, false, 1, 0},
		{"idle", 2 * time.Second, false, false, 1, 1},
		{"dead", 2 * time.Second, true, false, 2, 1},
		{"invalid", 0, false, true, 2, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base, link := new(fakedb.Recorder), new(fakeLink)
				db := link.linked(t, base, func() { link.invalid = tt.invalid }) // after the pool's own check
				for _, query := range []string{outcomeWrite, "UPDATE others SET price = 1", outcomeWrite} {
					if query != outcomeWrite && tt.idle > idleLimit {
						continue // the check would count as use
					}
					if _, err := db.ExecContext(with(t.Context(), 7), query); err != nil {
						t.Fatal(err)
					}
					time.Sleep(tt.idle)
					link.dead = tt.dead
				}
				if link.opened != tt.opened || link.pings != tt.pings || len(base.Sent) > 3 {
					t.Errorf("%d connections, %d pings, sent %q; want %d, %d and each once", link.opened, link.pings, base.Sent, tt.opened, tt.pings)
				}
				db.Close()
			})
		})
	}
}

// The commit isn't sent on a connection that no longer responds: the transaction was lost with the connection.
func TestOutcomeOfCommitOnALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, link := new(fakedb.Recorder), new(fakeLink)
		db := link.linked(t, base, nil)
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(with(t.Context(), 7), outcomeWrite); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		link.dead = true
		wantOutcome(t, tx.Commit(), driver.ErrBadConn, false, false)
		if slices.Contains(base.Sent, "COMMIT") {
			t.Errorf("sent %q", base.Sent)
		}
		db.Close()
	})
}

// After a write with an unknown outcome the connection isn't used again.
func TestOutcomeThrowsTheConnectionAway(t *testing.T) {
	fail := true
	base, opened := new(fakedb.Recorder), 0
	base.Fails = func(string) error {
		if fail {
			fail = false
			return driver.ErrBadConn
		}
		return nil
	}
	base.Form = func(c *fakedb.RecorderConn) driver.Conn { opened++; return c }
	db := openPostgres(t, base, sqlfence.WithTable("books", fenced))
	db.SetMaxOpenConns(1)
	_, err := db.ExecContext(with(t.Context(), 7), outcomeWrite)
	wantOutcome(t, err, driver.ErrBadConn, true, true)
	if _, err := db.ExecContext(with(t.Context(), 7), outcomeWrite); err != nil || opened != 2 || len(base.Sent) != 2 {
		t.Errorf("%v; %d connections, sent %q", err, opened, base.Sent)
	}
}

// If the base driver has lost its connection, any error but the database's own leaves the outcome unknown.
func TestOutcomeWhereTheConnectionIsLost(t *testing.T) {
	for _, tt := range []struct {
		err     error
		unknown bool
	}{
		{errors.New("unexpected message"), true},
		{coded("08P01"), true}, // a pooler has lost the server
		{coded("23505"), false},
	} {
		for _, commits := range []bool{false, true} {
			base, link := new(fakedb.Recorder), new(fakeLink)
			db := link.linked(t, base, nil)
			base.Fails = func(sent string) error {
				if strings.HasPrefix(sent, "UPDATE") == commits || strings.HasPrefix(sent, "BEGIN") {
					return nil
				}
				link.invalid = true
				return tt.err
			}
			var err error
			if commits {
				err = inTx(t, db, func() {})
			} else {
				_, err = db.ExecContext(with(t.Context(), 7), outcomeWrite)
			}
			wantOutcome(t, err, tt.err, tt.unknown, !commits)
		}
	}
}

// A commit on a connection that was lost before is left to the base driver, which can't send the commit.
func TestOutcomeOfCommitWithoutAConnection(t *testing.T) {
	base, link := new(fakedb.Recorder), new(fakeLink)
	db := link.linked(t, base, nil)
	base.Fails = func(sent string) error {
		if sent == "COMMIT" {
			return driver.ErrBadConn
		}
		return nil
	}
	err := inTx(t, db, func() { link.invalid, link.dead = true, true })
	wantOutcome(t, err, driver.ErrBadConn, false, false)

	// The base driver may report an open connection as invalid only to keep it out of the pool.
	base.Sent = nil
	err = inTx(t, db, func() { link.invalid = true })
	wantOutcome(t, err, driver.ErrBadConn, true, false)
}

// An application that keeps a connection can still write while the connection responds, even if the pool would reject
// it.
func TestOutcomeOnAConnectionNotForThePool(t *testing.T) {
	base, link := new(fakedb.Recorder), new(fakeLink)
	conn, err := link.linked(t, base, nil).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	link.invalid = true
	for range 2 {
		if _, err := conn.ExecContext(with(t.Context(), 7), outcomeWrite); err != nil {
			t.Fatal(err)
		}
	}
	if link.pings != 3 || len(base.Sent) != 2 { // one before the query for facts
		t.Errorf("%d pings, sent %q", link.pings, base.Sent)
	}
}
