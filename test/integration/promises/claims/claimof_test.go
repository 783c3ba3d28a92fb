package claims_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	registered "github.com/sqlfence/sqlfence/internal/fenced"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/rewrite"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/verify"
)

// A keyType is a type of a queue's ids, with the form in which ids are printed.
type keyType struct {
	name, postgres, others string
	id                     func(n int64) string
}

var keyTypes = []keyType{
	{"bigint", "bigint", "bigint", func(n int64) string { return fmt.Sprint(n) }},
	{"text", "varchar(40)", "varchar(40)", func(n int64) string { return fmt.Sprintf("Job-%d", n) }},
	{"uuid", "uuid", "char(36)", func(n int64) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }},
}

// withResults returns a fenced database with a queue, the jobs' results and an outbox, and the same database without
// sqlfence.
func withResults(t *testing.T, b harness.Base, keys keyType, opts ...sqlfence.Option) (db, plain *sql.DB) {
	t.Helper()
	dsn, id := b.DSN(t), keys.others
	if b.Dialect == sqlfence.Postgres {
		id = keys.postgres
	}
	plain = b.Raw(t, dsn)
	for _, query := range []string{
		"CREATE TABLE jobs (id " + id + " PRIMARY KEY, state varchar(20), attempt bigint)",
		"CREATE TABLE results (job_id " + id + " NOT NULL, part bigint NOT NULL, note varchar(20), PRIMARY KEY (job_id, part))",
		"CREATE TABLE outbox (id bigint PRIMARY KEY, note varchar(20))",
	} {
		if _, err := plain.ExecContext(t.Context(), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	for n := int64(1); n <= 3; n++ {
		for _, query := range []string{
			fmt.Sprintf("INSERT INTO jobs (id, state, attempt) VALUES ('%s', 'run', %d)", keys.id(n), n),
			fmt.Sprintf("INSERT INTO results (job_id, part, note) VALUES ('%s', 1, 'old')", keys.id(n)),
		} {
			if _, err := plain.ExecContext(t.Context(), query); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
		}
	}
	for _, query := range []string{fmt.Sprintf("INSERT INTO jobs (id, state) VALUES ('%s', 'new')", keys.id(4)), "INSERT INTO outbox (id, note) VALUES (1, 'old')"} {
		if _, err := plain.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	opts = append(opts,
		sqlfence.WithTable("results", sqlfence.ClaimOf("jobs"), sqlfence.Key("job_id")),
		sqlfence.WithTable("outbox", sqlfence.ClaimOf("jobs")),
		sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")))
	return b.Fenced(t, dsn, opts...), plain
}

// holding returns a context with the claims of jobs, as number and generation in turn.
func holding(t *testing.T, keys keyType, jobs ...int64) context.Context {
	t.Helper()
	ctx := t.Context()
	for i := 0; i < len(jobs); i += 2 {
		token, err := sqlfence.ClaimToken("jobs", keys.id(jobs[i]), jobs[i+1])
		if err != nil {
			t.Fatal(err)
		}
		ctx = sqlfence.WithFence(ctx, token)
	}
	return ctx
}

// written returns the notes of the results and of the outbox.
func written(t *testing.T, db *sql.DB) string {
	t.Helper()
	var all []string
	for _, query := range []string{"SELECT note FROM results ORDER BY job_id, part", "SELECT note FROM outbox ORDER BY id"} {
		rows, err := db.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var note string
			if err := rows.Scan(&note); err != nil {
				t.Fatal(err)
			}
			all = append(all, note)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return strings.Join(all, " ")
}

// Each statement on the tables next to a queue has the outcome that the claims of its jobs permit.
func TestClaimOf(t *testing.T) {
	const unchanged = "old old old old"
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, keys := range keyTypes {
			db, plain := withResults(t, b, keys)
			for _, tt := range []struct {
				name   string
				claims []int64
				statement
				args    func() []any
				err     error
				unnamed bool   // too many claims, so the error doesn't name the stale one
				want    string // of the notes; empty for unchanged
			}{
				{name: "a result", claims: []int64{2, 2}, statement: statement{sql: "INSERT INTO results (job_id, part, note) VALUES ($1, 2, 'new')"},
					args: func() []any { return []any{keys.id(2)} }, want: "old old new old old"},
				{name: "a late result", claims: []int64{2, 1}, statement: statement{sql: "INSERT INTO results (job_id, part, note) VALUES ($1, 2, 'new')"},
					args: func() []any { return []any{keys.id(2)} }, err: sqlfence.ErrStale},
				{name: "a late result that breaks a constraint", claims: []int64{2, 1}, statement: statement{sql: "INSERT INTO results (job_id, part, note) VALUES ($1, 1, 'new')"},
					args: func() []any { return []any{keys.id(2)} }, err: sqlfence.ErrStale},
				{name: "a result by a claim that was never given", claims: []int64{2, 3}, statement: statement{sql: "INSERT INTO results (job_id, part, note) VALUES ($1, 2, 'new')"},
					args: func() []any { return []any{keys.id(2)} }, err: sqlfence.ErrStale},
				{name: "a result of a job that is gone", claims: []int64{9, 1}, statement: statement{sql: "INSERT INTO results (job_id, part, note) VALUES ($1, 2, 'new')"},
					args: func() []any { return []any{keys.id(9)} }, err: sqlfence.ErrStale},
				{name: "a result of a job that was never taken", claims: []int64{4, 1}, statement: statement{sql: "INSERT INTO results (job_id, part, note) VALUES ($1, 2, 'new')"},
					args: func() []any { return []any{keys.id(4)} }, err: sqlfence.ErrStale},
				{name: "a result of another job", claims: []int64{2, 2}, statement: statement{sql: "INSERT INTO results (job_id, part, note) VALUES ($1, 2, 'new')"},
					args: func() []any { return []any{keys.id(3)} }, err: sqlfence.ErrOutOfScope},
				{name: "results of several jobs", claims: []int64{3, 3, 2, 2}, statement: statement{sql: "INSERT INTO results (job_id, part, note) VALUES ($1, 2, 'new'), ($2, 2, 'new')"},
					args: func() []any { return []any{keys.id(2), keys.id(3)} }, want: "old old new old new old"},
				{name: "results of several jobs, one of them lost", claims: []int64{2, 2, 3, 2}, statement: statement{sql: "INSERT INTO results (job_id, part, note) VALUES ($1, 2, 'new'), ($2, 2, 'new')"},
					args: func() []any { return []any{keys.id(2), keys.id(3)} }, err: sqlfence.ErrStale},
				{name: "no claim", statement: statement{sql: "INSERT INTO results (job_id, part, note) VALUES ($1, 2, 'new')"},
					args: func() []any { return []any{keys.id(2)} }, err: sqlfence.ErrNoFence},
				{name: "a change", claims: []int64{1, 1}, statement: statement{sql: "UPDATE results SET note = 'new' WHERE job_id = $1"},
					args: func() []any { return []any{keys.id(1)} }, want: "new old old old"},
				{name: "a late change", claims: []int64{3, 1}, statement: statement{sql: "UPDATE results SET note = 'new' WHERE job_id = $1"},
					args: func() []any { return []any{keys.id(3)} }, err: sqlfence.ErrStale},
				{name: "a late change of nothing", claims: []int64{3, 1}, statement: statement{sql: "UPDATE results SET note = 'new' WHERE part = 7"}, err: sqlfence.ErrStale},
				{name: "a change of all", claims: []int64{1, 1}, statement: statement{sql: "UPDATE results SET note = 'new'"}, err: sqlfence.ErrOutOfScope},
				{name: "a removal", claims: []int64{1, 1}, statement: statement{sql: "DELETE FROM results WHERE job_id = $1"},
					args: func() []any { return []any{keys.id(1)} }, want: "old old old"},
				{name: "a late removal", claims: []int64{3, 1}, statement: statement{sql: "DELETE FROM results WHERE job_id = $1"},
					args: func() []any { return []any{keys.id(3)} }, err: sqlfence.ErrStale},
				{name: "a result again", claims: []int64{2, 2}, statement: statement{sql: "INSERT INTO results (job_id, part, note) VALUES ($1, 1, 'new') ON CONFLICT (job_id, part) DO UPDATE SET note = excluded.note",
					mysql: "INSERT INTO results (job_id, part, note) VALUES ($1, 1, 'new') ON DUPLICATE KEY UPDATE note = VALUES(note)"},
					args: func() []any { return []any{keys.id(2)} }, want: "old new old old"},
				{name: "a late result again", claims: []int64{2, 1}, statement: statement{sql: "INSERT INTO results (job_id, part, note) VALUES ($1, 1, 'new') ON CONFLICT (job_id, part) DO UPDATE SET note = excluded.note",
					mysql: "INSERT INTO results (job_id, part, note) VALUES ($1, 1, 'new') ON DUPLICATE KEY UPDATE note = VALUES(note)"},
					args: func() []any { return []any{keys.id(2)} }, err: sqlfence.ErrStale},
				{name: "a message", claims: []int64{1, 1, 3, 3}, statement: statement{sql: "INSERT INTO outbox (id, note) VALUES ($1, 'new'), (3, 'new')"},
					args: func() []any { return []any{2} }, want: "old old old old new new"},
				{name: "messages of a query", claims: []int64{1, 1, 3, 3}, statement: statement{sql: "INSERT INTO outbox (id, note) SELECT part + 8, 'new' FROM results r WHERE r.job_id = $1"},
					args: func() []any { return []any{keys.id(1)} }, want: "old old old old new"},
				{name: "late messages of a query", claims: []int64{1, 1, 3, 2}, statement: statement{sql: "INSERT INTO outbox (id, note) SELECT part + 8, 'new' FROM results r WHERE r.job_id = $1"},
					args: func() []any { return []any{keys.id(1)} }, err: sqlfence.ErrStale},
				{name: "a late message", claims: []int64{1, 1, 3, 2}, statement: statement{sql: "INSERT INTO outbox (id, note) VALUES ($1, 'new')"},
					args: func() []any { return []any{2} }, err: sqlfence.ErrStale},
				{name: "a message without a claim", statement: statement{sql: "DELETE FROM outbox"}, err: sqlfence.ErrNoFence},
				{name: "claims of jobs that are gone", claims: []int64{1, 1, 2, 2, 3, 3, 9, 1, 10, 1, 11, 1, 12, 1, 13, 1, 14, 1}, unnamed: true,
					statement: statement{sql: "DELETE FROM outbox"}, err: sqlfence.ErrStale},
				{name: "several claims, one of a job that is gone", claims: []int64{1, 1, 2, 2, 9, 1},
					statement: statement{sql: "DELETE FROM outbox"}, err: sqlfence.ErrStale},
				{name: "the outbox is emptied", claims: []int64{1, 1}, statement: statement{sql: "DELETE FROM outbox"}, want: "old old old"},
				{name: "a merge", claims: []int64{1, 1}, statement: statement{postgres: true, sql: "MERGE INTO outbox o USING jobs j ON o.id = j.attempt WHEN MATCHED AND j.attempt = 1 THEN UPDATE SET note = 'new'"},
					want: "old old old new"},
				{name: "a late merge", claims: []int64{1, 2}, statement: statement{postgres: true, sql: "MERGE INTO outbox o USING jobs j ON o.id = j.attempt WHEN MATCHED THEN UPDATE SET note = 'new'"},
					err: sqlfence.ErrStale},
				{name: "a write in WITH", claims: []int64{1, 1}, statement: statement{postgres: true, sql: "WITH o AS (DELETE FROM outbox RETURNING note) UPDATE results SET note = 'new' FROM o WHERE job_id = $1"},
					args: func() []any { return []any{keys.id(1)} }, want: "new old old"},
				{name: "a late write in WITH", claims: []int64{1, 2}, statement: statement{postgres: true, sql: "WITH o AS (DELETE FROM outbox RETURNING note) SELECT note FROM o"}, err: sqlfence.ErrStale},
			} {
				for _, prepared := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s, prepared %v", keys.name, tt.name, prepared), func(t *testing.T) {
						query, ctx := in(b, tt.statement), holding(t, keys, tt.claims...)
						if query == "" {
							t.Skip("the database has no such statement")
						}
						tx, err := db.BeginTx(t.Context(), nil)
						if err != nil {
							t.Fatal(err)
						}
						defer tx.Rollback()
						var args []any
						if tt.args != nil {
							args = tt.args()
						}
						err = run(ctx, tx, query, args, prepared)
						if !errors.Is(err, tt.err) {
							t.Errorf("%v, want %v", err, tt.err)
						}
						if tt.err == sqlfence.ErrStale && !tt.unnamed {
							var stale *sqlfence.StaleError
							if !errors.As(err, &stale) || !strings.HasPrefix(stale.Token.Name, "jobs/") || stale.Current == stale.Token.Value {
								t.Errorf("%+v", stale)
							}
							if strings.Contains(tt.name, "gone") != strings.Contains(err.Error(), "the row that it claims is gone") {
								t.Error(err)
							}
						}
						if err == nil {
							if err := tx.Commit(); err != nil {
								t.Fatal(err)
							}
						}
						tx.Rollback()
						want := tt.want
						if want == "" {
							want = unchanged
						}
						if got := written(t, plain); got != want {
							t.Errorf("%q, want %q", got, want)
						}
						restore(t, plain, keys)
					})
				}
			}
		}
	})
}

