package sealed_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// claimed is the table jobs at the beginning of each test.
const claimed = "1:run@3 2:run@5 3:new@0 4:new@NULL"

// newQueue creates the table jobs, and seals it.
func newQueue(t testing.TB, b harness.Base, options ...sqlfence.SealOption) *lab {
	t.Helper()
	l := newUnsealedQueue(t, b, options...)
	l.seal(t)
	return l
}

func newUnsealedQueue(t testing.TB, b harness.Base, options ...sqlfence.SealOption) *lab {
	t.Helper()
	dsn := b.DSN(t)
	l := &lab{Base: b, dsn: dsn, plain: b.Raw(t, dsn)}
	l.exec(t, "CREATE TABLE jobs (id integer PRIMARY KEY, state varchar(20), attempt integer)")
	l.exec(t, "INSERT INTO jobs VALUES (1, 'run', 3), (2, 'run', 5), (3, 'new', 0), (4, 'new', NULL)")
	l.db = b.Fenced(t, dsn, sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt"), sqlfence.Sealed(options...)))
	return l
}

// jobsOf returns the rows of the table.
func jobsOf(t testing.TB, db harness.Reader) string {
	t.Helper()
	return strings.Join(harness.Jobs(t, db, "%d:%s@%s"), " ")
}

func (l *lab) jobs(t testing.TB) string { return jobsOf(t, l.plain) }

func (l *lab) wantJobs(t testing.TB, jobs string) {
	t.Helper()
	if got := l.jobs(t); got != jobs {
		t.Errorf("jobs are %s, want %s", got, jobs)
	}
}

// claims returns a context with the claims of rows: keys and generations in turn.
func claims(t testing.TB, of ...int64) context.Context {
	ctx := t.Context()
	for i := 0; i < len(of); i += 2 {
		ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: "jobs/" + strconv.FormatInt(of[i], 10), Value: of[i+1]})
	}
	return ctx
}

// A program in another language writes to a sealed queue. A takeover and a new row need no token; every other write
// must present the row's claim.
func TestBareWritesOfASealedQueue(t *testing.T) {
	proof := map[sqlfence.Dialect]string{
		sqlfence.Postgres: "set_config('sqlfence.delete_jobs', '{}', true) IS NOT NULL",
		sqlfence.MySQL:    "LENGTH(@sqlfence_delete := CONCAT('jobs:', NOW(6), ':', '{}')) > 0",
	}
	eachBase(t, func(t *testing.T, b harness.Base) {
		l := newQueue(t, b)
		for _, test := range []struct {
			query string
			code  sqlfenceCode // of the refusal; none if the write succeeds
			jobs  string
		}{
			{"UPDATE jobs SET state = 'late' WHERE id = 1", notProven, ""},
			{"UPDATE jobs SET state = 'late', attempt = attempt WHERE id = 1", notProven, ""},
			{"UPDATE jobs SET state = 'late', attempt = 2 WHERE id = 1", notProven, ""},
			{"UPDATE jobs SET state = 'late', attempt = 0 WHERE id = 1", notProven, ""},
			{"UPDATE jobs SET state = 'late', attempt = NULL WHERE id = 1", notProven, ""},
			{"UPDATE jobs SET state = 'late' WHERE id = 3", notProven, ""},
			{"UPDATE jobs SET state = 'late', attempt = 0 WHERE id = 4", notProven, ""},
			{"UPDATE jobs SET state = 'late', attempt = -2 WHERE id = 1", staleProof, ""},
			{"UPDATE jobs SET state = 'late', attempt = -4 WHERE id = 1", staleProof, ""},
			{"UPDATE jobs SET state = 'late', attempt = -3 WHERE id IN (1, 2)", staleProof, ""},
			{"UPDATE jobs SET state = 'late', attempt = attempt + 1 - 1 WHERE id IN (1, 2)", notProven, ""},
			{"INSERT INTO jobs VALUES (9, 'late', -1)", anyRefusal, ""},
			{"DELETE FROM jobs WHERE id = 1", notProven, ""},
			{"DELETE FROM jobs WHERE id = 3", notProven, ""},
			{"DELETE FROM jobs WHERE id = 1 AND {2}", staleProof, ""},
			{"DELETE FROM jobs WHERE id IN (1, 2) AND {3}", staleProof, ""},
			{"DELETE FROM jobs WHERE id = 3 AND {0}", anyRefusal, ""},

			{"UPDATE jobs SET state = 'done', attempt = -3 WHERE id = 1", lands, "1:done@3 2:run@5 3:new@0 4:new@NULL"},
			{"UPDATE jobs SET state = 'done', attempt = CASE id WHEN 1 THEN -3 ELSE -5 END WHERE id IN (1, 2)", lands, "1:done@3 2:done@5 3:new@0 4:new@NULL"},
			{"UPDATE jobs SET state = 'run', attempt = attempt + 1 WHERE id < 4", lands, "1:run@4 2:run@6 3:run@1 4:new@NULL"},
			{"UPDATE jobs SET state = 'run', attempt = 1 WHERE id = 4", lands, "1:run@3 2:run@5 3:new@0 4:run@1"},
			{"INSERT INTO jobs VALUES (5, 'new', 7), (6, 'new', NULL)", lands, claimed + " 5:new@7 6:new@NULL"},
			{"DELETE FROM jobs WHERE id = 1 AND {3}", lands, "2:run@5 3:new@0 4:new@NULL"},
			{"DELETE FROM jobs WHERE id IN (1, 2) AND {3,5}", lands, "3:new@0 4:new@NULL"},
		} {
			query := test.query
			if at := strings.IndexByte(query, '{'); at >= 0 {
				query = query[:at] + strings.ReplaceAll(proof[b.Dialect], "{}", query[at+1:len(query)-1])
			}
			tx, err := l.plain.Begin()
			if err != nil {
				t.Fatal(err)
			}
			_, err = tx.Exec(query)
			switch {
			case test.code == lands && err != nil, !test.code.is(err):
				t.Errorf("%s: %v", query, err)
			case test.code == lands:
				if got := jobsOf(t, tx); got != test.jobs {
					t.Errorf("%s: jobs are %s, want %s", query, got, test.jobs)
				}
			}
			_ = tx.Rollback()
			l.wantJobs(t, claimed)
		}
	})
}

