package claims_test

import (
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A temporary table, a CTE or another table with the queue's name must not replace the queue in ClaimOf's check.
func TestClaimOfIsNotShadowed(t *testing.T) {
	const late = "INSERT INTO outbox (id, note) VALUES (2, 'late')"
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		b.AsWritten = true
		temporary := map[sqlfence.Dialect][]string{
			sqlfence.Postgres: {"CREATE TABLE pg_temp.jobs AS SELECT 2 AS id, 1 AS attempt", "SELECT 2 AS id, 1 AS attempt INTO TEMP jobs"},
			sqlfence.MySQL:    {"CREATE TEMPORARY TABLE jobs AS SELECT 2 AS id, 1 AS attempt"},
			sqlfence.SQLite:   {"CREATE TABLE temp.jobs AS SELECT 2 AS id, 1 AS attempt"},
		}[b.Dialect]
		queries := []string{late,
			"INSERT INTO outbox (id, note) WITH JOBS AS (SELECT 2 AS id, 1 AS attempt) SELECT id, 'late' FROM JOBS",
			"INSERT INTO outbox (id, note) WITH Jobs (id, attempt) AS (SELECT 2, 1) SELECT id, 'late' FROM Jobs WHERE id > 0",
			"INSERT INTO outbox (id, note) SELECT id, 'late' FROM (WITH jobs AS (SELECT 2 AS id, 1 AS attempt) SELECT id FROM jobs) d",
			"INSERT INTO outbox (id, note) WITH w AS (SELECT 2 AS id), jobs AS (SELECT 2 AS id, 1 AS attempt) SELECT w.id, 'late' FROM w, jobs",
		}
		if b.Dialect != sqlfence.SQLite {
			queries = append(queries, "INSERT INTO outbox (WITH jobs AS (SELECT 2 AS id, 1 AS attempt) SELECT id, 'late' FROM jobs)")
		}
		for _, inSchema := range []bool{false, true} {
			dsn, jobs := b.DSN(t), "jobs"
			plain := b.Raw(t, dsn)
			if inSchema {
				if b.Dialect != sqlfence.MySQL {
					continue // other databases have a separate schema for temporary tables
				}
				if err := plain.QueryRowContext(t.Context(), "SELECT concat(DATABASE(), '.jobs')").Scan(&jobs); err != nil {
					t.Fatal(err)
				}
				temporary = append(temporary, "CREATE TEMPORARY TABLE "+jobs+" AS SELECT 2 AS id, 1 AS attempt")
			}
			for _, query := range []string{
				"CREATE TABLE jobs (id bigint PRIMARY KEY, attempt bigint)", "INSERT INTO jobs (id, attempt) VALUES (2, 2)",
				"CREATE TABLE outbox (id bigint PRIMARY KEY, note varchar(20))",
			} {
				if _, err := plain.ExecContext(t.Context(), query); err != nil {
					t.Fatalf("%s: %v", query, err)
				}
			}
			conn, err := b.Fenced(t, dsn, sqlfence.WithTable("outbox", sqlfence.ClaimOf(jobs)),
				sqlfence.WithTable(jobs, sqlfence.Resource("jobs"), sqlfence.Key("id"), sqlfence.Claim("attempt"))).Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			for _, query := range temporary {
				if _, err := conn.ExecContext(t.Context(), query); !errors.Is(err, sqlfence.ErrUnguardable) {
					t.Errorf("%s: %v", query, err)
				}
			}
			for _, query := range queries {
				_, err := conn.ExecContext(with(t, t.Context(), 1), query)
				if !errors.Is(err, sqlfence.ErrStale) && !errors.Is(err, sqlfence.ErrUnguardable) {
					t.Errorf("%s: %v", query, err)
				}
			}
			var rows int
			if err := plain.QueryRowContext(t.Context(), "SELECT count(*) FROM outbox").Scan(&rows); err != nil || rows > 0 {
				t.Errorf("%d late rows, %v", rows, err)
			}
		}
	})
}
