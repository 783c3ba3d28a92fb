//go:build linux

package tokens_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// deciding runs every call that decides by a read, with existing and with missing tokens and leases.
func deciding(t *testing.T, db *sql.DB, l *lease.Lease) map[string]error {
	t.Helper()
	store := harness.NewStore(t, db)
	leases, err := lease.New(db)
	if err != nil {
		t.Fatal(err)
	}
	errs := make(map[string]error)
	for _, name := range []string{l.Key(), "unknown"} {
		_, errs["Current of "+name] = store.Current(t.Context(), name)
		errs["Check of "+name] = store.Check(t.Context(), sqlfence.Token{Name: name, Value: l.Token().Value})
		_, errs["IsLocked of "+name] = leases.IsLocked(t.Context(), name)
		_, _, errs["Lookup of "+name] = leases.Lookup(t.Context(), name)
	}
	errs["Hold"] = inTx(t, db, func(tx tokens.Tx) error { return store.Hold(t.Context(), tx, l.Token()) })
	_, _, errs["LookupID"] = leases.LookupID(t.Context(), l.LockID())
	_, _, errs["LookupID of none"] = leases.LookupID(t.Context(), strings.Repeat("A", 22))
	return errs
}

// inTx begins a transaction by its text: BeginTx of lib/pq begins it READ WRITE, which fails on a standby.
func inTx(t *testing.T, db *sql.DB, f func(tx tokens.Tx) error) error {
	t.Helper()
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.ExecContext(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	defer c.ExecContext(context.WithoutCancel(t.Context()), "ROLLBACK")
	return f(c)
}

// shown runs the queries whose results are only displayed.
func shown(t *testing.T, db *sql.DB) error {
	t.Helper()
	store := harness.NewStore(t, db)
	leases, err := lease.New(db)
	if err != nil {
		t.Fatal(err)
	}
	_, err = leases.List(t.Context())
	for _, listErr := range store.List(t.Context(), "") {
		err = errors.Join(err, listErr)
	}
	for _, watchErr := range store.Watch(t.Context(), "jobs", time.Hour) {
		err = errors.Join(err, watchErr)
		break
	}
	for _, watchErr := range leases.Watch(t.Context(), "jobs", time.Hour) {
		err = errors.Join(err, watchErr)
		break
	}
	return err
}

// A standby that has stopped replaying knows neither a held lease nor its token. Deciding reads return an error there
// instead of reporting the lease as free. Once promoted, the server decides.
func TestStandbyDecidesNothing(t *testing.T) {
	primary, standby := harness.NewServer(t, ""), harness.NewServer(t, "")
	primary.Start(t)
	for _, b := range harness.Chosen(harness.Bases[:2]) {
		db, done := primary.Open(t, b)
		harness.NewLeases(t, db)
		done()
		standby.Follow(t, primary)
		db, done = primary.Open(t, b)
		leases, err := lease.New(db)
		if err != nil {
			t.Fatal(err)
		}
		standby.CutOff(t, primary)
		l := harness.MustAcquire(t, leases, "jobs", lease.TTL(time.Hour))
		for what, err := range deciding(t, db, l) {
			if unknown := errors.Is(err, sqlfence.ErrUnknownName); err != nil && !(unknown && strings.HasSuffix(what, "unknown")) {
				t.Errorf("%s: %s on the primary: %v", b.Name, what, err)
			}
		}
		behind, close := standby.Open(t, b)
		for what, err := range deciding(t, behind, l) {
			if !errors.Is(err, sqlfence.ErrStandby) {
				t.Errorf("%s: %s on a standby: %v, want ErrStandby", b.Name, what, err)
			}
		}
		if err := shown(t, behind); err != nil {
			t.Errorf("%s: for display: %v", b.Name, err)
		}
		harness.MustRelease(t, l)
		standby.Promote(t)
		for what, err := range deciding(t, behind, l) {
			if errors.Is(err, sqlfence.ErrStandby) {
				t.Errorf("%s: %s behind a promotion: %v", b.Name, what, err)
			}
		}
		close()
		done()
		standby.Stop(t)
	}
}

// On a read-only MariaDB, such as a replica or a primary before a switchover, calls that decide by a read fail, too.
func TestReadOnlyServerDecidesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server of its own")
	}
	db, err := sql.Open("mysql", ownMariaDB(t))
	harness.CloseAtEnd(t, db, err)
	l := harness.MustAcquire(t, harness.NewLeases(t, db), "jobs")
	for _, readOnly := range []int{1, 0} {
		harness.MustExec(t, db, fmt.Sprint("SET GLOBAL read_only = ", readOnly))
		for what, err := range deciding(t, db, l) {
			if errors.Is(err, sqlfence.ErrStandby) != (readOnly == 1) {
				t.Errorf("%s with read_only = %d: %v", what, readOnly, err)
			}
		}
		if err := shown(t, db); err != nil {
			t.Errorf("for display: %v", err)
		}
	}
}

// ownMariaDB starts a server for one test, and returns the DSN. The server ends when its stdin is closed.
func ownMariaDB(t *testing.T) string {
	t.Helper()
	harness.MySQLDSN(t) // skips the test without a server
	cmd := exec.Command("../../../../scripts/with-mariadb", "sh", "-c", `echo "$SQLFENCE_MYSQL_DSN" && exec cat`)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SQLFENCE_MYSQL_DSN=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	var dsn string
	if _, err := fmt.Fscanln(stdout, &dsn); err != nil {
		t.Fatal(err)
	}
	return dsn
}

// A standby fails every query of a serializable session, including sqlfence's probe. This failure shows nothing about
// the server after its promotion, so the error must not claim that the server can't guard.
func TestWriteOnASerializableStandby(t *testing.T) {
	primary, standby := harness.NewServer(t, ""), harness.NewServer(t, "")
	primary.Start(t)
	for _, b := range harness.Chosen(harness.Bases[:2]) {
		db, done := primary.Open(t, b)
		harness.NewLeases(t, db)
		harness.MustExec(t, db, "CREATE TABLE IF NOT EXISTS books (id int PRIMARY KEY, fence_token bigint NOT NULL DEFAULT 0)")
		done()
		standby.Follow(t, primary)
		standby.CutOff(t, primary)
		behind := b.Fenced(t, b.AtLevel(t, standby.DSN(), sql.LevelSerializable), sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
		ctx := harness.Holding(t, 1)
		write := func() error {
			tx, err := behind.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if _, err := tx.ExecContext(ctx, "INSERT INTO books (id) VALUES (1)"); err != nil {
				return err
			}
			return tx.Commit()
		}
		_, err := behind.ExecContext(ctx, "INSERT INTO books (id) VALUES (1)")
		for how, err := range map[string]error{"alone": err, "in a transaction": write()} {
			if err == nil || errors.Is(err, sqlfence.ErrUnguardable) {
				t.Errorf("%s: %s on a standby: %v", b.Name, how, err)
			}
		}
		standby.Promote(t)
		if err := write(); err != nil {
			t.Errorf("%s: behind a promotion: %v", b.Name, err)
		}
		if err := behind.Close(); err != nil {
			t.Error(err)
		}
		standby.Stop(t)
	}
}
