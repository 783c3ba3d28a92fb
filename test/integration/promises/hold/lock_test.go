package hold_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func begun(t *testing.T, p *place, held ...sqlfence.Token) *sql.Tx {
	t.Helper()
	tx := harness.Begin(t.Context(), t, p.db, sql.LevelDefault)
	if err := p.store.Hold(t.Context(), tx, held...); err != nil {
		t.Fatal(err)
	}
	return tx
}

func TestHoldLocksItsOwnNamesOnly(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		if !p.Networked() {
			t.Skip("SQLite has one lock for the whole file")
		}
		now := p.issue(t, "a", "b", "c")
		for _, level := range p.levels() {
			tx := harness.Begin(t.Context(), t, p.db, level)
			if err := p.store.Hold(t.Context(), tx, now[1]); err != nil {
				t.Fatal(err)
			}
			other := harness.Begin(t.Context(), t, p.plain, level)
			if err := p.store.Hold(t.Context(), other, now[1]); err != nil {
				t.Errorf("another holder of the token: %v", err)
			}
			for _, name := range []string{"a", "c", "d"} {
				harness.IssueToken(t, harness.NewStore(t, p.plain), name)
			}
			_ = other.Rollback()
			_ = tx.Rollback()
		}
	})
}

// Hold also fences statements that no guard could be inserted into.
func TestHoldFencesWhatNoGuardCan(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		if p.DriverName == "mysql" {
			t.Skip("DDL ends the transaction")
		}
		now := p.issue(t, "a")
		tx := begun(t, p, now...)
		for _, query := range []string{"DELETE FROM things", "CREATE TABLE made (id integer)", "DROP TABLE things"} {
			if _, err := tx.ExecContext(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
		p.blocked(t, tx, func() error {
			_, err := harness.NewStore(t, p.plain).Issue(t.Context(), "a")
			return err
		})
	})
}

