package recipes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/examples/internal/scratch"
	"github.com/sqlfence/sqlfence/examples/internal/servers"
	"github.com/sqlfence/sqlfence/examples/internal/sqlite"
)

// A jobsDB is the database of docs/jobs.md. SQLite gets a statement without the clause that it doesn't have.
type jobsDB struct {
	*sql.DB
	driver string
}

func (db jobsDB) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if db.driver == sqlite.Driver {
		query = strings.Replace(query, "FOR UPDATE SKIP LOCKED", "", 1)
	}
	return db.DB.QueryContext(ctx, query, args...)
}

// onJobs runs a test of docs/jobs.md on SQLite and PostgreSQL, with the jobs 1 and 2.
func onJobs(t *testing.T, test func(t *testing.T, db jobsDB)) {
	for name, dsn := range map[string]func(*testing.T) string{
		"sqlite": func(*testing.T) string { return "" }, "pgx": servers.PostgresURL,
	} {
		t.Run(name, func(t *testing.T) {
			check := checking(t)
			source, err := scratch.New(t.Context(), "jobs", dsn(t))
			check(err)
			defer func() { check(source.Drop()) }()
			driver, dsn := source.Driver, source.DSN
			db, err := sqlfence.Open(driver, dsn,
				sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("claim")))
			check(err)
			check(db.Close())
			db = func() *sql.DB {
				db, err := sqlfence.Open(driver, dsn,
					sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("claim")),
					sqlfence.WithTable("results", sqlfence.ClaimOf("jobs"), sqlfence.Key("job_id")),
					sqlfence.WithTable("outbox", sqlfence.ClaimOf("jobs")))
				check(err)
				return db
			}()
			defer db.Close()
			for _, query := range []string{
				`CREATE TABLE jobs (id bigint PRIMARY KEY, state varchar(10) NOT NULL DEFAULT 'queued', heartbeat timestamp,
					attempt integer NOT NULL DEFAULT 0 CHECK (attempt <= 2), cancel boolean NOT NULL DEFAULT false,
					claim bigint NOT NULL DEFAULT 0)`,
				"CREATE TABLE results (job_id bigint, note varchar(10))", "CREATE TABLE outbox (message varchar(10))",
				"INSERT INTO jobs (id) VALUES (1), (2)",
			} {
				_, err := db.ExecContext(t.Context(), query)
				check(err)
			}
			test(t, jobsDB{db, driver})
		})
	}
}

// take takes all queued jobs, and returns a context with their claims.
func (db jobsDB) take(ctx context.Context, t *testing.T) context.Context {
	t.Helper()
	check := checking(t)
	rows, err := db.QueryContext(ctx, `UPDATE jobs SET state = 'running', claim = claim + 1
		WHERE id IN (SELECT id FROM jobs WHERE state = 'queued' ORDER BY id LIMIT 10 FOR UPDATE SKIP LOCKED)
		RETURNING id, claim`)
	check(err)
	return presenting(ctx, t, rows)
}

// presenting returns a context with the claims of rows that have the id and the claim of jobs, and closes the rows.
func presenting(ctx context.Context, t *testing.T, rows *sql.Rows) context.Context {
	t.Helper()
	check := checking(t)
	defer rows.Close()
	for rows.Next() {
		var id, claim int64
		check(rows.Scan(&id, &claim))
		token, err := sqlfence.ClaimToken("jobs", id, claim)
		check(err)
		ctx = sqlfence.WithFence(ctx, token)
	}
	check(rows.Err())
	return ctx
}

func (db jobsDB) exec(ctx context.Context, t *testing.T, query string, args ...any) {
	t.Helper()
	_, err := db.ExecContext(ctx, query, args...)
	checking(t)(err)
}

// wantJob compares a job's state, attempt and claim.
func (db jobsDB) wantJob(t *testing.T, id int64, want string) {
	t.Helper()
	var got string
	err := db.QueryRowContext(t.Context(), `SELECT state || ' ' || attempt || ' ' || claim FROM jobs WHERE id = $1`, id).Scan(&got)
	if err != nil || got != want {
		t.Errorf("job %d is %s, %v; want %s", id, got, err, want)
	}
}

func wantLate(t *testing.T, db jobsDB, late context.Context) {
	t.Helper()
	_, err := db.ExecContext(late, `UPDATE jobs SET state = 'done' WHERE id = 1`)
	wantStale(t, err)
}

func TestJobs(t *testing.T) {
	onJobs(t, func(t *testing.T, db jobsDB) {
		late := db.take(t.Context(), t)
		db.exec(sqlfence.WithTakeover(t.Context()), t, `UPDATE jobs SET state = 'queued' WHERE id = 1`)
		write := func(ctx context.Context, id int64) (err error) {
			token, _ := sqlfence.FenceFrom(ctx, fmt.Sprintf("jobs/%d", id))
			ctx = t.Context()
			ctx = sqlfence.WithFence(ctx, token)
			_, err = db.ExecContext(ctx, `UPDATE jobs SET state = 'done' WHERE id = $1`, id)
			if errors.Is(err, sqlfence.ErrStale) {
				return err // another worker has the job: stop, and don't retry
			}
			return err
		}
		wantStale(t, write(late, 1))
		for _, query := range []string{"INSERT INTO results (job_id) VALUES (1)", "INSERT INTO outbox (message) VALUES ('x')"} {
			_, err := db.ExecContext(late, query)
			wantStale(t, err)
		}
		checking(t)(write(late, 2))
		checking(t)(write(db.take(t.Context(), t), 1))
	})
}

