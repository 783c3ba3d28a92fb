package hold_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// deadlock makes MariaDB roll back tx because of a deadlock over row 2, in the statement victim.
func deadlock(t *testing.T, p *place, tx tokens.Tx, victim string) {
	t.Helper()
	exec := func(tx tokens.Tx, query string) error {
		_, err := tx.ExecContext(t.Context(), query)
		return err
	}
	other := harness.Begin(t.Context(), t, p.plain, sql.LevelDefault)
	defer other.Rollback()
	// The server ends the transaction that has changed fewer rows.
	err := exec(other, "UPDATE things SET n = n + 100 WHERE id = 2")
	for id := range 20 {
		err = errors.Join(err, exec(other, fmt.Sprintf("INSERT INTO things (id, n) VALUES (%d, 0)", 10+id)))
	}
	if err = errors.Join(err, exec(tx, "SELECT n FROM things WHERE id = 1 LOCK IN SHARE MODE")); err != nil {
		t.Fatal(err)
	}
	task := harness.Go(func() error { return exec(other, "UPDATE things SET n = n + 100 WHERE id = 1") })
	p.waitsFor(t, task)
	if rows, failed := tx.QueryContext(t.Context(), victim); failed != nil {
		err = failed
	} else {
		for rows.Next() {
			continue
		}
		err = rows.Err()
		rows.Close()
	}
	if err == nil || !retryable(err) && !strings.Contains(err.Error(), "1213") {
		t.Fatalf("no deadlock: %v", err)
	}
	if err := task.Wait(); err != nil {
		t.Fatal(err)
	}
}

// A preparedTx executes statements that were prepared before the transaction.
type preparedTx struct {
	*sql.Tx
	prepared map[string]*sql.Stmt
}

func (tx preparedTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if stmt := tx.prepared[query]; stmt != nil {
		return tx.StmtContext(ctx, stmt).ExecContext(ctx, args...)
	}
	return tx.Tx.ExecContext(ctx, query, args...)
}

func (tx preparedTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if stmt := tx.prepared[query]; stmt != nil {
		return tx.StmtContext(ctx, stmt).QueryContext(ctx, args...)
	}
	return tx.Tx.QueryContext(ctx, query, args...)
}

// After a deadlock MariaDB continues the session without a transaction, and so without the lock. The application's
// later statements must fail, because each would be committed at once.
func TestG13NothingIsWrittenInAHeldTransactionThatTheServerHasEnded(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		if p.DriverName != "mysql" || !isFenced(p) {
			t.Skip("of a fenced database of MySQL's")
		}
		const update = "UPDATE things SET n = n + 1 WHERE id = 2"
		behind := func(t *testing.T, tx tokens.Tx, victim string) {
			t.Helper()
			deadlock(t, p, tx, victim)
			harness.IssueToken(t, harness.NewStore(t, p.plain), "a")
			if err := write(t.Context(), tx); err == nil || !retryable(err) {
				t.Errorf("the write behind it: %v", err)
			}
		}
		for _, victim := range []string{update, "SELECT n FROM things WHERE id > 0 AND id < 5 ORDER BY id DESC FOR UPDATE"} {
			t.Run(victim, func(t *testing.T) {
				tx := begun(t, p, p.issue(t, "a")...)
				behind(t, tx, victim)
				if err := tx.Commit(); err == nil {
					t.Error("committed")
				}
			})
		}
		t.Run("texts", func(t *testing.T) {
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
			if err := errors.Join(exec("BEGIN"), p.store.Hold(t.Context(), conn, now...)); err != nil {
				t.Fatal(err)
			}
			behind(t, conn, update)
			if err := exec("COMMIT"); err == nil {
				t.Error("committed")
			}
			if err := errors.Join(exec("ROLLBACK"), exec("CREATE TABLE made (id integer)")); err != nil {
				t.Errorf("the connection's next statements: %v", err)
			}
		})
		t.Run("prepared before the transaction", func(t *testing.T) {
			one := p.Fenced(t, p.dsn) // without registered tables
			one.SetMaxOpenConns(1)    // the transaction has the connection on which the statements were prepared
			prepared := make(map[string]*sql.Stmt)
			for _, query := range []string{update, increment} {
				var err error
				if prepared[query], err = one.PrepareContext(t.Context(), query); err != nil {
					t.Fatal(err)
				}
				defer prepared[query].Close()
			}
			tx := harness.Begin(t.Context(), t, one, sql.LevelDefault)
			if err := p.store.Hold(t.Context(), tx, p.issue(t, "a")...); err != nil {
				t.Fatal(err)
			}
			behind(t, preparedTx{tx, prepared}, update)
			if err := tx.Commit(); err == nil {
				t.Error("committed")
			}
		})
		t.Run("Leases.Tx", func(t *testing.T) {
			calls := 0
			err := p.leases(t, p.db).Tx(t.Context(), "job", func(ctx context.Context, tx *sql.Tx) error {
				if calls++; calls == 1 {
					deadlock(t, p, tx, update)
				}
				return write(ctx, tx)
			})
			if err != nil || calls != 2 {
				t.Errorf("%v after %d calls", err, calls)
			}
		})
		if n := p.n(t); n != 1 {
			t.Errorf("n = %d, want that of the last transaction", n)
		}
	})
}