func TestStatementsThatCommitAreRefusedAfterHold(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		if p.DriverName != "mysql" || p.db.Driver() == p.plain.Driver() || !isFenced(p) {
			t.Skip("of a fenced database of MySQL's")
		}
		now := p.issue(t, "a")
		prepared, err := p.db.PrepareContext(t.Context(), "TRUNCATE TABLE things")
		if err != nil {
			t.Fatal(err)
		}
		tx := begun(t, p, now...)
		for _, query := range []string{"TRUNCATE TABLE things", "CREATE TABLE made (id integer)", "DROP TABLE things",
			"/*!50000 DROP TABLE things */", "ALTER TABLE things ADD COLUMN m integer", "LOCK TABLES things WRITE",
			"SET autocommit = 1", "BEGIN", "START TRANSACTION", "CALL made()", "DO made()", "SELECT 1; DROP TABLE things",
			"SET @x = 1; DROP TABLE things", "SET DEFAULT ROLE NONE", "SET STATEMENT lock_wait_timeout = 9 FOR DROP TABLE things",
			"SET STATEMENT lock_wait_timeout = 9 FOR COMMIT", "SET STATEMENT lock_wait_timeout = 9 FOR ROLLBACK TO SAVEPOINT x",
			`SELECT 'a\'; DROP TABLE things -- '`} {
			if _, err := tx.ExecContext(sqlfence.Bypass(t.Context(), "a test"), query); !errors.Is(err, sqlfence.ErrUnguardable) {
				t.Errorf("%s: %v", query, err)
			}
		}
		if _, err := tx.StmtContext(t.Context(), prepared).ExecContext(t.Context()); !errors.Is(err, sqlfence.ErrUnguardable) {
			t.Errorf("prepared: %v", err)
		}
		for _, query := range []string{"SELECT 1", "(SELECT 1)", "DELETE FROM things", "SET @x = 1",
			"UPDATE things SET n = 1 WHERE 'a;b' = 'c' -- d;\n;"} {
			if _, err := tx.ExecContext(t.Context(), query); err != nil {
				t.Errorf("%s: %v", query, err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.db.ExecContext(t.Context(), "CREATE TABLE made (id integer)"); err != nil {
			t.Errorf("after the commit: %v", err)
		}
	})
}

func isFenced(p *place) bool {
	return strings.Contains(fmt.Sprintf("%T", p.db.Driver()), "sqlfence")
}

func TestG13RollbackToASavepointBeforeHoldPreventsTheCommit(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		now := p.issue(t, "a")
		unlocks := p.Networked() // on MySQL only if the savepoint precedes the first use of a table
		for _, test := range []struct {
			name          string
			before, after []string
			lost          bool
		}{
			{"none", nil, nil, false},
			{"set after Hold", nil, []string{"SAVEPOINT x", "ROLLBACK TO SAVEPOINT x"}, false},
			{"same name after Hold", []string{"SAVEPOINT x"}, []string{"SAVEPOINT x", "ROLLBACK TO SAVEPOINT x"}, false},
			{"released before", []string{"SAVEPOINT x", "RELEASE SAVEPOINT x"}, []string{"SAVEPOINT y", "ROLLBACK TO SAVEPOINT y"}, false},
			{"released after", []string{"SAVEPOINT x"}, []string{"RELEASE SAVEPOINT x", "SAVEPOINT y", "ROLLBACK TO y"}, false},
			{"set before Hold", []string{"SAVEPOINT x"}, []string{"ROLLBACK TO SAVEPOINT x"}, true},
			{"in capitals", []string{"SAVEPOINT x"}, []string{"rollback work to X"}, true},
			{"outer one", []string{"SAVEPOINT x", "SAVEPOINT y"}, []string{"RELEASE y", "ROLLBACK TO x"}, true},
			{"second of the name", []string{"SAVEPOINT x"}, []string{"SAVEPOINT x", "RELEASE x", "ROLLBACK TO x"}, true},
		} {
			t.Run(test.name, func(t *testing.T) {
				tx := harness.Begin(t.Context(), t, p.db, sql.LevelDefault)
				run := func(queries []string) {
					t.Helper()
					for _, query := range queries {
						if p.DriverName == "mysql" {
							query = strings.Replace(query, "RELEASE ", "RELEASE SAVEPOINT ", 1)
							query = strings.Replace(query, "SAVEPOINT SAVEPOINT", "SAVEPOINT", 1)
						}
						if p.Dialect != sqlfence.Postgres && strings.Contains(query, "work") {
							query = "ROLLBACK TO SAVEPOINT X"
						}
						_, err := tx.ExecContext(t.Context(), query)
						if p.DriverName == "mysql" && test.name == "second of the name" && query == "ROLLBACK TO x" {
							test.lost, err = false, nil // MySQL replaces a savepoint of the same name
						}
						if err != nil {
							t.Fatalf("%s: %v", query, err)
						}
					}
				}
				run(test.before)
				if err := p.store.Hold(t.Context(), tx, now...); err != nil {
					t.Fatal(err)
				}
				run(test.after)
				switch lost := test.lost && unlocks; {
				case lost && !isFenced(p):
					// The rollback has released the lock, as the documentation says, so another client gets the next
					// token.
					now[0].Value = harness.IssueToken(t, harness.NewStore(t, p.plain), "a")
				case lost:
					if err := tx.Commit(); err == nil || !strings.Contains(err.Error(), "SAVEPOINT") {
						t.Errorf("Commit: %v", err)
					}
				default:
					p.blocked(t, tx, func() error {
						token, err := harness.NewStore(t, p.plain).Issue(t.Context(), "a")
						now[0] = token
						return err
					})
				}
			})
		}
	})
}