func TestRescueInOneStatement(t *testing.T) {
	onJobs(t, func(t *testing.T, db jobsDB) {
		ctx, late := t.Context(), db.take(t.Context(), t)
		db.exec(late, t, `UPDATE jobs SET heartbeat = $1 WHERE id = 1`, time.Now().Add(-time.Hour))
		db.exec(late, t, `UPDATE jobs SET heartbeat = $1 WHERE id = 2`, time.Now().Add(time.Hour))
		var err error
		_, err = db.ExecContext(sqlfence.WithTakeover(ctx),
			`UPDATE jobs SET state = 'queued' WHERE state = 'running' AND heartbeat < $1`, time.Now().Add(-time.Minute))
		checking(t)(err)
		db.wantJob(t, 1, "queued 0 2")
		db.wantJob(t, 2, "running 0 1")
		wantLate(t, db, late)
	})
}

// Between the rescuer's two steps the job is completed, or another worker takes it, or nothing happens.
func TestRescueInTwoSteps(t *testing.T) {
	for _, step := range []struct {
		name  string
		does  func(t *testing.T, db jobsDB, holder context.Context)
		want  string
		naive string // with the key alone
	}{
		{"nothing", func(*testing.T, jobsDB, context.Context) {}, "queued 0 2", "queued 0 2"},
		{"completed", func(t *testing.T, db jobsDB, holder context.Context) {
			db.exec(holder, t, `UPDATE jobs SET state = 'done' WHERE id = 1`)
		}, "done 0 1", "queued 0 2"},
		{"taken", func(t *testing.T, db jobsDB, _ context.Context) {
			db.exec(sqlfence.WithTakeover(t.Context()), t, `UPDATE jobs SET state = 'queued'`)
			db.take(t.Context(), t)
		}, "running 0 3", "queued 0 4"},
	} {
		t.Run(step.name, func(t *testing.T) {
			onJobs(t, func(t *testing.T, db jobsDB) {
				ctx, check := t.Context(), checking(t)
				id, claim := int64(1), int64(0)
				holder := db.take(ctx, t)
				err := db.QueryRowContext(ctx, `SELECT claim FROM jobs WHERE id = $1`, id).Scan(&claim)
				check(err)
				step.does(t, db, holder)
				_, err = db.ExecContext(ctx, `UPDATE jobs SET state = 'queued', claim = claim + 1
					WHERE id = $1 AND state = 'running' AND claim = $2`, id, claim)
				check(err)
				db.wantJob(t, 1, step.want)
			})
			onJobs(t, func(t *testing.T, db jobsDB) {
				step.does(t, db, db.take(t.Context(), t))
				db.exec(sqlfence.WithTakeover(t.Context()), t, `UPDATE jobs SET state = 'queued' WHERE id = 1`)
				db.wantJob(t, 1, step.naive)
			})
		})
	}
}

func TestCompletionThatIncrementsTheClaim(t *testing.T) {
	onJobs(t, func(t *testing.T, db jobsDB) {
		holder, id := db.take(t.Context(), t), 1
		complete := func(ctx context.Context) (err error) {
			_, err = db.ExecContext(ctx, `UPDATE jobs SET state = 'done', claim = claim + 1 WHERE id = $1`, id)
			return err
		}
		db.exec(holder, t, "INSERT INTO results (job_id) VALUES (1)")
		checking(t)(complete(holder))
		db.wantJob(t, 1, "done 0 2")
		wantStale(t, complete(holder))
		_, err := db.ExecContext(holder, "INSERT INTO results (job_id) VALUES (1)")
		wantStale(t, err)
		checking(t)(complete(t.Context())) // without a token any caller takes the job
	})
}

// The jobs may be tried twice, and a rescue costs no attempt.
func TestLimitedAttempts(t *testing.T) {
	onJobs(t, func(t *testing.T, db jobsDB) {
		ctx, id := t.Context(), 1
		for _, want := range []string{"queued 1 2", "queued 2 4"} {
			db.exec(ctx, t, `UPDATE jobs SET state = 'running', attempt = attempt + 1, claim = claim + 1 WHERE id = $1`, id)
			db.exec(sqlfence.WithTakeover(ctx), t, `UPDATE jobs SET state = 'queued' WHERE id = $1`, id)
			db.wantJob(t, 1, want)
		}
		var err error
		_, err = db.ExecContext(sqlfence.WithTakeover(ctx),
			`UPDATE jobs SET state = 'queued', attempt = 0 WHERE id = $1`, id)
		checking(t)(err)
		db.wantJob(t, 1, "queued 0 5")
		if _, err := db.ExecContext(ctx, `UPDATE jobs SET claim = 0 WHERE id = 1`); !errors.Is(err, sqlfence.ErrConflict) {
			t.Errorf("a claim that is set back: %v", err)
		}
	})
}

