// Package fenceriver has the database refuse what an attempt of a job of River writes after the job was taken from it.
//
// River's rescuer gives a job that runs for too long to a second worker. The first worker may still run, or have been
// paused: its writes overwrite newer data, and it ends the second worker's attempt, because River ends a job by its id
// alone. The column attempt can't distinguish the two attempts, because attempt decreases when a job snoozes or its
// client stops. So [Migration] adds the column claim to River's table. A trigger increments claim when a job is taken,
// or taken away. On the fenced database claim is the [sqlfence.Claim], and further tables use it by [sqlfence.ClaimOf].
// River's client needs a database or pool without the fence:
//
//	db, err := sqlfence.Open("pgx", dsn,
//		sqlfence.WithTable("river_job", sqlfence.Key("id"), sqlfence.Claim("claim")),
//		sqlfence.WithTable("results", sqlfence.ClaimOf("river_job")))
//	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
//		Middleware: []rivertype.Middleware{fenceriver.Middleware(db.QueryRowContext)},
//		// ...
//	})
//
// A worker writes with its context. A write that comes after the job was taken from it is [sqlfence.ErrStale]. To have
// writes in one transaction with the job's end, call River's JobCompleteTx with one of the fenced database. A refusal
// is no failure of the job, which is the other attempt's: [Middleware] keeps it from River. A unique job that is
// there already can't be inserted in a fenced transaction, as River writes its row: insert such jobs by the client.
package fenceriver

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/sqlfence/sqlfence"
)

// Migration is the SQL that gives River's table on PostgreSQL the column claim, and the trigger that raises it with
// each change of the state but the one to completed, so that a worker's transaction may write after JobCompleteTx. Run
// it once after River's own migrations, where search_path finds river_job, and before the first client has the
// middleware. To run it again does no harm. It rewrites no row.
const Migration = `ALTER TABLE river_job ADD COLUMN IF NOT EXISTS claim bigint NOT NULL DEFAULT 0;
CREATE OR REPLACE FUNCTION river_job_claim() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN NEW.claim := OLD.claim + 1; RETURN NEW; END $$;
DROP TRIGGER IF EXISTS river_job_claim ON river_job;
CREATE TRIGGER river_job_claim BEFORE UPDATE ON river_job FOR EACH ROW
	WHEN (NEW.state <> OLD.state AND NEW.state <> 'completed') EXECUTE FUNCTION river_job_claim();`

// A Row is a row that was asked for, such as a *sql.Row or a pgx.Row.
type Row interface{ Scan(dest ...any) error }

// Middleware returns the middleware that gives the context of each attempt the token of its claim, as
// sqlfence.ClaimToken("river_job", id, claim) does: register the table by this name, or with it as [sqlfence.Resource].
// It asks queryRow for the claim, by the key, before the attempt and after it: the QueryRowContext of a *sql.DB, fenced
// or not, or the QueryRow of a pool of pgx.
//
// If the job was taken away, the attempt doesn't begin. If the attempt has begun, River doesn't learn of its end,
// whatever the worker returns: the middleware returns an error that is [sqlfence.ErrStale] and that River reports for
// no job. Middleware that is listed earlier must return this error unchanged. River learns of a panic, and of the end
// of an attempt if the claim can't be read within 10 s after the attempt. If the claim can't be read before the
// attempt, the attempt fails.
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

// claimed asks for the claim of a job as long as this attempt of it is running, else for 0.
const claimed = `SELECT coalesce((SELECT claim FROM river_job
	WHERE id = $1 AND attempt = $2 AND attempted_at = $3 AND state = 'running'), 0)`

// holds asks whether a job has this claim.
const holds = `SELECT EXISTS (SELECT 1 FROM river_job WHERE id = $1 AND claim = $2)`

// A lostError is what an attempt returns that the job was taken from. River takes an error with these methods for those
// of several jobs, and reports each; here there is none.
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
