package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Errors, cancellation and transactions of go-sql-driver/mysql.

// errors.As finds the driver's own errors, and the connection can be used after them.
func TestMySQLErrors(t *testing.T) {
	besideMySQL(t, nil, "1062; 1146; 1064; 1; ", func(t *testing.T, db *sql.DB) string {
		db.SetMaxOpenConns(1)
		var seen []any
		for _, query := range []string{"INSERT INTO pens (id) VALUES (1), (1)", "DELETE FROM nothing", "DELETE"} {
			_, err := db.Exec(query)
			var own *mysql.MySQLError
			if !errors.As(err, &own) {
				t.Fatalf("%s: %v", query, err)
			}
			seen = append(seen, own.Number)
		}
		return saw(append(seen, countRows(t, db, "SELECT 1"))...)
	})
}

// A statement that is cancelled ends, and its connection is not used again.
func TestMySQLCancel(t *testing.T) {
	besideMySQL(t, nil, "true; 1; ", func(t *testing.T, db *sql.DB) string {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err := db.QueryRowContext(ctx, "SELECT SLEEP(600)").Scan(new(int))
		return saw(errors.Is(err, context.DeadlineExceeded), countRows(t, db, "SELECT 1"))
	})
}

// A transaction's reads of another transaction's writes show its isolation level.
func TestMySQLIsolation(t *testing.T) {
	const dirty, committed, snapshot = "1 <nil>; 1 <nil>", "0 <nil>; 1 <nil>", "0 <nil>; 0 <nil>"
	const locked = "0 Error 1205 (HY000): Lock wait timeout exceeded; try restarting transaction; 1 <nil>"
	for _, tt := range []struct {
		opts sql.TxOptions
		want string
	}{
		{sql.TxOptions{}, snapshot},
		{sql.TxOptions{ReadOnly: true}, snapshot},
		{sql.TxOptions{Isolation: sql.LevelReadUncommitted}, dirty},
		{sql.TxOptions{Isolation: sql.LevelReadCommitted}, committed},
		{sql.TxOptions{Isolation: sql.LevelRepeatableRead}, snapshot},
		{sql.TxOptions{Isolation: sql.LevelSerializable}, locked},
		{sql.TxOptions{Isolation: sql.LevelSnapshot}, "mysql: unsupported isolation level: 5"},
		{sql.TxOptions{Isolation: 99}, "mysql: unsupported isolation level: 99"},
	} {
		want := tt.want
		if tt.want[0] != 'm' {
			want += "; " + map[bool]string{false: "<nil>", true: "Error 1792 (25006): Cannot execute statement in a READ ONLY transaction"}[tt.opts.ReadOnly]
		}
		noWait := func(c *mysql.Config) { c.Params = map[string]string{"innodb_lock_wait_timeout": "0"} }
		besideMySQL(t, noWait, want, func(t *testing.T, db *sql.DB) string { return seenBy(t, db, &tt.opts) })
	}
}

// seenBy returns a transaction's reads of a pen that another transaction adds, before and after the commit, and whether
// the transaction can write.
func seenBy(t *testing.T, db *sql.DB, opts *sql.TxOptions) string {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), opts)
	if err != nil {
		return err.Error()
	}
	defer tx.Rollback()
	other, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback()
	if _, err := other.Exec("INSERT INTO pens (id) VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	var before, after int
	errBefore := tx.QueryRow("SELECT count(*) FROM pens").Scan(&before)
	if err := other.Commit(); err != nil {
		t.Fatal(err)
	}
	errAfter := tx.QueryRow("SELECT count(*) FROM pens").Scan(&after)
	_, err = tx.Exec("INSERT INTO pens (id) VALUES (2)")
	return fmt.Sprintf("%d %v; %d %v; %v", before, errBefore, after, errAfter, err)
}
