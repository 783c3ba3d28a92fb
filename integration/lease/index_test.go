package lease_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/integration/harness"
	"github.com/sqlfence/sqlfence/lease"
)

// indexes returns how many indexes of the leases begin with expires_at.
func indexes(t *testing.T, b harness.Base, db *sql.DB) (n int) {
	t.Helper()
	query := "SELECT count(*) FROM pg_indexes WHERE schemaname = current_schema() AND tablename = 'fencing_leases' AND indexdef LIKE '%(expires_at)%'"
	if b.Dialect == sqlfence.SQLite {
		query = "SELECT count(*) FROM pragma_index_list('fencing_leases') AS i, pragma_index_info(i.name) AS c WHERE c.name = 'expires_at'"
	}
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A table that an older version has made gets its index, by one of several processes, and
// List uses it.
func TestLeaseSetupAddsTheIndex(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		dsn := quickDSN(b, b.DSN(t))
		plain := b.Raw(t, dsn)
		l := harness.MustAcquire(t, harness.NewLeases(t, plain), "jobs")
		harness.MustExec(t, plain, "DROP INDEX fencing_leases_expires_at")
		many, plan, analyze := "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT 'old/' || i, '', 1, 0, 0 FROM n", "EXPLAIN QUERY PLAN ", "SELECT 1"
		if b.Dialect == sqlfence.Postgres {
			many, plan, analyze = "SELECT 'old/' || i, '', 1, to_timestamp(0), to_timestamp(0) FROM generate_series(1, 20000) AS i", "EXPLAIN ", "ANALYZE fencing_leases"
		}
		harness.MustExec(t, plain, "INSERT INTO fencing_leases (key, holder, token, acquired_at, expires_at) "+many)
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
		harness.MustExec(t, plain, analyze)
		leases := harness.NewLeases(t, db)
		c.Reset()
		all, err := leases.List(t.Context())
		if err != nil || len(all) != 1 || all[0].LockID != l.LockID() {
			t.Errorf("List: %v, %v", all, err)
		}
		rows, err := plain.Query(plan + c.Texts()[0])
		if got := harness.Describe(rows, err); !strings.Contains(got, "fencing_leases_expires_at") {
			t.Errorf("the plan of List: %s", got)
		}
	})
}

// Where an index is there by another name, or may not be added, Setup leaves it at that.
func TestLeaseSetupWithoutTheIndex(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.Postgres {
			t.Skip("SQLite has no privileges")
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
			t.Skip(err)
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
