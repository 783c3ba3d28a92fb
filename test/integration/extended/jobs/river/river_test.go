package river_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fenceriver"
	"github.com/sqlfence/sqlfence/fencepgx"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/integration/zombie"
)

// complete writes and completes the job in one transaction of the fenced database.
func complete(ctx context.Context, db *sql.DB, j *river.Job[args], worker string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := river.JobCompleteTx[*riverdatabasesql.Driver](ctx, tx, j); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE results SET worker = $1 WHERE job = 1", worker); err != nil {
		return err
	}
	return tx.Commit()
}

// Worker A is paused in its job until River's rescuer has given the job to worker B. With the fence, A neither writes
// nor ends B's attempt. Without the fence, A does both.
func TestZombie(t *testing.T) {
	for _, fence := range []bool{false, true} {
		q := newQueue(t)
		q.insert()
		wrote, finish := make(chan error, 1), make(chan struct{})
		var stop func()
		said := zombie.Play(t, q.source, fence, func() {
			q.rescue()
			stop = q.start(newConfig(func(ctx context.Context, j *river.Job[args]) error {
				wrote <- zombie.Write(ctx, q.db, "B")
				<-finish
				return complete(ctx, q.db, j, "B")
			}, fenceriver.Middleware(q.db.QueryRowContext)))
			if err := <-wrote; err != nil {
				t.Fatal(err)
			}
		})
		zombie.Check(t, q.db, fence, said)
		if fence {
			q.want("running 2, 1 errors") // the error that the rescuer has recorded
		} else {
			q.want("completed 2, 1 errors") // A has completed B's attempt
		}
		close(finish)
		stop()
		q.want("completed 2, 1 errors")
	}
}

// After a worker has lost its job, River must not record the worker's result, whatever it is.
func TestLostIsNotReported(t *testing.T) {
	for _, returned := range []error{
		nil, errors.New("failed"), river.JobSnooze(time.Hour), river.JobCancel(errors.New("cancel")),
	} {
		t.Run(fmt.Sprint(returned), func(t *testing.T) {
			q := newQueue(t)
			q.insert()
			ended := make(chan struct{})
			stop := q.start(newConfig(func(ctx context.Context, j *river.Job[args]) error {
				defer close(ended)
				// The statements of River's rescuer and of the next worker's client.
				zombie.Exec(t, q.plain, "UPDATE river_job SET state = 'retryable'",
					"UPDATE river_job SET state = 'running', attempt = attempt + 1, attempted_at = now()")
				if err := zombie.Write(ctx, q.db, "A"); !errors.Is(err, sqlfence.ErrStale) {
					t.Errorf("the write: %v", err)
				}
				if err := complete(ctx, q.db, j, "A"); !errors.Is(err, sqlfence.ErrStale) {
					t.Errorf("JobCompleteTx: %v", err)
				}
				return returned
			}, fenceriver.Middleware(q.db.QueryRowContext)))
			<-ended
			stop()
			q.want("running 2, 0 errors")
		})
	}
}

// A worker that owns its job reports failures and snoozes to River. Each attempt has a new claim, although a snooze
// decreases River's attempt counter.
func TestHeldIsReported(t *testing.T) {
	q := newQueue(t)
	q.insert()
	var claims []sqlfence.Token
	returns := []error{river.JobSnooze(0), errors.New("failed"), nil}
	config := newConfig(func(ctx context.Context, j *river.Job[args]) error {
		token, ok := sqlfence.FenceFrom(ctx, fmt.Sprint("river_job/", j.ID))
		if !ok {
			t.Error("the context has no token")
		}
		if err := zombie.Write(ctx, q.db, "A"); err != nil {
			t.Error(err)
		}
		claims = append(claims, token)
		return returns[len(claims)-1]
	}, fenceriver.Middleware(q.db.QueryRowContext))
	config.RetryPolicy = atOnce{}
	stop := q.start(config)
	harness.Eventually(t, "the job is done", func() bool { return q.job() == "completed 2, 1 errors" })
	stop()
	for i := range claims[1:] {
		if claims[i].Value >= claims[i+1].Value {
			t.Errorf("the claims are %v", claims)
		}
	}
}

// If another worker takes the job before the middleware has read the claim, the attempt doesn't begin.
func TestTakenBeforeItBegins(t *testing.T) {
	q := newQueue(t)
	q.insert()
	asked := make(chan struct{}, 2)
	stop := q.start(newConfig(func(context.Context, *river.Job[args]) error {
		t.Error("it begins")
		return nil
	}, fenceriver.Middleware(func(ctx context.Context, query string, args ...any) *sql.Row {
		zombie.Exec(t, q.plain, "UPDATE river_job SET state = 'retryable'",
			"UPDATE river_job SET state = 'running', attempted_at = now()")
		asked <- struct{}{}
		return q.db.QueryRowContext(ctx, query, args...)
	})))
	<-asked
	stop()
	q.want("running 1, 0 errors")
}

// A worker may insert jobs in its fenced transaction. An INSERT of a unique job is refused, because it would update the
// row of an existing job.
func TestInsertTx(t *testing.T) {
	q := newQueue(t)
	q.insert()
	unique := &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByPeriod: time.Hour}}
	insert := func(ctx context.Context, opts ...*river.InsertOpts) error {
		tx, err := q.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		for _, opt := range opts {
			if _, err := river.ClientFromContext[*sql.Tx](ctx).InsertTx(ctx, tx, args{}, opt); err != nil {
				return err
			}
		}
		return tx.Commit()
	}
	ended := make(chan struct{})
	stop := q.start(newConfig(func(ctx context.Context, j *river.Job[args]) error {
		if j.ID == 1 {
			defer close(ended)
			if err := insert(ctx, nil, unique); err != nil {
				t.Error(err)
			}
			if err := insert(ctx, unique); !errors.Is(err, sqlfence.ErrOutOfScope) {
				t.Errorf("a unique job that is there: %v", err)
			}
		}
		return nil
	}, fenceriver.Middleware(q.db.QueryRowContext)))
	<-ended
	stop()
}

// TestPgx runs River with its pgx driver, and workers that write through fencepgx.
func TestPgx(t *testing.T) {
	q := newQueue(t)
	q.insert()
	pool, err := pgxpool.New(t.Context(), q.source)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	db, err := fencepgx.New(pool, tables...)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	write := func(ctx context.Context, j *river.Job[args], worker string) error {
		return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "UPDATE results SET worker = $1 WHERE job = 1", worker); err != nil {
				return err
			}
			_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, j)
			return err
		})
	}
	client, err := river.NewClient(riverpgxv5.New(pool), newConfig(func(ctx context.Context, j *river.Job[args]) error {
		if j.Attempt == 1 {
			zombie.Exec(t, q.plain, "UPDATE river_job SET state = 'available'")
			if err := write(ctx, j, "A"); !errors.Is(err, sqlfence.ErrStale) {
				t.Error(err)
			}
			return nil
		}
		defer close(ended)
		return write(ctx, j, "B")
	}, fenceriver.Middleware(db.QueryRow)))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-ended
	if err := client.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	q.want("completed 2, 0 errors")
	if wrote := zombie.Wrote(t, q.plain); wrote != "B" {
		t.Errorf("the result is %s's", wrote)
	}
}
