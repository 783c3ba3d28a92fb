package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A desk is a database with the table invoice, whose row 7 people edit.
type desk struct {
	harness.Setting
	fence    bool   // db is fenced, and so is the table
	inTx     bool   // each operation is in a caller's transaction, at the setting's level
	ada, bob any    // users, as text or as number
	users    string // the type of the users' column; empty: derived from ada

	source  string
	plain   *sql.DB // the base driver alone, to prepare and to read rows
	db      *sql.DB
	invoice *rowlock.Table
}

// eachDesk runs test on every base, at every level, on plain and fenced databases, for users of both types, and with
// operations inside and outside of the caller's transaction.
func eachDesk(t *testing.T, test func(t *testing.T, d *desk)) {
	t.Helper()
	harness.EachStoreSetting(t, func(t *testing.T, s harness.Setting) {
		for _, d := range []*desk{
			{Setting: s, ada: "ada", bob: "bob"},
			{Setting: s, ada: 1, bob: 2, fence: true},
			{Setting: s, ada: 1, bob: 2, inTx: true},
			{Setting: s, ada: "ada", bob: "bob", inTx: true, fence: true},
		} {
			name := fmt.Sprintf("%T", d.ada)
			if d.fence {
				name += " fenced"
			}
			if d.inTx {
				name += " in a transaction"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel() // each desk has its own database
				d.open(t)
				test(t, d)
			})
		}
	})
}

// open creates the table with row 7 at version 1 and without a lock.
func (d *desk) open(t testing.TB, opts ...rowlock.Option) {
	t.Helper()
	d.source = d.DSN(t)
	switch d.Name {
	case "mattn":
		d.source += "&_synchronous=OFF"
	case "modernc":
		d.source += "&_pragma=synchronous(OFF)"
	}
	d.plain = d.Raw(t, d.source)
	users, times := "text", "integer"
	if _, ok := d.ada.(int); ok {
		users = "bigint"
	}
	if d.users != "" {
		users = d.users
	}
	switch d.Dialect {
	case sqlfence.Postgres:
		times = "timestamptz"
	case sqlfence.MySQL:
		times = "bigint"
	}
	d.exec(t, fmt.Sprintf(`CREATE TABLE invoice (
		id integer PRIMARY KEY, total integer NOT NULL, serial bigint NOT NULL DEFAULT 1,
		editedby %s, editedsince %s, editedexpiry %[2]s, fence_token bigint)`, users, times))
	d.exec(t, "INSERT INTO invoice (id, total) VALUES (7, 10)")
	if d.Level != sql.LevelDefault {
		d.source = d.AtLevel(t, d.source, d.Level)
	}
	d.db = d.Raw(t, d.source)
	if d.fence {
		d.db = d.Fenced(t, d.source, sqlfence.WithTable("invoice", sqlfence.RowFence("fence_token")))
	}
	d.db.SetMaxIdleConns(12) // one for each of the most users
	d.invoice = d.table(t, opts...)
}

func (d *desk) table(t testing.TB, opts ...rowlock.Option) *rowlock.Table {
	t.Helper()
	table, err := rowlock.New(d.db, "invoice", opts...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// exec executes a statement by the base driver.
func (d *desk) exec(t testing.TB, query string) {
	t.Helper()
	harness.MustExec(t, d.plain, query)
}

// do runs one operation, in a separate transaction if inTx is set.
func (d *desk) do(ctx context.Context, operation func(*rowlock.Table) error) error {
	if !d.inTx {
		return operation(d.invoice)
	}
	tx, err := d.db.BeginTx(ctx, &sql.TxOptions{Isolation: d.Level})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := operation(d.invoice.In(tx)); err != nil {
		return err
	}
	return tx.Commit()
}

func (d *desk) request(t testing.TB, e rowlock.Edit) (lock rowlock.Lock, err error) {
	t.Helper()
	err = d.do(t.Context(), func(table *rowlock.Table) error {
		lock, err = table.Request(t.Context(), e)
		return err
	})
	return lock, err
}

// mustRequest is request for a lock that must be granted.
func (d *desk) mustRequest(t testing.TB, e rowlock.Edit) rowlock.Lock {
	t.Helper()
	lock, err := d.request(t, e)
	if err != nil {
		t.Fatalf("%v can't have the lock: %v", e.User, err)
	}
	return lock
}

// edit returns a user's Edit of row 7 at version 1.
func edit(user any) rowlock.Edit { return rowlock.Edit{ID: 7, Serial: 1, User: user} }

// holder returns a context with the token that a write to the desk's table needs.
func (d *desk) holder(t testing.TB) context.Context {
	return sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "invoice", Value: 1})
}

