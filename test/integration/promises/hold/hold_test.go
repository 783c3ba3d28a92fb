package hold_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

func TestG13HoldComparesWithTheNewestTokens(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		old := p.issue(t, "a", "b", "ü'\\")
		now := p.issue(t, "a", "b", "ü'\\")
		higher := sqlfence.Token{Name: "b", Value: now[1].Value + 1}
		carried := sqlfence.WithFence(t.Context(), now...)
		for name, test := range map[string]struct {
			ctx    context.Context
			tokens []sqlfence.Token
			want   error
		}{
			"newest":          {t.Context(), now, nil},
			"of the context":  {carried, nil, nil},
			"twice":           {t.Context(), []sqlfence.Token{now[0], now[0]}, nil},
			"an older one":    {t.Context(), []sqlfence.Token{now[0], old[1], now[2]}, sqlfence.ErrStale},
			"a higher one":    {t.Context(), []sqlfence.Token{now[0], higher}, sqlfence.ErrNotIssued},
			"unknown name":    {t.Context(), []sqlfence.Token{now[0], {Name: "c", Value: 1}}, sqlfence.ErrUnknownName},
			"none":            {t.Context(), nil, sqlfence.ErrNoFence},
			"two of one name": {t.Context(), []sqlfence.Token{now[0], old[0]}, sqlfence.ErrInvalid},
			"invalid":         {t.Context(), []sqlfence.Token{{Name: "a"}}, sqlfence.ErrInvalid},
		} {
			for _, level := range p.levels() {
				t.Run(fmt.Sprint(name, " at ", level), func(t *testing.T) {
					tx := harness.Begin(t.Context(), t, p.db, level)
					err := p.store.Hold(test.ctx, tx, test.tokens...)
					switch {
					case test.want == nil && err != nil:
						t.Fatal(err)
					case test.want != nil:
						harness.WantError(t, err, test.want)
						return
					}
					if err := write(t.Context(), tx); err != nil {
						t.Fatal(err)
					}
					if err := tx.Commit(); err != nil {
						t.Fatal(err)
					}
				})
			}
		}
		var stale *sqlfence.StaleError
		tx := harness.Begin(t.Context(), t, p.db, sql.LevelDefault)
		if err := p.store.Hold(t.Context(), tx, old[1]); !errors.As(err, &stale) || stale.Token != old[1] || stale.Current != now[1].Value {
			t.Errorf("%v", err)
		}
	})
}

func TestHoldOutsideOfATransactionIsInvalid(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		now := p.issue(t, "a")
		conn, err := p.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		want := func(name string, tx tokens.Tx, want error) {
			t.Helper()
			err := p.store.Hold(t.Context(), tx, now...)
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
		want("nil", nil, sqlfence.ErrInvalid)
		want("pool", p.db, sqlfence.ErrInvalid)
		want("wrapped pool", struct{ tokens.Tx }{p.db}, sqlfence.ErrInvalid)
		want("connection", conn, sqlfence.ErrInvalid)
		if _, err := conn.ExecContext(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
		want("begun connection", conn, nil)
		if err := write(t.Context(), conn); err != nil {
			t.Error(err)
		}
		if _, err := conn.ExecContext(t.Context(), "COMMIT"); err != nil {
			t.Error(err)
		}
		want("after its commit", conn, sqlfence.ErrInvalid)
		conn.Close()

		tx := harness.Begin(t.Context(), t, p.db, sql.LevelDefault)
		if _, err := tx.ExecContext(t.Context(), "COMMIT"); err != nil {
			t.Fatal(err)
		}
		want("transaction that a text has ended", tx, sqlfence.ErrInvalid)
		if claim := p.store.HoldClaim(t.Context(), p.db, things, 1, 3); !errors.Is(claim, sqlfence.ErrInvalid) {
			t.Errorf("claim: %v", claim)
		}
	})
}

// An endingTx ends the context of each statement, and returns no error, as glebarez's driver may do for a statement that
// it hasn't executed.
type endingTx struct {
	*sql.Tx
	cancel context.CancelFunc
}

func (tx endingTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	defer tx.cancel()
	return tx.Tx.ExecContext(context.WithoutCancel(ctx), query, args...)
}

func (tx endingTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	defer tx.cancel()
	return tx.Tx.QueryContext(context.WithoutCancel(ctx), query, args...)
}

