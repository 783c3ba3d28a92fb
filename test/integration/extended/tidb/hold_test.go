package tidb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// An attempt is what a transaction compares before it writes, and how another session outdates the comparison.
type attempt struct {
	check  func(ctx context.Context, tx *sql.Tx) error
	outdid func(ctx context.Context) error
}

// holderSteps are those of a transaction; another session outdates its token before one of them, or after the last.
var holderSteps = []string{"begin", "read", "hold", "write", "commit"}

// late executes the holder's steps, with the other session's statement before the step number at. It returns whether
// the transaction began to commit after that statement had succeeded, and committed.
func late(t *testing.T, plain, db *sql.DB, at int, h attempt) (landed, waited bool) {
	t.Helper()
	ctx := t.Context()
	var tx *sql.Tx
	var other *harness.Task
	ended := func() bool {
		select {
		case <-other.Ended():
			return true
		default:
			return false
		}
	}
	for i, step := range append(slices.Clone(holderSteps), "end") {
		if i == at {
			other = harness.Go(func() error { return h.outdid(ctx) })
			harness.Eventually(t, "the other session's statement returns or waits", func() bool {
				return ended() || waiting(t, plain)
			})
			waited = !ended()
		}
		outdated := other != nil && ended() && other.Wait() == nil
		var err error
		switch step {
		case "begin":
			tx, err = db.BeginTx(ctx, nil)
		case "read":
			err = tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM pens").Scan(new(int))
		case "hold":
			err = h.check(ctx, tx)
		case "write":
			_, err = tx.ExecContext(ctx, "INSERT INTO shelf VALUES (666)")
		case "commit":
			err = tx.Commit()
			landed = outdated && err == nil
		}
		if err != nil {
			if temporary := (interface{ Temporary() bool })(nil); !errors.Is(err, sqlfence.ErrStale) && !gaveUp(err) &&
				!errors.As(err, &temporary) {
				t.Errorf("%s: %v", step, err)
			}
			if tx != nil {
				_ = tx.Rollback()
			}
			break
		}
	}
	if other != nil && other.Wait() != nil {
		t.Errorf("the other session: %v", other.Wait())
	}
	return landed, waited
}

// waiting reports whether a statement waits for a lock, or for the commit of another transaction, twice in a row.
func waiting(t *testing.T, plain *sql.DB) bool {
	t.Helper()
	for range 2 {
		var n int
		if err := plain.QueryRow(countWaiting).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return false
		}
	}
	return true
}

// A transaction that holds its tokens never commits once another session has got a newer one, in any kind of session,
// whether its pool is fenced or not, and whatever it writes.
func TestHoldInEveryOrder(t *testing.T) {
	dsn, plain := setup(t)
	exec(t, plain, "CREATE TABLE shelf (n bigint)")
	store := harness.NewStore(t, open(t, dsn))
	if err := store.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	many := []string{"books"}
	for i := range 9 {
		many = append(many, fmt.Sprint("pens/", 9-i))
	}
	claim := func(ctx context.Context) error {
		_, err := plain.ExecContext(ctx, "UPDATE pens SET price = price + 1 WHERE id = 1")
		return err
	}
	orders, waits, caught := 0, 0, 0
	for _, s := range slices.Concat(sessions, others, uncommitted) {
		fenced := s.fence(t, dsn, sqlfence.RowFence("fence_token"))
		if fenced == nil {
			t.Logf("%s: not on this server", s.name)
			continue
		}
		for pool, db := range map[string]*sql.DB{"fenced": fenced, "plain": open(t, s.with(t, dsn))} {
			holder := harness.NewStore(t, db)
			for _, names := range [][]string{many[:1], many} {
				for at := range len(holderSteps) + 1 {
					held, err := store.IssueMany(t.Context(), names...)
					if err != nil {
						t.Fatal(err)
					}
					issue := func(ctx context.Context) error {
						_, err := store.Issue(ctx, names[len(names)-1])
						return err
					}
					landed, waited := late(t, plain, db, at, attempt{
						func(ctx context.Context, tx *sql.Tx) error { return holder.Hold(ctx, tx, held...) }, issue})
					if orders++; waited {
						waits++
					}
					if landed {
						t.Errorf("%s, %s, %d names: A TRANSACTION WITH AN OLDER TOKEN COMMITTED: token issued before %q", s.name,
							pool, len(names), strings.Join(holderSteps[at:], ", "))
					}
				}
			}
			for at := range len(holderSteps) + 1 {
				exec(t, plain, "REPLACE INTO pens VALUES (1, 7)")
				landed, waited := late(t, plain, db, at, attempt{
					func(ctx context.Context, tx *sql.Tx) error {
						return holder.HoldClaim(ctx, tx, tokens.Claim{Table: "pens", Key: "id", Column: "price"}, 1, 7)
					}, claim})
				if orders++; waited {
					waits++
				}
				if landed {
					t.Errorf("%s, %s: A TRANSACTION WITH AN OLDER CLAIM COMMITTED: row claimed before %q", s.name, pool,
						strings.Join(holderSteps[at:], ", "))
				}
				// The control compares without a lock.
				exec(t, plain, "REPLACE INTO pens VALUES (1, 7)")
				if landed, _ := late(t, plain, db, at, attempt{
					func(ctx context.Context, tx *sql.Tx) error {
						return tx.QueryRowContext(ctx, "SELECT price FROM pens WHERE id = 1").Scan(new(int))
					}, claim}); landed {
					caught++
				}
			}
		}
	}
	if caught == 0 {
		t.Error("the control without a lock never committed with an older claim")
	}
	t.Logf("%d orders, %d of them with a wait; the control committed late %d times", orders, waits, caught)
}

