package hold_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

func (p *place) leases(t *testing.T, db *sql.DB) *lease.Leases {
	t.Helper()
	leases, err := lease.New(db, harness.Patient())
	if err == nil {
		err = leases.Setup(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return leases
}

func (p *place) n(t *testing.T) (n int) {
	t.Helper()
	if err := p.plain.QueryRowContext(t.Context(), "SELECT n FROM things WHERE id = 1").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLeaseTxCommitsUnderItsToken(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		leases := p.leases(t, p.db)
		err := leases.Tx(t.Context(), "job", func(ctx context.Context, tx *sql.Tx) error {
			l, ok := lease.FromContext(ctx)
			token, carried := sqlfence.FenceFrom(ctx, "job")
			if !ok || !carried || l.Token() != token || l.Key() != "job" {
				t.Errorf("lease %v of the context, token %v", l, token)
			}
			return write(ctx, tx)
		})
		if err != nil || p.n(t) != 1 {
			t.Errorf("%v; n = %d", err, p.n(t))
		}
		if _, ok, err := leases.Lookup(t.Context(), "job"); ok || err != nil {
			t.Errorf("not released: %v", err)
		}
		if _, ok := lease.FromContext(t.Context()); ok {
			t.Error("a context without a lease has one")
		}
		failed := errors.New("failed")
		err = leases.Tx(t.Context(), "job", func(ctx context.Context, tx *sql.Tx) error {
			return errors.Join(write(ctx, tx), failed)
		})
		if !errors.Is(err, failed) || p.n(t) != 1 {
			t.Errorf("%v; n = %d", err, p.n(t))
		}
	})
}

// If the function returns a temporary error, Tx runs it again under the same lease.
func TestLeaseTxRunsAgain(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		var held []sqlfence.Token
		err := p.leases(t, p.db).Tx(t.Context(), "job", func(ctx context.Context, tx *sql.Tx) error {
			l, _ := lease.FromContext(ctx)
			if held = append(held, l.Token()); len(held) < 3 {
				return errors.Join(write(ctx, tx), temporary{})
			}
			return write(ctx, tx)
		})
		if err != nil || p.n(t) != 1 || len(held) != 3 || held[0] != held[2] {
			t.Errorf("%v; n = %d; %v", err, p.n(t), held)
		}
	})
}

type temporary struct{}

func (temporary) Error() string   { return "temporary" }
func (temporary) Temporary() bool { return true }

// A newer token is issued before the transaction holds the older one. Nothing is written, and f isn't called.
func TestLeaseTxOfAReplacedHolder(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		other := p.leases(t, p.plain)
		began := 0
		err := p.leases(t, p.db).Tx(t.Context(), "job", func(ctx context.Context, tx *sql.Tx) error {
			if began++; began > 1 {
				t.Error("called under an older token")
			}
			if err := tx.Rollback(); err != nil { // as after a lost connection
				return err
			}
			if _, err := harness.NewStore(t, p.plain).Issue(ctx, "job"); err != nil {
				return err
			}
			return temporary{}
		})
		if !errors.Is(err, sqlfence.ErrStale) {
			t.Error(err)
		}
		_ = other
	})
}

// The loss of the lease ends the context of the work.
func TestLeaseTxIsCancelledByTheLoss(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		leases := p.leases(t, p.db)
		if p.DriverName == "sqlite3" || p.DriverName == "sqlite" {
			t.Skip("heartbeats wait for the writer")
		}
		err := leases.Tx(t.Context(), "job", func(ctx context.Context, tx *sql.Tx) error {
			if err := write(ctx, tx); err != nil {
				return err
			}
			l, _ := lease.FromContext(ctx)
			if err := leases.Release(t.Context(), l.LockID()); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}, lease.TTL(time.Second), lease.Heartbeat(50*time.Millisecond))
		if !errors.Is(err, sqlfence.ErrStale) || !errors.Is(err, lease.ErrLeaseLost) || errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if p.n(t) != 0 {
			t.Error("committed")
		}
	})
}

// A reader delays the COMMIT until the lease has ended. The transaction is committed under the newest token, so Tx must
// not report it as stale.
func TestLeaseTxThatCommitsAfterTheLeasesEnd(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		if p.Networked() {
			t.Skip("of SQLite's rollback journal")
		}
		dsn := strings.ReplaceAll(p.dsn, "WAL", "DELETE")
		dsn = strings.Replace(dsn, ".db", "-journal.db", 1)
		own := *p
		own.plain = p.Raw(t, dsn)
		own.exec(t, "CREATE TABLE things (id integer PRIMARY KEY, n integer NOT NULL)")
		own.exec(t, "INSERT INTO things (id, n) VALUES (1, 0)")
		db := own.plain
		if isFenced(p) {
			db = p.Fenced(t, dsn)
		}
		err := own.leases(t, db).Tx(t.Context(), "job", func(ctx context.Context, tx *sql.Tx) error {
			reader := harness.Begin(t.Context(), t, own.plain, sql.LevelDefault)
			if err := errors.Join(write(ctx, tx), reader.QueryRow("SELECT n FROM things").Scan(new(int))); err != nil {
				return err
			}
			context.AfterFunc(ctx, func() { _ = reader.Rollback() })
			return nil
		}, lease.TTL(time.Second))
		if err != nil || own.n(t) != 1 {
			t.Errorf("%v; n = %d", err, own.n(t))
		}
	})
}

// If the response to an executed COMMIT is lost, the outcome is unknown, and the transaction isn't run again.
func TestLeaseTxWithALostAnswer(t *testing.T) {
	for name, open := range map[string]func(b harness.Base, t testing.TB, dsn string) *sql.DB{
		"raw":    func(b harness.Base, t testing.TB, dsn string) *sql.DB { return b.Raw(t, dsn) },
		"fenced": func(b harness.Base, t testing.TB, dsn string) *sql.DB { return b.Fenced(t, dsn, harness.Books()) },
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.MySQL
			network := new(harness.Faulty)
			p := newPlace(t, b, func(t testing.TB, dsn string) *sql.DB { return open(b, t, network.DSN(t, dsn)) })
			leases, calls := p.leases(t, p.db), 0
			err := leases.Tx(t.Context(), "job", func(ctx context.Context, tx *sql.Tx) error {
				calls++
				network.Arm(harness.Closed, func(_ byte, text []byte) bool { return strings.EqualFold(string(text), "COMMIT") })
				return write(ctx, tx)
			})
			if !errors.Is(err, sqlfence.ErrUnknownOutcome) || calls != 1 || p.n(t) != 1 {
				t.Errorf("%v after %d calls; n = %d", err, calls, p.n(t))
			}
		})
	}
}