// in returns a statement in a database's SQL, or "" if this database can't have it.
func in(b harness.Base, s statement) string { return (&queue{Base: b}).in(s) }

func run(ctx context.Context, tx *sql.Tx, query string, args []any, prepared bool) error {
	if !prepared {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	}
	stmt, err := tx.PrepareContext(ctx, query)
	if err != nil {
		return err
	}
	defer stmt.Close()
	_, err = stmt.ExecContext(ctx, args...)
	return err
}

// restore leaves the results and the outbox as they were at first.
func restore(t *testing.T, plain *sql.DB, keys keyType) {
	t.Helper()
	queries := []string{"DELETE FROM results", "DELETE FROM outbox", "INSERT INTO outbox (id, note) VALUES (1, 'old')"}
	for n := int64(1); n <= 3; n++ {
		queries = append(queries, fmt.Sprintf("INSERT INTO results (job_id, part, note) VALUES ('%s', 1, 'old')", keys.id(n)))
	}
	for _, query := range queries {
		if _, err := plain.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
}

// lateWrites are writes for job 2, with the rows after a write that succeeds.
var lateWrites = []struct {
	statement
	late string
}{
	{statement{sql: "INSERT INTO results (job_id, part, note) VALUES (2, 2, 'new')"}, "old old new old old"},
	{statement{sql: "UPDATE results SET note = 'new' WHERE job_id = 2"}, "old new old old"},
	{statement{sql: "UPDATE outbox SET note = 'new'"}, "old old old new"},
	{statement{sql: "DELETE FROM outbox WHERE id = 1"}, "old old old"},
	{statement{sql: "INSERT INTO outbox (id, note) SELECT part + 8, 'new' FROM results WHERE job_id = 2"}, "old old old old new"},
	{statement{sql: "INSERT INTO outbox (id, note) VALUES (7, lower('NEW')), (8, lower('NEW'))"}, "old old old old new new"},
	{statement{sql: "MERGE INTO outbox o USING results r ON r.part = o.id AND r.job_id = 2 WHEN MATCHED THEN UPDATE SET note = 'new'", postgres: true}, "old old old new"},
	{statement{sql: "WITH gone AS (DELETE FROM outbox RETURNING id) SELECT id FROM gone", postgres: true}, "old old old"},
}

// A write waits while another worker takes over its job. When the takeover is committed, the write is refused. Without
// the guard's lock the write doesn't wait, and succeeds after the takeover.
func TestClaimOfJobThatIsTakenOverWhileItsResultIsWritten(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s harness.Setting) {
		db, plain := withResults(t, s.Base, keyTypes[0])
		for _, tt := range lateWrites {
			query := in(s.Base, tt.statement)
			if query == "" {
				continue
			}
			for _, locked := range []bool{true, false} {
				if !locked && s.Dialect == sqlfence.MySQL {
					continue // a write always locks what its subquery reads
				}
				restore(t, plain, keyTypes[0])
				if _, err := plain.ExecContext(t.Context(), "UPDATE jobs SET attempt = 2 WHERE id = 2"); err != nil {
					t.Fatal(err)
				}
				takeover := harness.Begin(t.Context(), t, db, s.Level)
				if _, err := takeover.ExecContext(t.Context(), "UPDATE jobs SET attempt = attempt + 1 WHERE id = 2"); err != nil {
					t.Fatal(err)
				}
				from, text := db, query
				if !locked {
					from, text = plain, unlocked(t, s.Base, query)
				}
				late := harness.Begin(t.Context(), t, from, s.Level)
				var seen int64 // this query takes the snapshot
				if err := late.QueryRowContext(t.Context(), "SELECT count(*) FROM outbox").Scan(&seen); err != nil {
					t.Fatal(err)
				}
				waiting := harness.Go(func() error {
					_, err := late.ExecContext(holding(t, keyTypes[0], 2, 2), text)
					return err
				})
				if locked {
					harness.Eventually(t, "the write waits for the takeover", func() bool {
						select {
						case <-waiting.Ended():
							t.Fatalf("%s didn't wait: %v", query, waiting.Wait())
						default:
						}
						return s.Waiting(t, plain) > 0
					})
				} else if err := waiting.Wait(); err != nil {
					t.Fatalf("%s without the lock: %v", query, err)
				}
				if err := takeover.Commit(); err != nil {
					t.Fatal(err)
				}
				err := waiting.Wait()
				byIsolation := s.Level > sql.LevelReadCommitted && harness.RefusedByIsolation(err)
				if locked && !byIsolation && !errors.Is(err, sqlfence.ErrStale) {
					t.Errorf("%s: %v, want ErrStale", query, err)
				}
				failed := late.Commit()
				byIsolation = byIsolation || s.Level > sql.LevelReadCommitted && harness.RefusedByIsolation(failed)
				if failed != nil && err == nil && !byIsolation {
					t.Error(failed)
				}
				want := "old old old old"
				if !locked && !byIsolation {
					want = tt.late
				}
				if got := written(t, plain); got != want {
					t.Errorf("%s, locked %v: %q, want %q", query, locked, got, want)
				}
			}
		}
	})
}