func TestFlagOnARunningJob(t *testing.T) {
	onJobs(t, func(t *testing.T, db jobsDB) {
		ctx, id := t.Context(), 1
		flag := func() {
			var err error
			_, err = db.ExecContext(sqlfence.Bypass(ctx, "cancel a job"),
				`UPDATE jobs SET cancel = true WHERE id = $1`, id)
			checking(t)(err)
		}
		flag() // before a worker has the job
		worker := db.take(ctx, t)
		flag()
		db.exec(worker, t, `UPDATE jobs SET state = 'done' WHERE id = 1`)
		db.wantJob(t, 1, "done 0 1")
	})
}

func TestPruning(t *testing.T) {
	onJobs(t, func(t *testing.T, db jobsDB) {
		ctx, late := t.Context(), db.take(t.Context(), t)
		db.exec(late, t, `UPDATE jobs SET state = 'done', heartbeat = $1 WHERE id = 1`, time.Now().Add(-25*time.Hour))
		_, err := db.ExecContext(ctx, `DELETE FROM jobs WHERE state = 'done'`)
		if !errors.Is(err, sqlfence.ErrNoFence) {
			t.Errorf("a DELETE without a claim: %v", err)
		}
		_, err = db.ExecContext(sqlfence.Bypass(ctx, "prune finished jobs"),
			`DELETE FROM jobs WHERE state = 'done' AND heartbeat < $1`, time.Now().Add(-24*time.Hour))
		checking(t)(err)
		_, err = db.ExecContext(late, "INSERT INTO results (job_id) VALUES (1)")
		wantStale(t, err)
		db.exec(ctx, t, "INSERT INTO jobs (id) VALUES (1)")
		db.exec(ctx, t, `UPDATE jobs SET claim = claim + 1 WHERE id = 1`)
		db.exec(late, t, "INSERT INTO results (job_id) VALUES (1)") // the page warns of an id that returns
	})
}

func TestKeyOfTwoColumns(t *testing.T) {
	page, err := os.ReadFile("../../docs/jobs.md")
	checking(t)(err)
	block := regexp.MustCompile("(?s)```sql\n(task_key .*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("the page has no column task_key")
	}
	column := string(block[1])
	for name, dsn := range map[string]func(*testing.T) string{
		"sqlite": func(*testing.T) string { return "" }, "pgx": servers.PostgresURL, "mysql": servers.MySQLURL,
	} {
		t.Run(name, func(t *testing.T) {
			check, column := checking(t), column
			if name == "mysql" {
				column = strings.Replace(column, "task_name || '/' || task_instance", "CONCAT(task_name, '/', task_instance)", 1)
			}
			source, err := scratch.New(t.Context(), "tasks", dsn(t))
			check(err)
			defer func() { check(source.Drop()) }()
			db, err := sqlfence.Open(source.Driver, source.DSN,
				sqlfence.WithTable("tasks", sqlfence.Key("task_key"), sqlfence.Claim("claim")))
			check(err)
			defer db.Close()
			jobsDB{db, source.Driver}.playTasks(t, column)
		})
	}
}

// playTasks has a worker claim a task, and finish it before and after another worker has claimed all.
func (db jobsDB) playTasks(t *testing.T, column string) {
	ctx, check := t.Context(), checking(t)
	db.exec(ctx, t, `CREATE TABLE tasks (task_name varchar(100) NOT NULL, task_instance varchar(100) NOT NULL,
		state varchar(10) NOT NULL DEFAULT 'queued', claim bigint NOT NULL DEFAULT 0, `+column+`)`)
	db.exec(ctx, t, `INSERT INTO tasks (task_name, task_instance) VALUES ('mail', '1'), ('mail', '2')`)
	db.exec(ctx, t, `UPDATE tasks SET claim = claim + 1 WHERE task_name = 'mail' AND task_instance = '1'`)
	var key string
	var claim int64
	check(db.QueryRowContext(ctx, `SELECT task_key, claim FROM tasks WHERE task_instance = '1'`).Scan(&key, &claim))
	token, err := sqlfence.ClaimToken("tasks", key, claim)
	check(err)
	ctx = sqlfence.WithFence(ctx, token)
	const finish = `UPDATE tasks SET state = 'done' WHERE task_name = 'mail' AND task_instance = `
	db.exec(ctx, t, finish+"'1'")
	if _, err := db.ExecContext(ctx, finish+"'2'"); !errors.Is(err, sqlfence.ErrOutOfScope) {
		t.Errorf("a write of another task: %v", err)
	}
	db.exec(t.Context(), t, `UPDATE tasks SET claim = claim + 1`)
	_, err = db.ExecContext(ctx, finish+"'1'")
	wantStale(t, err)
}