// A sqlfenceCode is the code of a seal's refusal.
type sqlfenceCode string

const (
	lands      sqlfenceCode = ""
	notProven  sqlfenceCode = "FT001 51001"
	staleProof sqlfenceCode = "FT002 51002"
	anyRefusal sqlfenceCode = "FT001 51001 FT002 51002 FT003 51003"
)

// is reports whether an error has one of the codes.
func (c sqlfenceCode) is(err error) bool {
	if c == lands || err == nil {
		return c == lands && err == nil
	}
	code := harness.SQLState(err)
	var numbered *mysql.MySQLError
	if errors.As(err, &numbered) {
		code = strconv.Itoa(int(numbered.Number))
	}
	return code != "" && strings.Contains(string(c), code)
}

// An UPDATE of a sealed queue assigns each possible claim. It succeeds only in three cases: it increases the claim, and
// the transaction has no other claim of the row; it assigns the negative of the row's claim; or it keeps a claim that
// the transaction holds.
func TestEveryClaimThatIsAssigned(t *testing.T) {
	eachBase(t, func(t *testing.T, b harness.Base) {
		held := []int{-1} // claims in the transaction's tokens; -1: no tokens are set
		var options []sqlfence.SealOption
		if b.Dialect == sqlfence.Postgres {
			held = append(held, 0, 1, 2, 3)
			options = append(options, sqlfence.FromTransaction())
		}
		l := newQueue(t, b, options...)
		conn, err := l.plain.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		run := func(query string) error {
			_, err := conn.ExecContext(t.Context(), query)
			return err
		}
		const null = -9
		id, landed, refused := 10, 0, 0
		for _, stored := range []int{null, 0, 1, 2} {
			for _, assigned := range []int{null, -3, -2, -1, 0, 1, 2, 3, 99} { // 99 leaves the claim out of SET
				for _, token := range held {
					id++
					literal := func(n int) string {
						if n == null {
							return "NULL"
						}
						return strconv.Itoa(n)
					}
					if err := run(fmt.Sprintf("INSERT INTO jobs VALUES (%d, 'run', %s)", id, literal(stored))); err != nil {
						t.Fatal(err)
					}
					set, becomes := ", attempt = "+literal(assigned), assigned
					if assigned == 99 {
						set, becomes = "", stored
					}
					old, keeps := max(stored, 0), becomes == stored && stored != null
					want := stored
					takes := becomes > old && (token < 0 || token == old)
					lands := takes || becomes < 0 && becomes != null && -becomes == old || keeps && old > 0 && token == old
					if lands {
						want = max(becomes, -becomes)
					}
					statements := []string{"BEGIN", fmt.Sprintf("UPDATE jobs SET state = 'done'%s WHERE id = %d", set, id), "COMMIT"}
					if token >= 0 {
						list := fmt.Sprintf("SELECT set_config('sqlfence.tokens', concat('jobs/%d:%015d ', txid_current()), true)", id, token)
						statements = slices.Insert(statements, 1, list)
					}
					var err error
					for _, query := range statements {
						if err = run(query); err != nil {
							_ = run("ROLLBACK")
							break
						}
					}
					var state string
					var attempt sql.NullInt64
					if err := conn.QueryRowContext(t.Context(), fmt.Sprint("SELECT state, attempt FROM jobs WHERE id = ", id)).Scan(&state, &attempt); err != nil {
						t.Fatal(err)
					}
					got := null
					if attempt.Valid {
						got = int(attempt.Int64)
					}
					if (err == nil) != lands || (state == "done") != lands || got != want {
						t.Errorf("%s where it is %s, with the token %d: %v, %s@%s", set, literal(stored), token, err, state, literal(got))
					}
					if lands {
						landed++
					} else {
						refused++
					}
				}
			}
		}
		t.Log(landed, "landed,", refused, "refused")
	})
}