// Hold's errors are those of MySQL.
func TestHoldRefuses(t *testing.T) {
	dsn, plain := setup(t)
	for name, db := range map[string]*sql.DB{"fenced": fence(t, dsn, sqlfence.RowFence("fence_token")), "plain": plain} {
		t.Run(name, func(t *testing.T) {
			store := harness.NewStore(t, db)
			if err := store.Setup(t.Context()); err != nil {
				t.Fatal(err)
			}
			older, err := store.Issue(t.Context(), "books")
			if err != nil {
				t.Fatal(err)
			}
			early := harness.Begin(t.Context(), t, db, sql.LevelDefault)
			defer early.Rollback()
			if err := early.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM pens").Scan(new(int)); err != nil {
				t.Fatal(err)
			}
			token, err := store.Issue(t.Context(), "books")
			if err != nil {
				t.Fatal(err)
			}
			snapshot := (interface{ Temporary() bool })(nil)
			if err := store.Hold(t.Context(), early, token); !errors.As(err, &snapshot) {
				t.Errorf("under a snapshot from before the token: %v, want a temporary error", err)
			}
			if err := early.Rollback(); err != nil {
				t.Fatal(err)
			}
			claims := tokens.Claim{Table: "pens", Key: "id", Column: "price"}
			in := func(do func(tx *sql.Tx) error) error {
				tx := harness.Begin(t.Context(), t, db, sql.LevelDefault)
				defer tx.Rollback()
				return do(tx)
			}
			hold := func(token sqlfence.Token) error {
				return in(func(tx *sql.Tx) error { return store.Hold(t.Context(), tx, token) })
			}
			claim := func(key any, value int64) error {
				return in(func(tx *sql.Tx) error { return store.HoldClaim(t.Context(), tx, claims, key, value) })
			}
			if name == "fenced" { // an unfenced pool doesn't know what ends the lock
				for _, query := range []string{"ALTER TABLE pens ADD COLUMN c int", "EXPLAIN ANALYZE ALTER TABLE pens ADD COLUMN c int"} {
					err := in(func(tx *sql.Tx) error {
						if err := store.Hold(t.Context(), tx, token); err != nil {
							return err
						}
						_, err := tx.ExecContext(t.Context(), query)
						return err
					})
					if !errors.Is(err, sqlfence.ErrUnguardable) {
						t.Errorf("%s after Hold: %v, want a refusal", query, err)
					}
				}
			}
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			newer := token
			newer.Value++
			for _, c := range []struct {
				what string
				err  error
				want error
			}{
				{"the newest token", hold(token), nil},
				{"an older token", hold(older), sqlfence.ErrStale},
				{"a token that was never issued", hold(newer), sqlfence.ErrNotIssued},
				{"an unknown name", hold(sqlfence.Token{Name: "pens", Value: 1}), sqlfence.ErrUnknownName},
				{"outside of a transaction", store.Hold(t.Context(), conn, token), sqlfence.ErrInvalid},
				{"a pool", store.Hold(t.Context(), db, token), sqlfence.ErrInvalid},
				{"the stored claim", claim(1, 11), nil},
				{"an older claim", claim(1, 10), sqlfence.ErrStale},
				{"a row that doesn't exist", claim(99, 1), sqlfence.ErrStale},
				{"a claim outside of a transaction", store.HoldClaim(t.Context(), conn, claims, 1, 11), sqlfence.ErrInvalid},
			} {
				if !errors.Is(c.err, c.want) {
					t.Errorf("%s: %v, want %v", c.what, c.err, c.want)
				}
			}
		})
	}
}