// If a string with several statements fails, the application doesn't know which of them were executed. So a string with
// a statement about a savepoint or the transaction's end is refused. No such string hides a later loss of the lock.
func TestG13StringsOfSeveralStatementsDoNotHideALostLock(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		if p.Dialect != sqlfence.Postgres || !isFenced(p) {
			t.Skip("of a fenced database of PostgreSQL's")
		}
		atomic := "CREATE FUNCTION made() RETURNS int LANGUAGE SQL BEGIN ATOMIC SELECT 1; END"
		var version int
		if err := p.plain.QueryRowContext(t.Context(), "SHOW server_version_num").Scan(&version); err != nil {
			t.Fatal(err)
		}
		if version < 140000 { // without BEGIN ATOMIC
			atomic = "SELECT 1; SELECT 2"
		}
		for query, want := range map[string]error{
			"SELECT 1/0; SAVEPOINT x":                            sqlfence.ErrUnguardable,
			"SELECT 1/0; COMMIT":                                 sqlfence.ErrUnguardable,
			"ROLLBACK PREPARED 'x'; SELECT 1":                    sqlfence.ErrUnguardable,
			"BEGIN; COMMIT":                                      sqlfence.ErrUnguardable,
			"SELECT 1; /* x */ COMMIT":                           sqlfence.ErrUnguardable,
			"ROLLBACK TO x; UPDATE things SET n = n + 1; COMMIT": sqlfence.ErrUnguardable,
			atomic:                     nil,
			atomic + "; ROLLBACK TO x": sqlfence.ErrUnguardable,
		} {
			t.Run(query, func(t *testing.T) {
				now := p.issue(t, "a")
				tx := harness.Begin(t.Context(), t, p.db, sql.LevelDefault)
				exec := func(query string) error {
					_, err := tx.ExecContext(t.Context(), query)
					return err
				}
				if err := errors.Join(exec("SAVEPOINT x"), p.store.Hold(t.Context(), tx, now...)); err != nil {
					t.Fatal(err)
				}
				if err := exec(query); !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
				if err := exec("ROLLBACK TO x"); err != nil {
					t.Fatal(err)
				}
				harness.IssueToken(t, harness.NewStore(t, p.plain), "a")
				for _, query := range []string{"SELECT 1", "BEGIN; COMMIT", "PREPARE TRANSACTION 'x'", "COMMIT"} {
					if err := exec(query); err == nil {
						t.Errorf("%s after the loss of the lock", query)
					}
				}
				if err := tx.Commit(); err == nil || !strings.Contains(err.Error(), "SAVEPOINT") {
					t.Errorf("Commit: %v", err)
				}
			})
		}
		if n := p.n(t); n != 0 {
			t.Errorf("n = %d", n)
		}
	})
}

// A preparingTx prepares each statement, as gorm does on request.
type preparingTx struct{ *sql.Tx }

func (tx preparingTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	stmt, err := tx.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	return stmt.ExecContext(ctx, args...)
}

func (tx preparingTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := tx.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...) // the transaction's end closes the statement
}

func TestG13RollbackBeforeAPreparedHoldPreventsTheCommit(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		if p.Dialect != sqlfence.Postgres || !isFenced(p) {
			t.Skip("of a fenced database of PostgreSQL's")
		}
		now := p.issue(t, "a")
		tx := harness.Begin(t.Context(), t, p.db, sql.LevelDefault)
		_, err := tx.ExecContext(t.Context(), "SAVEPOINT x")
		if err == nil {
			err = p.store.Hold(t.Context(), preparingTx{tx}, now...)
		}
		if err == nil {
			_, err = tx.ExecContext(t.Context(), "ROLLBACK TO x")
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err == nil || !strings.Contains(err.Error(), "SAVEPOINT") {
			t.Errorf("Commit: %v", err)
		}
	})
}

// A text begins the transaction, and a text is its COMMIT.
func TestRollbackToASavepointPreventsTheCommitOfAText(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		if p.Dialect != sqlfence.Postgres || !isFenced(p) {
			t.Skip("of a fenced database of PostgreSQL's")
		}
		now := p.issue(t, "a")
		conn, err := p.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		exec := func(query string) error {
			_, err := conn.ExecContext(t.Context(), query)
			return err
		}
		for _, query := range []string{"BEGIN", "SAVEPOINT x"} {
			if err := exec(query); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.store.Hold(t.Context(), conn, now...); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(write(t.Context(), conn), exec("ROLLBACK TO x")); err != nil {
			t.Fatal(err)
		}
		if err := exec("COMMIT"); err == nil {
			t.Error("committed")
		}
		if err := errors.Join(exec("ROLLBACK"), exec("BEGIN"), exec("COMMIT")); err != nil {
			t.Error(err)
		}
	})
}

// With autocommit off, a session is in a transaction from its first statement on.
func TestHoldWithoutAutocommit(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		if p.DriverName != "mysql" {
			t.Skip("of MySQL's")
		}
		now := p.issue(t, "a")
		conn, err := p.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.ExecContext(t.Context(), "SET autocommit = 0"); err != nil {
			t.Fatal(err)
		}
		if err := p.store.Hold(t.Context(), conn, now...); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.ExecContext(t.Context(), "SET autocommit = 1"); err != nil {
			t.Error(err)
		}
		// After the Hold above the Store knows whether this server shows an open transaction by savepoints alone.
		tx := begun(t, p, now...)
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		if err := p.store.Hold(t.Context(), conn, now...); !errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("outside: %v", err)
		}
	})
}