// Guarded statements present their claims to the seal. For the application their results are as without the seal.
func TestGuardedWritesOfASealedQueue(t *testing.T) {
	eachBase(t, func(t *testing.T, b harness.Base) {
		for _, name := range []string{"sealed", "not yet", "not any more"} {
			t.Run(name, func(t *testing.T) {
				l := newUnsealedQueue(t, b)
				if name != "not yet" {
					l.seal(t)
				}
				if name == "not any more" {
					if err := schema.Unseal(t.Context(), l.db); err != nil {
						t.Fatal(err)
					}
				}
				over := sqlfence.WithTakeover(t.Context())
				for _, test := range []struct {
					query string
					ctx   context.Context
					want  error
					jobs  string
				}{
					{"UPDATE jobs SET state = 'done' WHERE id = 1", claims(t, 1, 3), nil, "1:done@3 2:run@5 3:new@0 4:new@NULL"},
					{"UPDATE jobs SET state = 'done' WHERE id < 3", claims(t, 1, 3, 2, 5), nil, "1:done@3 2:done@5 3:new@0 4:new@NULL"},
					{"UPDATE jobs SET state = 'late' WHERE id = 1", claims(t, 1, 2), sqlfence.ErrStale, claimed},
					{"UPDATE jobs SET state = 'late' WHERE id < 3", claims(t, 1, 3, 2, 4), sqlfence.ErrStale, claimed},
					{"UPDATE jobs SET state = 'late' WHERE id < 3", claims(t, 1, 3), sqlfence.ErrOutOfScope, claimed},
					{"UPDATE jobs SET state = 'late' WHERE id = 1", t.Context(), sqlfence.ErrNoFence, claimed},
					{"DELETE FROM jobs WHERE id = 1", claims(t, 1, 3), nil, "2:run@5 3:new@0 4:new@NULL"},
					{"DELETE FROM jobs WHERE id < 3", claims(t, 1, 3, 2, 5), nil, "3:new@0 4:new@NULL"},
					{"DELETE FROM jobs WHERE id < 3", claims(t, 1, 3, 2, 6), sqlfence.ErrStale, claimed},
					{"UPDATE jobs SET state = 'run', attempt = attempt + 1 WHERE state = 'new' AND attempt IS NOT NULL", t.Context(), nil, "1:run@3 2:run@5 3:run@1 4:new@NULL"},
					{"UPDATE jobs SET state = 'run', attempt = COALESCE(attempt, 0) + 1 WHERE state = 'new'", t.Context(), nil, "1:run@3 2:run@5 3:run@1 4:run@1"},
					{"UPDATE jobs SET state = 'queued' WHERE state = 'run'", over, nil, "1:queued@4 2:queued@6 3:new@0 4:new@NULL"},
					{"UPDATE jobs SET attempt = attempt WHERE id = 1", t.Context(), sqlfence.ErrConflict, claimed},
					{"INSERT INTO jobs (id, state) VALUES (5, 'new')", t.Context(), nil, claimed + " 5:new@NULL"},
					{"INSERT INTO jobs (id, state, attempt) VALUES (1, 'late', 0) {upsert} state = 'late'", claims(t, 1, 2), sqlfence.ErrStale, claimed},
					{"INSERT INTO jobs (id, state, attempt) VALUES (1, 'done', 0) {upsert} state = 'done'", claims(t, 1, 3), nil, "1:done@3 2:run@5 3:new@0 4:new@NULL"},
					{"INSERT INTO jobs (id, state, attempt) VALUES (1, 'run', 0) {upsert} state = 'run', attempt = jobs.attempt + 1", t.Context(), nil, "1:run@4 2:run@5 3:new@0 4:new@NULL"},
				} {
					upsert := "ON CONFLICT (id) DO UPDATE SET"
					if b.Dialect == sqlfence.MySQL {
						upsert = "ON DUPLICATE KEY UPDATE"
					}
					query := strings.ReplaceAll(test.query, "{upsert}", upsert)
					tx, err := l.db.Begin()
					if err != nil {
						t.Fatal(err)
					}
					_, err = tx.ExecContext(test.ctx, query)
					if !errors.Is(err, test.want) || test.want == nil && err != nil {
						t.Errorf("%s: %v, want %v", query, err, test.want)
					}
					if err == nil {
						if got := jobsOf(t, tx); got != test.jobs {
							t.Errorf("%s: jobs are %s, want %s", query, got, test.jobs)
						}
					}
					_ = tx.Rollback()
					l.wantJobs(t, claimed)
				}
			})
		}
	})
}

