package claims_test

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
)

// fenced returns a database with a queue's jobs, whose claims are compared, and the same database without sqlfence.
func fenced(t *testing.T, b harness.Base, opts ...sqlfence.Option) (db, plain *sql.DB) {
	t.Helper()
	dsn := b.DSN(t)
	plain = b.Raw(t, dsn)
	for _, query := range []string{
		"CREATE TABLE jobs (id bigint PRIMARY KEY, state varchar(20) NOT NULL, attempt bigint)",
		"INSERT INTO jobs (id, state, attempt) VALUES (1, 'run', 1), (2, 'run', 2), (3, 'run', 3), (4, 'new', 0), (5, 'new', NULL)",
	} {
		if _, err := plain.ExecContext(t.Context(), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	opts = append(opts, sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")))
	return b.Fenced(t, dsn, opts...), plain
}

// claimed returns a context with the claims of jobs, as id and generation in turn.
func claimed(t *testing.T, jobs ...int64) context.Context {
	t.Helper()
	ctx := t.Context()
	for i := 0; i < len(jobs); i += 2 {
		token, err := sqlfence.ClaimToken("jobs", jobs[i], jobs[i+1])
		if err != nil {
			t.Fatal(err)
		}
		ctx = sqlfence.WithFence(ctx, token)
	}
	return ctx
}

// Each statement of a queue, as database/sql sends it, has the result that its claims allow.
func TestClaimsDecideEachStatement(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, tt := range []struct {
			name  string
			ctx   func(t *testing.T) context.Context
			query string
			args  []any
			err   error
			want  string // of the jobs; empty for unchanged
		}{
			{name: "rows are taken without a token", query: "UPDATE jobs SET state = 'run', attempt = COALESCE(attempt, 0) + 1 WHERE state = 'new'",
				want: "1 run 1, 2 run 2, 3 run 3, 4 run 1, 5 run 1"},
			{name: "a takeover that doesn't raise", query: "UPDATE jobs SET state = 'run', attempt = 3 WHERE id > $1", args: []any{1}, err: sqlfence.ErrConflict},
			{name: "a takeover that assigns NULL", query: "UPDATE jobs SET attempt = NULL WHERE id = $1", args: []any{1}, err: sqlfence.ErrConflict},
			{name: "the holder completes", ctx: func(t *testing.T) context.Context { return claimed(t, 2, 2) },
				query: "UPDATE jobs SET state = 'done' WHERE id = $1", args: []any{2}, want: "1 run 1, 2 done 2, 3 run 3, 4 new 0, 5 new NULL"},
			{name: "one statement for several", ctx: func(t *testing.T) context.Context { return claimed(t, 2, 2, 3, 3) },
				query: "UPDATE jobs SET state = 'done' WHERE id IN (2, 3)", want: "1 run 1, 2 done 2, 3 done 3, 4 new 0, 5 new NULL"},
			{name: "one of several was taken over", ctx: func(t *testing.T) context.Context { return claimed(t, 2, 2, 3, 2) },
				query: "UPDATE jobs SET state = 'done' WHERE id IN (2, 3)", err: sqlfence.ErrStale},
			{name: "the one who was replaced", ctx: func(t *testing.T) context.Context { return claimed(t, 3, 2) },
				query: "UPDATE jobs SET state = 'done' WHERE id = $1 AND state = 'run'", args: []any{3}, err: sqlfence.ErrStale},
			{name: "a claim that was never given", ctx: func(t *testing.T) context.Context { return claimed(t, 3, 4) },
				query: "UPDATE jobs SET state = 'done' WHERE id = $1", args: []any{3}, err: sqlfence.ErrStale},
			{name: "a row that is another's", ctx: func(t *testing.T) context.Context { return claimed(t, 2, 2) },
				query: "UPDATE jobs SET state = 'done' WHERE id = $1", args: []any{3}, err: sqlfence.ErrOutOfScope},
			{name: "without a claim", query: "UPDATE jobs SET state = 'done' WHERE id = $1", args: []any{3}, err: sqlfence.ErrNoFence},
			{name: "a delete by the holder", ctx: func(t *testing.T) context.Context { return claimed(t, 1, 1) },
				query: "DELETE FROM jobs WHERE id = $1", args: []any{1}, want: "2 run 2, 3 run 3, 4 new 0, 5 new NULL"},
			{name: "a delete by the one who was replaced", ctx: func(t *testing.T) context.Context { return claimed(t, 3, 1) },
				query: "DELETE FROM jobs WHERE id = $1", args: []any{3}, err: sqlfence.ErrStale},
			{name: "a new row", query: "INSERT INTO jobs (id, state, attempt) VALUES ($1, 'new', 0)", args: []any{6},
				want: jobs + ", 6 new 0"},
			{name: "a rescuer that sets a state", ctx: func(t *testing.T) context.Context { return sqlfence.WithTakeover(t.Context()) },
				query: "UPDATE jobs SET state = 'new' WHERE state = 'run'", want: "1 new 2, 2 new 3, 3 new 4, 4 new 0, 5 new NULL"},
			{name: "the holder takes its own row", ctx: func(t *testing.T) context.Context { return claimed(t, 2, 2) },
				query: "UPDATE jobs SET state = 'new', attempt = attempt + 1 WHERE id = $1", args: []any{2}, want: "1 run 1, 2 new 3, 3 run 3, 4 new 0, 5 new NULL"},
			{name: "the one who was replaced takes the row", ctx: func(t *testing.T) context.Context { return claimed(t, 2, 1) },
				query: "UPDATE jobs SET state = 'new', attempt = attempt + 1 WHERE id = $1", args: []any{2}, err: sqlfence.ErrStale},
			{name: "the one who was replaced takes all rows", ctx: func(t *testing.T) context.Context { return claimed(t, 1, 1, 2, 1) },
				query: "UPDATE jobs SET state = 'new', attempt = COALESCE(attempt, 0) + 1", err: sqlfence.ErrStale},
			{name: "a takeover by a claim that was never given", ctx: func(t *testing.T) context.Context { return claimed(t, 2, 3) },
				query: "UPDATE jobs SET state = 'new', attempt = attempt + 1 WHERE id = $1", args: []any{2}, err: sqlfence.ErrNotIssued},
			{name: "a takeover beside a claim of another row", ctx: func(t *testing.T) context.Context { return claimed(t, 2, 1) },
				query: "UPDATE jobs SET state = 'new', attempt = attempt + 1 WHERE id = $1", args: []any{3}, want: "1 run 1, 2 run 2, 3 new 4, 4 new 0, 5 new NULL"},
			{name: "a rescuer that was replaced", ctx: func(t *testing.T) context.Context { return sqlfence.WithTakeover(claimed(t, 2, 1)) },
				query: "UPDATE jobs SET state = 'new' WHERE id = $1", args: []any{2}, err: sqlfence.ErrStale},
			{name: "a rescuer that deletes", ctx: func(t *testing.T) context.Context { return sqlfence.WithTakeover(t.Context()) },
				query: "DELETE FROM jobs WHERE state = 'run'", err: sqlfence.ErrUnguardable},
		} {
			for _, prepared := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, prepared %v", tt.name, prepared), func(t *testing.T) {
					db, plain := fenced(t, b)
					ctx := t.Context()
					if tt.ctx != nil {
						ctx = tt.ctx(t)
					}
					exec := func() error {
						if !prepared {
							_, err := db.ExecContext(ctx, tt.query, tt.args...)
							return err
						}
						stmt, err := db.PrepareContext(ctx, tt.query)
						if err != nil {
							return err
						}
						defer stmt.Close()
						_, err = stmt.ExecContext(ctx, tt.args...)
						return err
					}
					if err := exec(); !errors.Is(err, tt.err) {
						t.Errorf("%v, want %v", err, tt.err)
					}
					want := tt.want
					if want == "" {
						want = jobs
					}
					if got := state(t, plain); got != want {
						t.Errorf("the jobs are %s, want %s", got, want)
					}
				})
			}
		}
	})
}