// saving returns a save function that sets the total and increments the version.
func saving(total int) func(context.Context, *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE invoice SET total = %d, serial = serial + 1 WHERE id = 7", total))
		return err
	}
}

// time returns SQL for the database's current time plus seconds.
func (d *desk) time(seconds int) string {
	switch d.Dialect {
	case sqlfence.Postgres:
		return fmt.Sprintf("(clock_timestamp() + interval '%d seconds')", seconds)
	case sqlfence.MySQL:
		return fmt.Sprintf("(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + %d)", seconds*1_000_000)
	}
	return fmt.Sprintf("(CAST(strftime('%%s', 'now') AS integer) * 1000 + %d)", seconds*1000)
}

// user returns a user's ID as SQL.
func (d *desk) user(user any) string {
	if text, ok := user.(string); ok {
		return "'" + text + "'"
	}
	return fmt.Sprint(user)
}

// set stores the lock's columns by the base driver: by as SQL, a start an hour ago, and the expiry as SQL.
func (d *desk) set(t testing.TB, by, expiry string) {
	t.Helper()
	d.exec(t, "UPDATE invoice SET editedby = "+by+", editedsince = "+d.time(-3600)+", editedexpiry = "+expiry)
}

// row returns row 7 as text, or "none" if the row is gone.
func (d *desk) row(t testing.TB) string {
	t.Helper()
	var row string
	query := `SELECT 'total ' || total || ', serial ' || serial || ', by ' || COALESCE(CAST(editedby AS text), 'NULL')
		|| ', since ' || COALESCE(CAST(editedsince AS text), 'NULL') || ', until ' || COALESCE(CAST(editedexpiry AS text), 'NULL') FROM invoice WHERE id = 7`
	if d.Dialect == sqlfence.MySQL {
		query = `SELECT CONCAT('total ', total, ', serial ', serial, ', by ', COALESCE(editedby, 'NULL'),
			', since ', COALESCE(editedsince, 'NULL'), ', until ', COALESCE(editedexpiry, 'NULL')) FROM invoice WHERE id = 7`
	}
	err := d.plain.QueryRowContext(t.Context(), query).Scan(&row)
	if errors.Is(err, sql.ErrNoRows) {
		return "none"
	} else if err != nil {
		t.Fatal(err)
	}
	return row
}

// holds fails the test unless row 7 satisfies the SQL condition.
func (d *desk) holds(t testing.TB, condition string) {
	t.Helper()
	var holds sql.NullBool
	if err := d.plain.QueryRowContext(t.Context(), "SELECT "+condition+" FROM invoice WHERE id = 7").Scan(&holds); err != nil {
		t.Fatal(err)
	}
	if !holds.Bool {
		t.Errorf("%s doesn't hold for %s", condition, d.row(t))
	}
}

// wantLocked fails the test unless err is a LockedError that names by as the current holder.
func (d *desk) wantLocked(t testing.TB, err error, by any) {
	t.Helper()
	var locked *sqlfence.LockedError
	if !errors.As(err, &locked) || !errors.Is(err, sqlfence.ErrLocked) || locked.Temporary() {
		t.Errorf("err = %v, want LockedError", err)
		return
	}
	lock, err := d.invoice.Current(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	if locked.Table != "invoice" || locked.By != fmt.Sprint(by) || locked.By != lock.By ||
		!locked.Since.Equal(lock.Since) || !locked.Expiry.Equal(lock.Expiry) || locked.Since.IsZero() || locked.Expiry.IsZero() {
		t.Errorf("%+v, want the lock of %v, %+v", locked, by, lock)
	}
}

// wantLockConflict fails the test unless err is a ConflictError with these versions.
func wantLockConflict(t testing.TB, err error, expected, current int64) {
	t.Helper()
	var conflict *sqlfence.ConflictError
	if !errors.As(err, &conflict) || !errors.Is(err, sqlfence.ErrConflict) || !conflict.Temporary() {
		t.Errorf("err = %v, want ConflictError", err)
		return
	}
	if conflict.Table != "invoice" || conflict.Expected != expected || conflict.Current != current {
		t.Errorf("%+v, want expected %d, current %d", conflict, expected, current)
	}
}

// near fails the test unless got is within five minutes of want. The database runs on the test's machine.
func near(t testing.TB, what string, got, want time.Time) {
	t.Helper()
	if d := got.Sub(want); d < -5*time.Minute || d > 5*time.Minute {
		t.Errorf("%s is %v, want about %v", what, got, want)
	}
}