// A transaction's claims fence the transaction's statements without claims.
func TestClaimsOfATransaction(t *testing.T) {
	const set = "SELECT set_config('sqlfence.tokens', concat('jobs/1:000000000000003 jobs/2:000000000000005 ', txid_current()), true)"
	stale := strings.Replace(set, "000003", "000002", 1)
	for _, b := range harness.Chosen(postgres) {
		t.Run(b.Name, func(t *testing.T) {
			l := newQueue(t, b, sqlfence.FromTransaction())
			for _, test := range []struct {
				set, query string
				code       sqlfenceCode
				jobs       string
			}{
				{stale, "UPDATE jobs SET state = 'late' WHERE id = 1", staleProof, ""},
				{stale, "DELETE FROM jobs WHERE id < 3", staleProof, ""},
				{stale, "UPDATE jobs SET state = 'late', attempt = attempt + 1 WHERE id = 1", staleProof, ""},
				{stale, "UPDATE jobs SET state = 'late', attempt = 9", staleProof, ""},
				{stale, "INSERT INTO jobs VALUES (1, 'x', 0) ON CONFLICT (id) DO UPDATE SET state = 'late', attempt = jobs.attempt + 1", staleProof, ""},
				{stale, "UPDATE jobs SET state = 'run', attempt = attempt + 1 WHERE id = 2", lands, "1:run@3 2:run@6 3:new@0 4:new@NULL"},
				{set, "UPDATE jobs SET state = 'late' WHERE id = 3", notProven, ""},
				{set, "UPDATE jobs SET state = 'late', attempt = 2 WHERE id = 1", notProven, ""},
				{set, "UPDATE jobs SET state = 'late', attempt = NULL WHERE id = 1", notProven, ""},
				{set, "UPDATE jobs SET state = 'done' WHERE id < 3", lands, "1:done@3 2:done@5 3:new@0 4:new@NULL"},
				{set, "DELETE FROM jobs WHERE id < 3", lands, "3:new@0 4:new@NULL"},
				{set, "INSERT INTO jobs VALUES (1, 'x', 0) ON CONFLICT (id) DO UPDATE SET state = 'done'", lands, "1:done@3 2:run@5 3:new@0 4:new@NULL"},
				{set, "UPDATE jobs SET state = 'run', attempt = attempt + 1 WHERE id IN (1, 3)", lands, "1:run@4 2:run@5 3:run@1 4:new@NULL"},
			} {
				err := l.send(t, "BEGIN", test.set, test.query, "COMMIT")
				if !test.code.is(err) {
					t.Errorf("%s: %v", test.query, err)
				}
				if test.code != lands {
					l.wantJobs(t, claimed)
					continue
				}
				l.wantJobs(t, test.jobs)
				l = newQueue(t, b, sqlfence.FromTransaction())
			}
		})
	}
}