// unlocked returns a statement with the guard for the claim of job 2, without the part that locks the job.
func unlocked(t *testing.T, b harness.Base, query string) string {
	t.Helper()
	claims := guard.Claims{Name: "jobs", Key: "id", Claim: "attempt"}
	r, err := rewrite.New(b.Dialect, []rewrite.Table{{Name: "outbox", Ledger: true, ClaimOf: claims}, {Name: "results", Ledger: true, Key: "job_id", ClaimOf: claims}})
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := r.Plan(query).Render(rewrite.Values{Literal: true, Tables: []rewrite.TableValues{{Tokens: []rewrite.Token{{Name: "jobs/2", Key: "2", Value: 2}}}}})
	if err != nil {
		t.Fatal(err)
	}
	without := strings.NewReplacer(" FOR SHARE OF sqlfence_claimed", "", " LOCK IN SHARE MODE", "").Replace(text)
	if without == text {
		t.Fatalf("no lock in %s", text)
	}
	return without
}

// A takeover waits for the transaction that has written with the old claim.
func TestTakeoverWaitsForTheWriteThatPresentedTheClaim(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s harness.Setting) {
		db, plain := withResults(t, s.Base, keyTypes[0])
		for _, tt := range lateWrites {
			query := in(s.Base, tt.statement)
			if query == "" {
				continue
			}
			restore(t, plain, keyTypes[0])
			if _, err := plain.ExecContext(t.Context(), "UPDATE jobs SET attempt = 2 WHERE id = 2"); err != nil {
				t.Fatal(err)
			}
			tx := harness.Begin(t.Context(), t, db, s.Level)
			if _, err := tx.ExecContext(holding(t, keyTypes[0], 2, 2), query); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			takeover := harness.Go(func() error {
				_, err := db.ExecContext(t.Context(), "UPDATE jobs SET attempt = attempt + 1 WHERE id = 2")
				return err
			})
			harness.Eventually(t, "the takeover waits for the write", func() bool {
				select {
				case <-takeover.Ended():
					t.Fatalf("%s: the takeover didn't wait: %v", query, takeover.Wait())
				default:
				}
				return s.Waiting(t, plain) > 0
			})
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := takeover.Wait(); err != nil {
				t.Fatal(err)
			}
			if got := written(t, plain); got != tt.late {
				t.Errorf("%s: %q, want %q", query, got, tt.late)
			}
		}
	})
}