// The errors' fields have the values of the row.
func TestClaimErrors(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		db, _ := fenced(t, b)
		_, err := db.ExecContext(claimed(t, 3, 2), "UPDATE jobs SET state = 'done' WHERE id = 3")
		var stale *sqlfence.StaleError
		if !errors.As(err, &stale) || stale.Table != "jobs" || stale.Token != (sqlfence.Token{Name: "jobs/3", Value: 2}) || stale.Current != 3 {
			t.Errorf("%v", err)
		}
		_, err = db.ExecContext(t.Context(), "UPDATE jobs SET attempt = 3 WHERE id = 3")
		var conflict *sqlfence.ConflictError
		if !errors.As(err, &conflict) || conflict.Table != "jobs" || !conflict.Assigned || conflict.Current != 3 || !strings.HasPrefix(err.Error(), "sqlfence: claim not raised:") {
			t.Errorf("%v", err)
		}
		var notIssued *sqlfence.NotIssuedError
		_, err = db.ExecContext(claimed(t, 3, 4), "UPDATE jobs SET attempt = attempt + 1 WHERE id = 3")
		if !errors.As(err, &notIssued) || notIssued.Table != "jobs" || notIssued.Token != (sqlfence.Token{Name: "jobs/3", Value: 4}) || notIssued.Current != 3 || strings.Contains(err.Error(), "Adopt") {
			t.Errorf("%v", err)
		}
		for _, tt := range []struct {
			ctx   context.Context
			query string
			says  []string
		}{
			{t.Context(), "UPDATE jobs SET state = 'done' WHERE id = 3", []string{"jobs/<id>", "ClaimToken", `raise the column "attempt"`, "WithTakeover"}},
			{claimed(t, 2, 2), "UPDATE jobs SET state = 'done' WHERE id = 3", []string{"jobs/3", "ClaimToken", `raising the column "attempt"`}},
			{claimed(t, 5, 1), "UPDATE jobs SET state = 'done' WHERE id = 5", []string{"the row's claim is 0"}},
		} {
			_, err := db.ExecContext(tt.ctx, tt.query)
			for _, says := range tt.says {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("%s: %v, want %q in it", tt.query, err, says)
				}
			}
		}
	})
}