func TestG13HoldReturnsTheErrorOfAnEndedContext(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		now := p.issue(t, "a")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		tx := harness.Begin(t.Context(), t, p.db, sql.LevelDefault)
		if err := p.store.Hold(ctx, endingTx{tx, cancel}, now...); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

var things = tokens.Claim{Table: "things", Key: "id", Column: "attempt"}

func TestHoldClaimComparesTheRow(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		for name, test := range map[string]struct {
			of     tokens.Claim
			key    any
			claim  int64
			want   error
			stored int64
		}{
			"current": {things, 1, 3, nil, 0},
			"text":    {things, "1", 3, nil, 0},
			"older":   {things, 1, 2, sqlfence.ErrStale, 3},
			"newer":   {things, 1, 4, sqlfence.ErrStale, 3},
			"gone":    {things, 9, 3, sqlfence.ErrStale, 0},
			"table":   {tokens.Claim{Table: "no such", Key: "id", Column: "attempt"}, 1, 3, sqlfence.ErrInvalid, 0},
		} {
			tx := harness.Begin(t.Context(), t, p.db, sql.LevelDefault)
			err := p.store.HoldClaim(t.Context(), tx, test.of, test.key, test.claim)
			var stale *sqlfence.StaleError
			switch {
			case !errors.Is(err, test.want):
				t.Errorf("%s: %v", name, err)
			case errors.As(err, &stale) && stale.Current != test.stored:
				t.Errorf("%s: %v", name, stale)
			}
			_ = tx.Rollback()
		}
		tx := harness.Begin(t.Context(), t, p.db, sql.LevelDefault)
		if err := p.store.HoldClaim(t.Context(), tx, things, 1, 3); err != nil {
			t.Fatal(err)
		}
		p.blocked(t, tx, func() error {
			_, err := p.plain.ExecContext(t.Context(), "UPDATE things SET attempt = attempt + 1 WHERE id = 1")
			return err
		})
	})
}

// blocked calls f, which must wait for tx, commits tx, and waits for f to end.
func (p *place) blocked(t *testing.T, tx *sql.Tx, f func() error) {
	t.Helper()
	if !p.Networked() {
		if err := f(); err == nil || !retryable(err) {
			t.Errorf("did not meet the lock: %v", err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := f(); err != nil {
			t.Errorf("after the commit: %v", err)
		}
		return
	}
	task := harness.Go(f)
	p.waitsFor(t, task)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := task.Wait(); err != nil {
		t.Errorf("after the commit: %v", err)
	}
}

// waitsFor waits until the task waits for a lock. If the task ends instead, the test fails.
func (p *place) waitsFor(t *testing.T, task *harness.Task) {
	t.Helper()
	harness.Eventually(t, "somebody waits for the lock", func() bool {
		select {
		case <-task.Ended():
			t.Error("went on without waiting for the lock")
			return true
		default:
			return p.waiting(t)
		}
	})
}

// waiting reports whether a session waits for a lock.
func (p *place) waiting(t *testing.T) bool {
	t.Helper()
	if p.DriverName == "mysql" {
		return p.Waiting(t, p.plain) > 0
	}
	var n int
	if err := p.plain.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "+
		"AND datname = current_database()").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n > 0
}

func TestG13HoldUnderASnapshotFromBeforeTheTokenIsRetried(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		p.issue(t, "a", "b")
		for _, level := range p.levels() {
			if level < sql.LevelRepeatableRead && p.Networked() {
				continue // below this level each statement has a snapshot of its own
			}
			tries := 0
			err := sqlfence.Retry(t.Context(), p.db, sqlfence.RetryOptions{Tx: &sql.TxOptions{Isolation: level}},
				func(ctx context.Context, tx *sql.Tx) error {
					tries++
					if err := tx.QueryRowContext(ctx, "SELECT token FROM fencing_tokens WHERE name = 'a'").Scan(new(int)); err != nil {
						return err
					}
					if tries == 1 && !(p.DriverName == "mysql" && level == sql.LevelSerializable) { // its read has locked the row
						if _, err := harness.NewStore(t, p.plain).Issue(ctx, "a"); err != nil {
							return err
						}
					}
					now, err := harness.NewStore(t, p.plain).Current(ctx, "a")
					if err != nil {
						return err
					}
					err = p.store.Hold(ctx, tx, now)
					if tries == 1 && err == nil && !(p.DriverName == "mysql" && level == sql.LevelSerializable) {
						t.Errorf("%v: Hold returned nil under an older snapshot", level)
					}
					return err
				})
			if err != nil {
				t.Errorf("%v: %v", level, err)
			}
		}
	})
}