// A session's settings may limit the number of a query's rows.
func TestHoldWithALimitOfTheSession(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		if p.DriverName != "mysql" {
			t.Skip("of MySQL's")
		}
		old := p.issue(t, "a", "b")
		now := p.issue(t, "b")
		for limit := range 2 {
			tx := harness.Begin(t.Context(), t, p.db, sql.LevelDefault)
			if _, err := tx.ExecContext(t.Context(), fmt.Sprint("SET sql_select_limit = ", limit)); err != nil {
				t.Fatal(err)
			}
			harness.WantError(t, p.store.Hold(t.Context(), tx, old...), sqlfence.ErrStale)
			harness.WantError(t, p.store.HoldClaim(t.Context(), tx, things, 1, 2), sqlfence.ErrStale)
			if err := p.store.Hold(t.Context(), tx, old[0], now[0]); err != nil {
				t.Error(err)
			}
			if _, err := tx.ExecContext(t.Context(), "SET sql_select_limit = DEFAULT"); err != nil {
				t.Error(err)
			}
			_ = tx.Rollback()
		}
	})
}

// Hold calls the stored function, which depends on a trigger of the ledger.
func TestHoldKeepsTheLedgersTriggers(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		if p.Dialect != sqlfence.Postgres {
			t.Skip("of PostgreSQL's")
		}
		tx := begun(t, p, p.issue(t, "a")...)
		p.blocked(t, tx, func() error {
			_, err := p.plain.ExecContext(t.Context(), "ALTER TABLE fencing_tokens DISABLE TRIGGER sqlfence_turn_v1")
			return err
		})
	})
}

// An UPDATE by a client without sqlfence that raises a held token waits, too.
func TestG13HoldWithForeignUpdates(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		for _, level := range p.levels() {
			tx := harness.Begin(t.Context(), t, p.db, level)
			if err := p.store.Hold(t.Context(), tx, p.issue(t, "a")...); err != nil {
				t.Fatal(err)
			}
			p.blocked(t, tx, func() error {
				_, err := p.plain.ExecContext(t.Context(), "UPDATE fencing_tokens SET token = token + 1 WHERE name = 'a'")
				return err
			})
		}
	})
}

// Without the ledger, or without PostgreSQL's function, Hold's error says what to do.
func TestHoldWithoutASetup(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		store := harness.NewStore(t, db)
		hold := func() error {
			tx := harness.Begin(t.Context(), t, db, sql.LevelDefault)
			defer tx.Rollback()
			return store.Hold(t.Context(), tx, sqlfence.Token{Name: "a", Value: 1})
		}
		harness.WantError(t, hold(), sqlfence.ErrNotSetUp)
		if b.Dialect != sqlfence.Postgres {
			return
		}
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE fencing_tokens (name text PRIMARY KEY, token bigint NOT NULL)"); err != nil {
			t.Fatal(err)
		}
		harness.WantError(t, hold(), sqlfence.ErrNotSetUp)
	})
}

// Holders at READ COMMITTED share advisory locks, so no row gets a list of lockers (a multixact).
func TestManyHoldersMakeNoMultixacts(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		if p.Dialect != sqlfence.Postgres {
			t.Skip("of PostgreSQL's")
		}
		now := p.issue(t, "a", "b")
		multixacts := func() (n int64) {
			t.Helper()
			row := p.plain.QueryRowContext(t.Context(), "SELECT count(*) FROM fencing_tokens WHERE xmax::text::bigint <> 0 "+
				"AND EXISTS (SELECT FROM pg_get_multixact_members(xmax) LIMIT 1)")
			if err := row.Scan(&n); err != nil && !strings.Contains(err.Error(), "MultiXactId") {
				t.Fatal(err)
			}
			return n
		}
		hold64 := func(level sql.IsolationLevel) (n int64) {
			var held, counted sync.WaitGroup
			held.Add(64)
			counted.Add(1)
			var done sync.WaitGroup
			for range 64 {
				done.Go(func() {
					tx, err := p.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
					if err == nil {
						defer tx.Rollback()
						err = p.store.Hold(t.Context(), tx, now...)
					}
					held.Done()
					counted.Wait()
					if err == nil {
						err = tx.Commit()
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			held.Wait()
			n = multixacts()
			counted.Done()
			done.Wait()
			return n
		}
		if n := hold64(sql.LevelReadCommitted); n != 0 {
			t.Errorf("%d rows have multixacts at READ COMMITTED", n)
		}
		if n := hold64(sql.LevelRepeatableRead); n == 0 {
			t.Error("the control has none at REPEATABLE READ")
		}
	})
}