// In Observe mode no write is refused, and each write that Enforce mode would refuse is reported.
func TestClaimsAreObserved(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, tt := range []struct {
			name, query string
			ctx         func(t *testing.T) context.Context
			err         error
		}{
			{"no claim", "UPDATE jobs SET state = 'done' WHERE id = 3", (*testing.T).Context, sqlfence.ErrNoFence},
			{"an old claim", "UPDATE jobs SET state = 'done' WHERE id = 3", func(t *testing.T) context.Context { return claimed(t, 3, 2) }, sqlfence.ErrStale},
			{"a row that is another's", "UPDATE jobs SET state = 'done' WHERE id = 3", func(t *testing.T) context.Context { return claimed(t, 2, 2) }, sqlfence.ErrOutOfScope},
			{"a takeover that doesn't raise", "UPDATE jobs SET state = 'done', attempt = 3 WHERE id = 3", (*testing.T).Context, sqlfence.ErrConflict},
			{"a takeover with an old claim", "UPDATE jobs SET attempt = attempt + 1 WHERE id = 3", func(t *testing.T) context.Context { return claimed(t, 3, 2) }, sqlfence.ErrStale},
			{"a takeover with a claim that was never given", "UPDATE jobs SET attempt = attempt + 1 WHERE id = 3", func(t *testing.T) context.Context { return claimed(t, 3, 4) }, sqlfence.ErrNotIssued},
			{"a rescuer with an old claim", "UPDATE jobs SET state = 'new' WHERE id = 3", func(t *testing.T) context.Context { return sqlfence.WithTakeover(claimed(t, 3, 2)) }, sqlfence.ErrStale},
			{"a rescuer that deletes", "DELETE FROM jobs WHERE id = 3", func(t *testing.T) context.Context { return sqlfence.WithTakeover(t.Context()) }, sqlfence.ErrUnguardable},
		} {
			t.Run(tt.name, func(t *testing.T) {
				var events []sqlfence.Event
				db, plain := fenced(t, b, sqlfence.WithMode(sqlfence.Observe), sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) {
					events = append(events, e)
				}))
				if _, err := db.ExecContext(tt.ctx(t), tt.query); err != nil {
					t.Error(err)
				}
				if len(events) == 0 || events[0].Kind != sqlfence.WouldRefuse || !errors.Is(events[0].Err, tt.err) {
					t.Errorf("events %v", events)
				}
				if got := state(t, plain); got == jobs {
					t.Error("the write didn't land")
				}
			})
		}
	})
}

