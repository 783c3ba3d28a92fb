package claims_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// BenchmarkQueue takes and completes a batch of jobs in each iteration, on PostgreSQL, in three ways: with sqlfence; by
// hand, with each row's attempt in the condition; and by the same two statements without a fence. It reports jobs per
// second.
func BenchmarkQueue(b *testing.B) {
	const take = "UPDATE jobs SET state = 'run', attempt = attempt + 1 " +
		"WHERE id IN (SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED) RETURNING id, attempt"
	base := harness.Bases[1]
	for _, batch := range []int{10, 100, 1000} {
		for _, way := range []string{"fenced", "by-hand", "plain"} {
			b.Run(fmt.Sprintf("%d/%s", batch, way), func(b *testing.B) {
				dsn := base.DSN(b)
				plain := base.Raw(b, dsn)
				harness.MustExec(b, plain, "CREATE TABLE jobs (id bigint PRIMARY KEY, state varchar(20) NOT NULL, attempt bigint NOT NULL)")
				harness.MustExec(b, plain, "CREATE INDEX ON jobs (id) WHERE state = 'new'")
				db := plain
				if way == "fenced" {
					db = base.Fenced(b, dsn, sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")))
				}
				refill := func() {
					harness.MustExec(b, plain, "TRUNCATE jobs")
					harness.MustExec(b, plain, fmt.Sprintf("INSERT INTO jobs SELECT i, 'new', 0 FROM generate_series(1, %d) AS i", 20*batch))
					harness.MustExec(b, plain, "ANALYZE jobs")
				}
				left := 0
				for b.Loop() {
					if left == 0 {
						b.StopTimer()
						refill()
						left = 20
						b.StartTimer()
					}
					left--
					ids, attempts := takeBatch(b, db, take, batch)
					ctx, query, args := b.Context(), "UPDATE jobs SET state = 'done' WHERE id = ANY($1)", []any{ids}
					switch way {
					case "fenced":
						ctx = claimsOf(b, ids, attempts)
					case "by-hand":
						query = "UPDATE jobs SET state = 'done' FROM unnest($1::bigint[], $2::bigint[]) AS c (id, attempt) " +
							"WHERE jobs.id = c.id AND jobs.attempt = c.attempt"
						args = []any{ids, attempts}
					}
					done, err := db.ExecContext(ctx, query, args...)
					if err != nil {
						b.Fatal(err)
					}
					if n, _ := done.RowsAffected(); n != int64(batch) {
						b.Fatalf("%d of %d jobs are done", n, batch)
					}
				}
				b.ReportMetric(float64(batch)*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			})
		}
	}
}

// takeBatch takes over a batch of jobs.
func takeBatch(b *testing.B, db *sql.DB, query string, batch int) (ids, attempts []int64) {
	b.Helper()
	rows, err := db.QueryContext(b.Context(), query, batch)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, attempt int64
		if err := rows.Scan(&id, &attempt); err != nil {
			b.Fatal(err)
		}
		ids, attempts = append(ids, id), append(attempts, attempt)
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
	return ids, attempts
}

// claimsOf returns a context with the claims of jobs.
func claimsOf(b *testing.B, ids, attempts []int64) context.Context {
	b.Helper()
	tokens := make([]sqlfence.Token, len(ids))
	for i := range ids {
		var err error
		if tokens[i], err = sqlfence.ClaimToken("jobs", ids[i], attempts[i]); err != nil {
			b.Fatal(err)
		}
	}
	return sqlfence.WithFence(b.Context(), tokens...)
}
