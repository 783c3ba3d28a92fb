package core_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// openKept opens a database with one connection, which the pool keeps after the context of a transaction has ended.
func openKept(t *testing.T, base *fakedb.Recorder) *sql.DB {
	t.Helper()
	base.Form = func(c *fakedb.RecorderConn) driver.Conn { return resettingConn{c, nil, new(fakeLink)} }
	db := openAs(t, sqlfence.MySQL, base, nil)
	db.SetMaxOpenConns(1)
	return db
}

// hold sends the statement of a Hold in tx.
func hold(t *testing.T, tx *sql.Tx) *trusted.Hold {
	t.Helper()
	h, text := new(trusted.Hold), "SELECT held"
	rows, err := tx.QueryContext(h.Context(t.Context(), text), text)
	if err != nil {
		t.Fatal(err)
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	return h
}

// A Hold may succeed after its transaction has ended with its context, and the pool has handed out the connection. This
// must not change the state of the connection's next user.
func TestHoldLeavesTheNextUserOfItsConnectionAlone(t *testing.T) {
	for name, ends := range map[string]bool{"in the transaction": false, "after the transaction": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := openKept(t, new(fakedb.Recorder))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					t.Fatal(err)
				}
				h := hold(t, tx)
				exec := tx.Exec
				if ends {
					cancel()
					synctest.Wait() // database/sql rolls the transaction back
					exec = db.Exec
				}
				h.Succeeded.Store(true)
				if _, err := exec("CREATE TABLE made (id integer)"); (err == nil) != ends {
					t.Errorf("CREATE TABLE: %v", err)
				}
			})
		})
	}
}

// A server that rolls a held transaction back because of a deadlock would commit each later statement separately. The
// deadlock must be noticed also in a statement that was prepared before the transaction began.
func TestDeadlockOfAnEarlierPreparedStatementEndsAHeldTransaction(t *testing.T) {
	base := &fakedb.Recorder{Fails: func(query string) error {
		if strings.HasPrefix(query, "UPDATE") {
			return &mysqlError{1213, "Deadlock found when trying to get lock; try restarting transaction"}
		}
		return nil
	}}
	db := openKept(t, base)
	update, err := db.Prepare("UPDATE others SET price = 1")
	if err != nil {
		t.Fatal(err)
	}
	defer update.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	hold(t, tx).Succeeded.Store(true)
	if _, err := tx.Stmt(update).Exec(); err == nil {
		t.Fatal("no deadlock")
	}
	if _, err := tx.Exec("INSERT INTO others VALUES (1)"); err == nil {
		t.Error("a later statement was sent")
	}
	if err := tx.Commit(); err == nil {
		t.Error("committed")
	}
	base.WantSent(t, "BEGIN Default", "SELECT held", "UPDATE others SET price = 1", "ROLLBACK")
}

// The application prepares a statement, or database/sql prepares it because it has arguments, or sqlfence prepares
// another form of a guarded statement. The server may roll the held transaction back in PREPARE, because of a deadlock
// of metadata locks.
func TestDeadlockOfAPrepareEndsAHeldTransaction(t *testing.T) {
	for name, victim := range map[string]func(tx *sql.Tx, update *sql.Stmt) error{
		"prepared": func(tx *sql.Tx, _ *sql.Stmt) error {
			_, err := tx.Prepare("UPDATE others SET price = 1")
			return err
		},
		"in another form": func(tx *sql.Tx, update *sql.Stmt) error {
			two := []sqlfence.Token{{Name: "books/1", Value: 1}, {Name: "books/2", Value: 1}}
			_, err := tx.Stmt(update).ExecContext(sqlfence.WithFence(t.Context(), two...))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			base, deadlocks := new(fakedb.Recorder), false
			base.Form = func(c *fakedb.RecorderConn) driver.Conn { return deadlocking{c, &deadlocks} }
			db := openAs(t, sqlfence.MySQL, base, []sqlfence.Option{sqlfence.WithTable("books",
				sqlfence.RowFence("fence_token"), sqlfence.Key("id"))})
			db.SetMaxOpenConns(1)
			update, err := db.Prepare("UPDATE books SET price = 1 WHERE id IN (1, 2)")
			if err != nil {
				t.Fatal(err)
			}
			defer update.Close()
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			hold(t, tx).Succeeded.Store(true)
			deadlocks = true
			if err := victim(tx, update); err == nil || !strings.Contains(err.Error(), "Deadlock") {
				t.Fatalf("no deadlock: %v", err)
			}
			if _, err := tx.Exec("INSERT INTO others VALUES (1)"); err == nil {
				t.Error("a later statement was sent")
			}
			if err := tx.Commit(); err == nil {
				t.Error("committed")
			}
		})
	}
}

// A deadlocking connection fails to prepare statements.
type deadlocking struct {
	*fakedb.RecorderConn
	deadlocks *bool
}

func (c deadlocking) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if *c.deadlocks {
		return nil, &mysqlError{1213, "Deadlock found when trying to get lock; try restarting transaction"}
	}
	return c.RecorderConn.PrepareContext(ctx, query)
}

// A sqliteError is a result code of SQLite, as in the errors of modernc.org/sqlite.
type sqliteError int

func (e sqliteError) Error() string { return fmt.Sprintf("SQLite's result code %d", int(e)) }
func (e sqliteError) Code() int     { return int(e) }

// On SQLite sqlfence sends BEGIN after an error, which fails in an open transaction. A driver may return the context's
// error for a BEGIN that was executed. Then the transaction of this BEGIN must not count as the held one.
func TestABeginWithAnUnknownOutcomeEndsAHeldTransaction(t *testing.T) {
	for name, begin := range map[string]error{"executed": nil, "cancelled": context.Canceled, "no transaction": sqliteError(5),
		"open": sqliteError(1)} {
		t.Run(name, func(t *testing.T) {
			base := &fakedb.Recorder{Fails: func(query string) error {
				switch query {
				case "UPDATE others SET price = 1":
					return sqliteError(9)
				case "BEGIN":
					return begin
				}
				return nil
			}}
			db := openAs(t, sqlfence.SQLite, base, nil)
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			hold(t, tx).Succeeded.Store(true)
			if _, err := tx.Exec("UPDATE others SET price = 1"); err == nil {
				t.Fatal("no error")
			}
			for range 2 {
				if _, err := tx.Exec("INSERT INTO others VALUES (1)"); (err == nil) != (name == "open") {
					t.Errorf("a later statement: %v", err)
				}
			}
			if err := tx.Commit(); (err == nil) != (name == "open") {
				t.Errorf("Commit: %v", err)
			}
		})
	}
}