const orRollback = "INSERT OR ROLLBACK INTO things (id, n) VALUES (1, 0)"

// endless is an UPDATE that runs until it is interrupted.
const endless = "UPDATE things SET n = (WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c)"

// On SQLite an error may roll back the transaction, and then each later statement would be committed at once, without
// the lock.
func TestG13NothingIsWrittenInAHeldTransactionThatAnErrorHasEnded(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		if p.Networked() || !isFenced(p) {
			t.Skip("of a fenced SQLite")
		}
		p.exec(t, "CREATE TRIGGER bad BEFORE UPDATE ON things WHEN NEW.n < 0 BEGIN SELECT RAISE(ROLLBACK, 'negative'); END")
		for _, victim := range []struct {
			name, query string
			ends        bool // the transaction
		}{
			{"OR ROLLBACK", orRollback, true},
			{"trigger", "UPDATE things SET n = -1 WHERE id = 2", true},
			{"interrupted", endless, true},
			{"rows", "INSERT OR ROLLBACK INTO things (id, n) VALUES (7, 0), (1, 0) RETURNING id", true},
			{"after a trigger's END", "CREATE TEMP TRIGGER made AFTER UPDATE ON things BEGIN SELECT 1; END|" + orRollback, true},
			{"after a named ROLLBACK TO", "SAVEPOINT x|ROLLBACK TRANSACTION a TO x|" + orRollback, true},
			{"constraint", "INSERT INTO things (id, n) VALUES (1, 0)", false},
			{"syntax", "INSERT INTO things SET n = 1", false},
		} {
			for _, begun := range []string{"BeginTx", "texts", "prepared"} {
				t.Run(victim.name+"/"+begun, func(t *testing.T) {
					want := p.n(t)
					before, last := "", victim.query
					if i := strings.LastIndexByte(victim.query, '|'); i >= 0 {
						before, last = victim.query[:i], victim.query[i+1:]
					}
					tx, commit := p.held(t, begun, last)
					for query := range strings.SplitSeq(before, "|") {
						if _, err := tx.ExecContext(t.Context(), query); err != nil {
							t.Fatal(err)
						}
					}
					if err := fails(t, tx, last); err == nil {
						t.Fatal("no error")
					}
					if victim.ends {
						harness.IssueToken(t, harness.NewStore(t, p.plain), "a")
					} else {
						want++
					}
					if err := write(t.Context(), tx); (err != nil) != victim.ends {
						t.Errorf("the next write: %v", err)
					}
					if err := commit(); (err != nil) != victim.ends {
						t.Errorf("COMMIT: %v", err)
					}
					if n := p.n(t); n != want {
						t.Errorf("n = %d, want %d", n, want)
					}
				})
			}
		}
	})
}

