package lease_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// indexTexts are SQL for the tests of the index: the number of indexes on expires_at, the drop of the index, a time
// long ago, the update of statistics, and the prefix that shows a plan.
var indexTexts = map[sqlfence.Dialect]struct{ count, drop, epoch, analyze, explain string }{
	sqlfence.Postgres: {
		count:   "SELECT count(*) FROM pg_indexes WHERE schemaname = current_schema() AND tablename = 'fencing_leases' AND indexdef LIKE '%(expires_at)%'",
		drop:    "DROP INDEX fencing_leases_expires_at",
		epoch:   "to_timestamp(0)",
		analyze: "ANALYZE fencing_leases",
		explain: "EXPLAIN ",
	},
	sqlfence.SQLite: {
		count:   "SELECT count(*) FROM pragma_index_list('fencing_leases') AS i, pragma_index_info(i.name) AS c WHERE c.name = 'expires_at'",
		drop:    "DROP INDEX fencing_leases_expires_at",
		epoch:   "0",
		analyze: "SELECT 1",
		explain: "EXPLAIN QUERY PLAN ",
	},
	sqlfence.MySQL: {
		count:   "SELECT count(*) FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = 'fencing_leases' AND column_name = 'expires_at'",
		drop:    "DROP INDEX fencing_leases_expires_at ON fencing_leases",
		epoch:   "0",
		analyze: "ANALYZE TABLE fencing_leases",
		explain: "EXPLAIN ",
	},
}

// indexes returns how many indexes of the leases begin with expires_at.
func indexes(t *testing.T, b harness.Base, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRow(indexTexts[b.Dialect].count).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The table of an older version gets its index from one of several processes, and List uses the index.
func TestLeaseSetupAddsTheIndex(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		dsn := quickDSN(b, b.DSN(t))
		plain := b.Raw(t, dsn)
		l := harness.MustAcquire(t, harness.NewLeases(t, plain), "jobs")
		texts := indexTexts[b.Dialect]
		harness.MustExec(t, plain, texts.drop)
		harness.MustExec(t, plain, "CREATE TABLE twelve (id integer)")
		harness.MustExec(t, plain, "INSERT INTO twelve VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12)")
		harness.MustExec(t, plain, `INSERT INTO fencing_leases ("key", lock_id, holder, token, acquired_at, expires_at)
			SELECT concat('old/', a.id, '/', b.id, '/', c.id, '/', d.id), concat('id/', a.id, '/', b.id, '/', c.id, '/', d.id), '', 1, `+texts.epoch+", "+texts.epoch+" FROM twelve a, twelve b, twelve c, twelve d")
		db, c := b.Counted(t, dsn)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				leases, err := lease.New(db)
				if err == nil {
					err = leases.Setup(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := indexes(t, b, plain); n != 1 {
			t.Fatalf("%d indexes", n)
		}
		harness.MustExec(t, plain, texts.analyze)
		leases := harness.NewLeases(t, db)
		c.Reset()
		all, err := leases.List(t.Context())
		if err != nil || len(all) != 1 || all[0].LockID != l.LockID() {
			t.Errorf("List: %v, %v", all, err)
		}
		if got := planOf(t, plain, texts.explain+c.Texts()[0]); !strings.Contains(got, "fencing_leases_expires_at") {
			t.Errorf("the plan of List: %s", got)
		}
	})
}

// planOf returns a query's plan, without the indexes that it doesn't use.
func planOf(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var plan strings.Builder
	for rows.Next() {
		values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		for i, column := range columns {
			if column != "possible_keys" {
				plan.WriteString(values[i].String + " ")
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}

// If the index exists under another name, or the role may not add an index, Setup succeeds without adding one.
func TestLeaseSetupWithoutTheIndex(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("the index needs a table's owner in PostgreSQL")
		}
		dsn := b.DSN(t)
		plain := b.Raw(t, dsn)
		harness.NewLeases(t, plain)
		role := "sqlfence_" + strings.ToLower(rand.Text())
		harness.MustExec(t, plain, "CREATE ROLE "+role+" LOGIN PASSWORD 'x'")
		t.Cleanup(func() {
			for _, query := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
				if _, err := plain.ExecContext(context.Background(), query); err != nil {
					t.Error(err)
				}
			}
		})
		var schema string
		if err := plain.QueryRow("SELECT current_schema()").Scan(&schema); err != nil {
			t.Fatal(err)
		}
		harness.MustExec(t, plain, "GRANT USAGE ON SCHEMA "+schema+" TO "+role)
		harness.MustExec(t, plain, "GRANT SELECT, INSERT, UPDATE, DELETE ON fencing_leases, fencing_tokens TO "+role)
		harness.MustExec(t, plain, "DROP INDEX fencing_leases_expires_at")
		u, err := url.Parse(dsn)
		if err != nil {
			need.Missing(t, "postgres", fmt.Sprint("needs a URL as the DSN: ", err))
		}
		u.User = url.UserPassword(role, "x")
		theirs := b.Raw(t, u.String())
		leases := harness.NewLeases(t, theirs)
		harness.MustRelease(t, harness.MustAcquire(t, leases, "jobs"))
		if n := indexes(t, b, plain); n != 0 {
			t.Errorf("%d indexes", n)
		}
		harness.MustExec(t, plain, "CREATE INDEX another ON fencing_leases (expires_at)")
		harness.NewLeases(t, plain)
		if n := indexes(t, b, plain); n != 1 {
			t.Errorf("%d indexes beside another's", n)
		}
	})
}