// A claim column that isn't an integer causes a specific error, because the column's value can't be compared with the
// token, even if both look alike.
func TestClaimColumnOfAnotherType(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		typ := "numeric(10,2)"
		if b.Dialect == sqlfence.SQLite {
			typ = "text" // it stores a decimal of whole numbers as integers
		}
		dsn := b.DSN(t)
		plain := b.Raw(t, dsn)
		for _, query := range []string{
			"CREATE TABLE jobs (id bigint PRIMARY KEY, state varchar(20), attempt " + typ + ")", "INSERT INTO jobs (id, attempt) VALUES (2, '2.00')",
			"CREATE TABLE results (job_id bigint PRIMARY KEY)",
		} {
			if _, err := plain.ExecContext(t.Context(), query); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
		}
		db := b.Fenced(t, dsn, sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")), sqlfence.WithTable("results", sqlfence.ClaimOf("jobs")))
		for _, query := range []string{"UPDATE jobs SET state = 'done' WHERE id = $1", "INSERT INTO results (job_id) VALUES ($1)"} {
			_, err := db.ExecContext(claimed(t, 2, 2), query, 2)
			var refused *sqlfence.UnguardableError
			if !errors.As(err, &refused) || refused.Column != "attempt" || errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("%s: %v", query, err)
			}
			if _, err := db.ExecContext(claimed(t, 2, 1), query, 2); err == nil {
				t.Errorf("%s lands with another claim", query)
			}
		}
	})
}

// A takeover reaches the driver by the same calls, whatever claims its context has: with arguments, without, and
// prepared.
func TestTakeoverIsSentOnce(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		dsn := b.DSN(t)
		plain := b.Raw(t, dsn)
		for _, query := range []string{
			"CREATE TABLE jobs (id bigint PRIMARY KEY, state varchar(20) NOT NULL, attempt bigint)", "INSERT INTO jobs (id, state, attempt) VALUES (1, 'run', 1)",
		} {
			if _, err := plain.ExecContext(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
		db, c := b.Counted(t, dsn, sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")))
		db.SetMaxOpenConns(1)
		for name, send := range map[string]func(context.Context) error{
			"arguments": func(ctx context.Context) error {
				_, err := db.ExecContext(ctx, "UPDATE jobs SET attempt = attempt + 1 WHERE id = $1", 1)
				return err
			},
			"none": func(ctx context.Context) error {
				_, err := db.ExecContext(ctx, "UPDATE jobs SET attempt = attempt + 1 WHERE id = 1")
				return err
			},
			"prepared": func(ctx context.Context) error {
				stmt, err := db.PrepareContext(ctx, "UPDATE jobs SET attempt = attempt + 2 WHERE id = $1")
				if err != nil {
					return err
				}
				defer stmt.Close()
				if _, err = stmt.ExecContext(ctx, 9); err != nil { // no row has this key
					return err
				}
				_, err = stmt.ExecContext(ctx, 1)
				return err
			},
		} {
			var kinds [2][]string
			for i := range kinds {
				var claim int64
				if err := plain.QueryRowContext(t.Context(), "SELECT attempt FROM jobs WHERE id = 1").Scan(&claim); err != nil {
					t.Fatal(err)
				}
				ctx := t.Context()
				if i == 1 {
					ctx = claimed(t, 1, claim)
				}
				for range 2 { // the second time it is known
					c.Reset()
					if err := send(ctx); err != nil && !(i == 1 && errors.Is(err, sqlfence.ErrStale)) {
						t.Errorf("%s: %v", name, err)
					}
				}
				for _, call := range c.Calls() {
					kinds[i] = append(kinds[i], call.Kind)
				}
			}
			if !slices.Equal(kinds[0], kinds[1]) {
				t.Errorf("%s: %v without a claim, %v with one", name, kinds[0], kinds[1])
			}
		}
	})
}