// held returns a transaction that holds a new token, and its COMMIT. begun is how the transaction begins.
func (p *place) held(t *testing.T, begun, victim string) (tx tokens.Tx, commit func() error) {
	t.Helper()
	now := p.issue(t, "a")
	one := p.Fenced(t, p.dsn) // without registered tables
	one.SetMaxOpenConns(1)    // the transaction has the connection on which the statements were prepared
	exec := func(tx tokens.Tx, query string) error {
		_, err := tx.ExecContext(t.Context(), query)
		return err
	}
	var err error
	switch begun {
	case "texts":
		conn, failed := one.Conn(t.Context())
		if failed != nil {
			t.Fatal(failed)
		}
		t.Cleanup(func() { conn.Close() })
		tx, err = conn, exec(conn, "BEGIN")
		commit = func() error {
			err := exec(conn, "COMMIT")
			if err != nil {
				if err := errors.Join(exec(conn, "ROLLBACK"), exec(conn, "DELETE FROM things WHERE id = 9")); err != nil {
					t.Errorf("the connection's next statements: %v", err)
				}
			}
			return err
		}
	default:
		prepared := make(map[string]*sql.Stmt)
		for _, query := range []string{victim, increment} {
			if begun == "prepared" && !strings.HasPrefix(query, "INSERT INTO things SET") {
				if prepared[query], err = one.PrepareContext(t.Context(), query); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { prepared[query].Close() })
			}
		}
		begun := harness.Begin(t.Context(), t, one, sql.LevelDefault)
		tx, commit = preparedTx{begun, prepared}, begun.Commit
	}
	if err := errors.Join(err, p.store.Hold(t.Context(), tx, now...)); err != nil {
		t.Fatal(err)
	}
	return tx, commit
}

// fails returns the error of a statement, which is interrupted if it is endless.
func fails(t *testing.T, tx tokens.Tx, query string) error {
	t.Helper()
	ctx := t.Context()
	if query == endless {
		limited, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		ctx = limited
	}
	if !strings.Contains(query, "RETURNING") {
		_, err := tx.ExecContext(ctx, query)
		return err
	}
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		continue
	}
	return rows.Err()
}

// Rows of an INSERT that were open before Hold are interrupted after Hold, and SQLite rolls the transaction back. The
// driver returns the error to a reader of the rows only.
func TestNothingIsWrittenAfterRowsFromBeforeHoldHaveEndedTheTransaction(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		if p.Networked() || !isFenced(p) {
			t.Skip("of a fenced SQLite")
		}
		p.exec(t, "CREATE TABLE copies (x)")
		now, want := p.issue(t, "a"), p.n(t)
		tx := harness.Begin(t.Context(), t, p.db, sql.LevelDefault)
		rows, err := tx.QueryContext(t.Context(), "INSERT INTO copies VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9) RETURNING x")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		if !rows.Next() {
			t.Fatal("no row")
		}
		if err := p.store.Hold(t.Context(), tx, now...); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("UPDATE things SET n = n WHERE id = 2"); err != nil {
			t.Fatal(err)
		}
		// The driver interrupts the connection, also the open rows. On a busy machine the context may end before the
		// statement begins.
		for wait := 50 * time.Millisecond; rows.Next(); wait *= 2 {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			_, err := tx.ExecContext(ctx, "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT sum(x) FROM c")
			cancel()
			if err == nil {
				t.Fatal("the endless statement has ended")
			}
		}
		if rows.Err() == nil {
			t.Fatal("the rows weren't interrupted")
		}
		if _, err := tx.Exec(increment); err == nil {
			t.Error("a statement of the ended transaction succeeded")
		}
		if err := tx.Commit(); err == nil {
			t.Error("COMMIT of the ended transaction succeeded")
		}
		if got := p.n(t); got != want {
			t.Errorf("a write landed: n is %d, want %d", got, want)
		}
	})
}
