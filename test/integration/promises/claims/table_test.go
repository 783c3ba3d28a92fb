package claims_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// tabled are the statements of the table in docs/data/rules.md, on a job 1 with the claim 2.
var tabled = []struct {
	statement
	over   bool
	counts string
}{
	{statement{sql: "INSERT INTO jobs (id, state) VALUES (9, 'new')"}, false, "adds a row"},
	{statement{sql: "UPDATE jobs SET state = 'run', attempt = attempt + 1 WHERE id = 1"}, false, "takes over"},
	{statement{sql: "UPDATE jobs SET attempt = 7 WHERE id = 1"}, false, "takes over"},
	{statement{sql: "UPDATE jobs SET attempt = 2 WHERE id = 1"}, false, "takes over, but doesn't raise"},
	{statement{sql: "INSERT INTO jobs (id, state, attempt) VALUES (1, 'run', 7) ON CONFLICT (id) DO UPDATE SET attempt = excluded.attempt",
		mysql: "INSERT INTO jobs (id, state, attempt) VALUES (1, 'run', 7) ON DUPLICATE KEY UPDATE attempt = VALUES(attempt)"}, false, "takes over"},
	{statement{sql: "MERGE INTO jobs USING done ON job = id WHEN MATCHED THEN UPDATE SET attempt = attempt + 1", postgres: true}, false, "takes over"},
	{statement{sql: "UPDATE jobs SET state = 'new' WHERE id = 1"}, true, "takes over"},
	{statement{sql: "INSERT INTO jobs (id, state) VALUES (1, 'run') ON CONFLICT (id) DO UPDATE SET state = excluded.state",
		mysql: "INSERT INTO jobs (id, state) VALUES (1, 'run') ON DUPLICATE KEY UPDATE state = VALUES(state)"}, true, "takes over"},
	{statement{sql: "DELETE FROM jobs WHERE id = 1"}, true, "refused"},
	{statement{sql: "UPDATE jobs SET state = 'done' WHERE id = 1"}, false, "writes as holder"},
	{statement{sql: "INSERT INTO jobs (id, state) VALUES (1, 'run') ON CONFLICT (id) DO UPDATE SET state = excluded.state",
		mysql: "INSERT INTO jobs (id, state) VALUES (1, 'run') ON DUPLICATE KEY UPDATE state = VALUES(state)"}, false, "writes as holder"},
	{statement{sql: "DELETE FROM jobs WHERE id = 1"}, false, "writes as holder"},
	{statement{sql: "INSERT INTO jobs (id, state) VALUES (1, 'new') ON CONFLICT (id) DO UPDATE SET id = jobs.id",
		mysql: "INSERT INTO jobs (id, state) VALUES (1, 'new') ON DUPLICATE KEY UPDATE id = id"}, false, "leaves the row"},
	{statement{sql: "UPDATE results SET note = 'ok' WHERE job_id = 1"}, false, "writes as holder (`ClaimOf`)"},
}

// presentedOf are the claims in the contexts of the table's columns.
var presentedOf = []struct {
	column string
	claims []int64
}{{"no token", nil}, {"claim 2", []int64{1, 2}}, {"claim 1", []int64{1, 1}}, {"claim 3", []int64{1, 3}}, {"of job 2 only", []int64{2, 2}}}

// outcomeWord returns the table's word for an error.
func outcomeWord(t *testing.T, err error) string {
	for word, sentinel := range map[string]error{
		"`ErrStale`": sqlfence.ErrStale, "`ErrNotIssued`": sqlfence.ErrNotIssued, "`ErrNoFence`": sqlfence.ErrNoFence,
		"`ErrOutOfScope`": sqlfence.ErrOutOfScope, "`ErrConflict`": sqlfence.ErrConflict, "`ErrUnguardable`": sqlfence.ErrUnguardable,
	} {
		if errors.Is(err, sentinel) {
			return word
		}
	}
	if err != nil {
		t.Error(err)
	}
	return "✓"
}

// TestStatementsOfTheTable runs each statement with each token, and compares the outcomes with those of the page.
func TestStatementsOfTheTable(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/data/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		b.AsWritten = true
		dsn := b.DSN(t)
		plain := b.Raw(t, dsn)
		for _, query := range []string{
			"CREATE TABLE jobs (id bigint PRIMARY KEY, state varchar(20) NOT NULL, attempt bigint)",
			"INSERT INTO jobs (id, state, attempt) VALUES (1, 'run', 2), (2, 'run', 2)", "CREATE TABLE done (job bigint)", "INSERT INTO done (job) VALUES (1)",
			"CREATE TABLE results (job_id bigint PRIMARY KEY, note varchar(20))", "INSERT INTO results (job_id) VALUES (1), (2)",
		} {
			if _, err := plain.ExecContext(t.Context(), query); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
		}
		db := b.Fenced(t, dsn, sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")),
			sqlfence.WithTable("results", sqlfence.ClaimOf("jobs"), sqlfence.Key("job_id")))
		head := "| statement | counts as |"
		for _, presents := range presentedOf {
			head += " " + presents.column + " |"
		}
		if !strings.Contains(string(page), head+"\n") {
			t.Errorf("docs/data/rules.md lacks the table with the head\n%s", head)
		}
		for _, tt := range tabled {
			query := (&queue{Base: b}).in(tt.statement)
			if query == "" {
				continue
			}
			line := "| `" + tt.sql + "`"
			if tt.over {
				line += ", under `WithTakeover`"
			}
			line += " | " + tt.counts + " |"
			for _, presents := range presentedOf {
				ctx := claimed(t, presents.claims...)
				if tt.over {
					ctx = sqlfence.WithTakeover(ctx)
				}
				line += " " + outcomeWord(t, tried(ctx, t, db, query)) + " |"
			}
			if !strings.Contains(string(page), line+"\n") {
				t.Errorf("docs/data/rules.md lacks\n%s", line)
			}
		}
	})
}

// tried returns the error of a statement, and rolls the statement back.
func tried(ctx context.Context, t *testing.T, db *sql.DB, query string) error {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	_, err = tx.ExecContext(ctx, query)
	return err
}