// Each mode and rule either refuses a write without a current claim or lets it pass, and reports the write as an event.
func TestClaimOfInEachMode(t *testing.T) {
	const query = "UPDATE results SET note = 'new' WHERE job_id = 2"
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, tt := range []struct {
			name  string
			rules []sqlfence.Rule
			ctx   func(ctx context.Context) context.Context
			err   error
			event sqlfence.EventKind
		}{
			{name: "a claim", ctx: func(ctx context.Context) context.Context { return with(t, ctx, 2) }, event: sqlfence.Guarded},
			{name: "a late write", ctx: func(ctx context.Context) context.Context { return with(t, ctx, 1) }, err: sqlfence.ErrStale, event: sqlfence.Refused},
			{name: "no claim", err: sqlfence.ErrNoFence, event: sqlfence.Refused},
			{name: "Optional, no claim", rules: []sqlfence.Rule{sqlfence.Optional()}, event: sqlfence.Unfenced},
			{name: "Optional, a late write", rules: []sqlfence.Rule{sqlfence.Optional()},
				ctx: func(ctx context.Context) context.Context { return with(t, ctx, 1) }, err: sqlfence.ErrStale, event: sqlfence.Refused},
			{name: "observed, no claim", rules: []sqlfence.Rule{sqlfence.InMode(sqlfence.Observe)}, event: sqlfence.WouldRefuse},
			{name: "observed, a late write", rules: []sqlfence.Rule{sqlfence.InMode(sqlfence.Observe)},
				ctx: func(ctx context.Context) context.Context { return with(t, ctx, 1) }, event: sqlfence.WouldRefuse},
			{name: "bypassed", ctx: func(ctx context.Context) context.Context { return sqlfence.Bypass(ctx, "a test") }, event: sqlfence.Bypassed},
			{name: "a takeover of other rows", ctx: sqlfence.WithTakeover, err: sqlfence.ErrNoFence, event: sqlfence.Refused},
		} {
			t.Run(tt.name, func(t *testing.T) {
				var events []sqlfence.EventKind
				b.AsWritten = true
				dsn := b.DSN(t)
				plain := b.Raw(t, dsn)
				for _, query := range []string{
					"CREATE TABLE jobs (id bigint PRIMARY KEY, attempt bigint)", "INSERT INTO jobs (id, attempt) VALUES (2, 2)",
					"CREATE TABLE results (job_id bigint PRIMARY KEY, note varchar(20))", "INSERT INTO results (job_id, note) VALUES (2, 'old')",
				} {
					if _, err := plain.ExecContext(t.Context(), query); err != nil {
						t.Fatalf("%s: %v", query, err)
					}
				}
				db := b.Fenced(t, dsn,
					sqlfence.WithTable("results", append(tt.rules, sqlfence.ClaimOf("jobs"), sqlfence.Key("job_id"))...),
					sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")),
					sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { events = append(events, e.Kind) },
						sqlfence.Guarded, sqlfence.Refused, sqlfence.Unfenced, sqlfence.WouldRefuse, sqlfence.Bypassed))
				ctx := t.Context()
				if tt.ctx != nil {
					ctx = tt.ctx(ctx)
				}
				if _, err := db.ExecContext(ctx, query); !errors.Is(err, tt.err) {
					t.Errorf("%v, want %v", err, tt.err)
				}
				if len(events) != 1 || events[0] != tt.event {
					t.Errorf("events %v, want %v", events, tt.event)
				}
				var note string
				if err := plain.QueryRowContext(t.Context(), "SELECT note FROM results").Scan(&note); err != nil || (note == "new") != (tt.err == nil) {
					t.Errorf("%s, %v", note, err)
				}
				found, err := harness.Verify(t.Context(), db)
				for _, f := range found {
					if f.Level > slog.LevelInfo {
						t.Error(f)
					}
				}
				settings, unfenced := registered.SettingsOf("", db)
				if err != nil || unfenced != nil || settings.Tables()[0].ClaimOf != "jobs" || settings.Tables()[0].Resource != "jobs" {
					t.Errorf("%v, %v", err, unfenced)
				}
				shown, err := sqlfence.Explain(db, query)
				if err != nil || shown.Kind != sqlfence.Guarded || !strings.Contains(shown.SQL, "attempt") {
					t.Errorf("%+v, %v", shown, err)
				}
			})
		}
	})
}

