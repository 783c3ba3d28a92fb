package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence"
)

// A queue is the table jobs. A taken job is represented by its row's token: the id, and the number of times the job was
// taken.
type queue struct {
	db      *sql.DB
	locking bool // the database locks rows
}

// take takes up to n jobs over.
func (q *queue) take(ctx context.Context, n int) (taken []sqlfence.Token, err error) {
	tx, err := q.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	query := fmt.Sprintf("SELECT id, attempt + 1 FROM jobs WHERE state = 'queued' ORDER BY id LIMIT %d", n)
	if q.locking {
		query += " FOR UPDATE SKIP LOCKED" // workers don't wait for each other
	}
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id, attempt int64
		if err := rows.Scan(&id, &attempt); err != nil {
			return nil, err
		}
		token, err := sqlfence.ClaimToken("jobs", id, attempt)
		if err != nil {
			return nil, err
		}
		taken, ids = append(taken, token), append(ids, fmt.Sprint(id))
	}
	if err := rows.Err(); err != nil || len(ids) == 0 {
		return nil, err
	}
	// The statement increments the claim (attempt), so it needs no token.
	_, err = tx.ExecContext(ctx, "UPDATE jobs SET state = 'running', attempt = attempt + 1 WHERE id IN ("+strings.Join(ids, ", ")+")")
	if err != nil {
		return nil, err
	}
	return taken, tx.Commit()
}

// rescue requeues running jobs: in this example all, in a real queue only jobs of workers without a sign of life.
func (q *queue) rescue(ctx context.Context) error {
	_, err := q.db.ExecContext(sqlfence.WithTakeover(ctx), "UPDATE jobs SET state = 'queued' WHERE state = 'running'")
	return err
}

// store stores a job's result. store and complete both present the job's claim, so they may run in separate
// transactions.
func (q *queue) store(ctx context.Context, worker string, job sqlfence.Token) error {
	id := strings.TrimPrefix(job.Name, "jobs/")
	_, err := q.db.ExecContext(sqlfence.WithFence(ctx, job), "INSERT INTO results (job, worker) VALUES ("+id+", '"+worker+"')")
	return err
}

// complete ends a job.
func (q *queue) complete(ctx context.Context, job sqlfence.Token) error {
	id := strings.TrimPrefix(job.Name, "jobs/")
	_, err := q.db.ExecContext(sqlfence.WithFence(ctx, job), "UPDATE jobs SET state = 'done' WHERE id = "+id)
	return err
}

// results returns which worker has completed each job.
func (q *queue) results(ctx context.Context) (string, error) {
	rows, err := q.db.QueryContext(ctx, "SELECT job, worker FROM results ORDER BY job")
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var job int64
		var worker string
		if err := rows.Scan(&job, &worker); err != nil {
			return "", err
		}
		all = append(all, fmt.Sprintf("%d by %s", job, worker))
	}
	return strings.Join(all, ", "), rows.Err()
}
