// Package fenceriver makes the database refuse the writes of a River job's attempt after the job was taken from the
// attempt.
//
// River's rescuer gives a job that runs for too long to a second worker. The first worker may still run, or have been
// paused: its writes overwrite newer data, and it ends the second worker's attempt, because River ends a job by its id
// alone. The column attempt can't distinguish the two attempts, because attempt decreases when a job snoozes or its
// client stops. So [Migration] adds the column claim to River's table. A trigger increments claim when a job is taken,
// or taken away. On the fenced database claim is the [sqlfence.Claim], and further tables use it by [sqlfence.ClaimOf].
// River's client needs a database or pool without the fence, because River's own writes carry no token:
//
//	db, err := sqlfence.Open("pgx", dsn,
//		sqlfence.WithTable("river_job", sqlfence.Key("id"), sqlfence.Claim("claim")),
//		sqlfence.WithTable("results", sqlfence.ClaimOf("river_job")))
//	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
//		Middleware: []rivertype.Middleware{fenceriver.Middleware(db.QueryRowContext)},
//		// ...
//	})
//
// A worker must write with its context. After the job was taken away, a write fails with [sqlfence.ErrStale]. To write
// in one transaction with the job's end, call River's JobCompleteTx with a transaction of the fenced database. A
// refusal is no failure of the job, which belongs to a later attempt, so [Middleware] hides the refusal from River. A
// fenced transaction can't insert a unique job that exists already, because River updates the existing row, without
// its claim: insert unique jobs with the client.
package fenceriver

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/sqlfence/sqlfence"
)

// Migration is the SQL that adds the column claim to River's table on PostgreSQL, and a trigger that increments claim
// with each change of the state. A change to completed doesn't increment claim, so that a worker's transaction can
// write after JobCompleteTx. Run it once after River's own migrations, where search_path finds river_job, and before
// the first client has the middleware. Migration may run again. It rewrites no row.
const Migration = `ALTER TABLE river_job ADD COLUMN IF NOT EXISTS claim bigint NOT NULL DEFAULT 0;
CREATE OR REPLACE FUNCTION river_job_claim() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN NEW.claim := OLD.claim + 1; RETURN NEW; END $$;
DROP TRIGGER IF EXISTS river_job_claim ON river_job;
CREATE TRIGGER river_job_claim BEFORE UPDATE ON river_job FOR EACH ROW
	WHEN (NEW.state <> OLD.state AND NEW.state <> 'completed') EXECUTE FUNCTION river_job_claim();`

// A Row is the result of a query, such as a *sql.Row or a pgx.Row.
type Row interface{ Scan(dest ...any) error }

// Middleware returns the middleware that adds the token of the job's claim to the context of each attempt. The token's
// name is "river_job/" and the job's id: register the table as river_job, or with [sqlfence.Resource] "river_job".
// queryRow is the QueryRowContext of a *sql.DB, fenced or not, or the QueryRow of a pgx pool. Middleware reads the
// claim with it before and after each attempt.
//
// If the job was taken away before the attempt, the worker isn't called. If the job was taken away during the attempt,
// the middleware hides the attempt's result from River: it returns an error that is [sqlfence.ErrStale], and River
// records nothing for the job. Middleware that is listed earlier must return this error unchanged. River still learns
// of a panic, and of the result if the claim can't be read within 10 s after the attempt. If the claim can't be read
// before the attempt, the attempt fails.
func Middleware[R Row](queryRow func(ctx context.Context, query string, args ...any) R) rivertype.WorkerMiddleware {
	type next = func(context.Context) error
	return river.WorkerMiddlewareFunc(func(ctx context.Context, job *rivertype.JobRow, work next) error {
		var claim int64
		err := queryRow(ctx, claimed, job.ID, job.Attempt, job.AttemptedAt).Scan(&claim)
		if err != nil {
			return fmt.Errorf("fenceriver: reading the claim of job %d: %w", job.ID, err)
		}
		if claim == 0 {
			return &lostError{id: job.ID}
		}
		token, err := sqlfence.ClaimToken("river_job", job.ID, claim)
		if err != nil {
			return err
		}
		err = work(sqlfence.WithFence(ctx, token))
		// The attempt's context may have ended.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		var held bool
		if queryRow(ctx, holds, job.ID, claim).Scan(&held) == nil && !held {
			return &lostError{job.ID, err}
		}
		return err
	})
}

// claimed is a query for the claim of a River job. Its arguments are the job's id, and the number and the start time of
// the attempt that the middleware runs. The result is 0 if that attempt isn't running any more.
const claimed = `SELECT coalesce((SELECT claim FROM river_job
	WHERE id = $1 AND attempt = $2 AND attempted_at = $3 AND state = 'running'), 0)`

// holds checks whether a job has this claim.
const holds = `SELECT EXISTS (SELECT 1 FROM river_job WHERE id = $1 AND claim = $2)`

// A lostError is the error of an attempt that has lost its job. River takes an error with the methods Jobs and
// ErrorsByID for the errors of several jobs, and reports those. A lostError has neither method, so River reports no
// error for the lost job.
type lostError struct {
	id  int64
	err error // the worker's
}

func (e *lostError) Error() string {
	text := fmt.Sprintf("fenceriver: job %d was taken from this attempt", e.id)
	if e.err != nil {
		text += ": " + e.err.Error()
	}
	return text
}

func (e *lostError) Is(target error) bool { return target == sqlfence.ErrStale }

func (e *lostError) Unwrap() error { return e.err }

// Jobs returns no job.
func (e *lostError) Jobs() []*rivertype.JobRow { return nil }

// ErrorsByID returns no error.
func (e *lostError) ErrorsByID() map[int64]error { return nil }