// with returns a context with the claim of job 2 at a generation.
func with(t *testing.T, ctx context.Context, generation int64) context.Context {
	t.Helper()
	token, err := sqlfence.ClaimToken("jobs", 2, generation)
	if err != nil {
		t.Fatal(err)
	}
	return sqlfence.WithFence(ctx, token)
}

// verify.Check reports that a write has no index to find its claim, and names the privilege that the role lacks.
func TestClaimOfIsVerified(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		b.AsWritten = true
		for _, tt := range []struct{ key, index, want string }{
			{key: "id bigint PRIMARY KEY"},
			{key: "id bigint NOT NULL", want: "begins no index"},
			{key: "id bigint NOT NULL", index: "CREATE INDEX by_id ON jobs (id, attempt)"},
			{key: "id bigint NOT NULL", index: "CREATE INDEX by_attempt ON jobs (attempt, id)", want: "begins no index"},
		} {
			dsn := b.DSN(t)
			plain := b.Raw(t, dsn)
			queries := []string{
				"CREATE TABLE jobs (" + tt.key + ", attempt bigint NOT NULL DEFAULT 0)", "CREATE TABLE results (job_id bigint PRIMARY KEY)",
			}
			if tt.index != "" {
				queries = append(queries, tt.index)
			}
			for _, query := range queries {
				if _, err := plain.ExecContext(t.Context(), query); err != nil {
					t.Fatalf("%s: %v", query, err)
				}
			}
			db := b.Fenced(t, dsn, sqlfence.WithTable("results", sqlfence.ClaimOf("jobs"), sqlfence.Key("job_id")),
				sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")))
			found, err := harness.Verify(t.Context(), db)
			if err != nil {
				t.Fatal(err)
			}
			found = slices.DeleteFunc(found, func(f verify.Finding) bool { return f.Level == slog.LevelInfo })
			switch {
			case tt.want == "" && len(found) == 0:
			case tt.want == "" || len(found) != 1 || !strings.Contains(found[0].Problem, tt.want) || found[0].Table != "results":
				t.Errorf("%s; %s: %v, want %q", tt.key, tt.index, found, tt.want)
			default:
				if _, err := plain.ExecContext(t.Context(), found[0].SQL); err != nil {
					t.Errorf("%s: %v", found[0].SQL, err)
				}
			}
		}
	})
}