// Rows of a sealed queue keep their claims when they move between partitions, in a takeover and under a presented
// claim.
func TestPartitionsOfASealedQueue(t *testing.T) {
	for _, b := range harness.Chosen(postgres) {
		t.Run(b.Name, func(t *testing.T) {
			dsn := b.DSN(t)
			l := &lab{Base: b, dsn: dsn, plain: b.Raw(t, dsn)}
			for _, query := range []string{
				"CREATE TABLE jobs (id integer, state varchar(20), attempt integer) PARTITION BY LIST (state)",
				"CREATE TABLE jobs_new PARTITION OF jobs FOR VALUES IN ('new')",
				"CREATE TABLE jobs_run PARTITION OF jobs FOR VALUES IN ('run')",
				"CREATE TABLE jobs_done PARTITION OF jobs FOR VALUES IN ('done')",
				"INSERT INTO jobs VALUES (1, 'new', 0), (2, 'run', 5)",
			} {
				l.exec(t, query)
			}
			l.db = b.Fenced(t, dsn, sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt"), sqlfence.Sealed()))
			l.seal(t)
			if _, err := l.db.ExecContext(t.Context(), "UPDATE jobs SET state = 'run', attempt = attempt + 1 WHERE id = 1"); err != nil {
				t.Fatal(err)
			}
			l.wantJobs(t, "1:run@1 2:run@5")
			if _, err := l.db.ExecContext(claims(t, 1, 1, 2, 4), "UPDATE jobs SET state = 'done'"); !errors.Is(err, sqlfence.ErrStale) {
				t.Errorf("a stale claim: %v", err)
			}
			if _, err := l.db.ExecContext(claims(t, 1, 1, 2, 5), "UPDATE jobs SET state = 'done'"); err != nil {
				t.Fatal(err)
			}
			l.wantJobs(t, "1:done@1 2:done@5")
			for query, code := range map[string]sqlfenceCode{
				"UPDATE jobs SET state = 'new' WHERE id = 1":               notProven,
				"UPDATE jobs SET state = 'new', attempt = -2 WHERE id = 1": staleProof,
				"DELETE FROM jobs_done WHERE id = 1":                       notProven,
				"WITH u AS (UPDATE jobs SET attempt = attempt + 1 WHERE id = 1 RETURNING 1) DELETE FROM jobs USING u WHERE jobs.id = 2":                                            notProven,
				"MERGE INTO jobs USING (VALUES (1), (2)) AS v (i) ON id = i WHEN MATCHED AND id = 1 THEN UPDATE SET attempt = attempt + 1 WHEN MATCHED THEN DELETE":                notProven,
				"MERGE INTO jobs USING (VALUES (1), (2)) AS v (i) ON id = i WHEN MATCHED AND id = 1 THEN UPDATE SET attempt = attempt + 1, state = 'new' WHEN MATCHED THEN DELETE": notProven,
				"UPDATE jobs_done SET state = 'done', attempt = 0 WHERE id = 1":                                                                                                    notProven,
			} {
				if harness.Lacks(t, l.plain, query) {
					continue
				}
				if _, err := l.plain.Exec(query); !code.is(err) {
					t.Errorf("%s: %v", query, err)
				}
			}
			l.wantJobs(t, "1:done@1 2:done@5")
		})
	}
}

// Each part of a queue's seal is needed: without it a write lands that the seal must refuse.
func TestSealOfAQueueCanFail(t *testing.T) {
	pgx, mysql := bases[1], bases[2]
	for _, test := range []struct {
		base     harness.Base
		name     string
		old, new string // in the SQL that Seal sends
		attack   string // statements, separated by " ;; "
	}{
		{pgx, "the comparison of an update", `pg_catalog.int8eq(pg_catalog.int8um(NEW."attempt"), COALESCE(`, `pg_catalog.int8ge(pg_catalog.int8um(NEW."attempt"), COALESCE(`,
			"UPDATE jobs SET state = 'late', attempt = -4 WHERE id = 1"},
		{pgx, "the rise of a takeover", `pg_catalog.int8gt(NEW."attempt", COALESCE(pg_catalog.int8abs(OLD."attempt"), 0))`, `pg_catalog.int8ge(NEW."attempt", 0)`,
			"UPDATE jobs SET state = 'late' WHERE id = 1"},
		{pgx, "the comparison of a delete", `pg_catalog.concat(',', stored, ',')`, `','`,
			"DELETE FROM jobs WHERE id = 1 AND set_config('sqlfence.delete_jobs', '2', true) IS NOT NULL"},
		{pgx, "a claim of the transaction's that is kept", `pg_catalog.int8eq(NEW."attempt", OLD."attempt"), false)`, `true)`,
			"BEGIN ;; SELECT set_config('sqlfence.tokens', concat('jobs/1:000000000000003 ', txid_current()), true) ;; UPDATE jobs SET state = 'late', attempt = 1 WHERE id = 1 ;; COMMIT"},
		{mysql, "the comparison of an update", "NOT (-NEW.`attempt` <> ", "NOT (-NEW.`attempt` < ",
			"UPDATE jobs SET state = 'late', attempt = -4 WHERE id = 1"},
		{mysql, "the rise of a takeover", "COALESCE(NEW.`attempt` > ABS(", "COALESCE(NEW.`attempt` >= ABS(",
			"UPDATE jobs SET state = 'late' WHERE id = 1"},
		{mysql, "the comparison of a delete", "FIND_IN_SET(held, proof) > 0", "TRUE",
			"DELETE FROM jobs WHERE id = 1 AND LENGTH(@sqlfence_delete := CONCAT('jobs:', NOW(6), ':2')) > 0"},
	} {
		t.Run(test.base.Name+"/"+test.name, func(t *testing.T) {
			for _, whole := range []bool{true, false} {
				var options []sqlfence.SealOption
				if test.base.Dialect == sqlfence.Postgres {
					options = append(options, sqlfence.FromTransaction())
				}
				l := newUnsealedQueue(t, test.base, options...)
				if whole {
					l.seal(t)
				} else {
					l.sealWithout(t, test.old, test.new)
				}
				conn, err := l.plain.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for query := range strings.SplitSeq(test.attack, " ;; ") {
					_, _ = conn.ExecContext(t.Context(), query)
				}
				_, _ = conn.ExecContext(t.Context(), "ROLLBACK")
				_ = conn.Close()
				if changed := l.jobs(t) != claimed; changed == whole {
					t.Errorf("seal whole: %v, jobs are %s", whole, l.jobs(t))
				}
			}
		})
	}
}

// sealWithout seals the table again, with a text replaced in Seal's statements.
func (l *lab) sealWithout(t testing.TB, old, new string) {
	t.Helper()
	plans, err := schema.SealSQL(l.db)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(plans[0].Statements, " ;; ")
	if !strings.Contains(text, old) {
		t.Fatalf("the seal has no %s", old)
	}
	conn, err := l.plain.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for query := range strings.SplitSeq(strings.ReplaceAll(text, old, new), " ;; ") {
		if _, err := conn.ExecContext(t.Context(), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
}

// verify.Check accepts a queue's complete seal and reports an incomplete one. A table with ClaimOf reads the claims of
// a sealed queue as of any queue.
func TestAroundASealedQueue(t *testing.T) {
	eachBase(t, func(t *testing.T, b harness.Base) {
		l := newQueue(t, b)
		wantSeal := func(code string) {
			t.Helper()
			findings, err := harness.Verify(t.Context(), l.db)
			if err != nil {
				t.Fatal(err)
			}
			found := ""
			for _, f := range findings {
				if f.Code == "wrong-seal" {
					found = f.Code
					if code == "" {
						t.Error(f)
					}
				}
			}
			if found != code {
				t.Errorf("verify.Check finds %q, want %q", found, code)
			}
		}
		wantSeal("")

		l.exec(t, "CREATE TABLE results (job_id integer PRIMARY KEY, body varchar(20))")
		results := b.Fenced(t, l.dsn, sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt"), sqlfence.Sealed()),
			sqlfence.WithTable("results", sqlfence.ClaimOf("jobs"), sqlfence.Key("job_id")))
		const insert = "INSERT INTO results (job_id, body) VALUES (1, 'x')"
		if _, err := results.ExecContext(claims(t, 1, 2), insert); !errors.Is(err, sqlfence.ErrStale) {
			t.Errorf("a result of a stale claim: %v", err)
		}
		if _, err := results.ExecContext(claims(t, 1, 3), insert); err != nil {
			t.Error(err)
		}
		l.wantJobs(t, claimed)

		drop := `DROP TRIGGER "~sqlfence_write" ON jobs`
		if b.Dialect == sqlfence.MySQL {
			var name string
			if err := l.plain.QueryRowContext(t.Context(), "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE() AND event_manipulation = 'UPDATE'").Scan(&name); err != nil {
				t.Fatal(err)
			}
			drop = "DROP TRIGGER `" + name + "`"
		}
		l.exec(t, drop)
		wantSeal("wrong-seal")
	})
}
