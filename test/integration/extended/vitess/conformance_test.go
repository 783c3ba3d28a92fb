package vitess_test

import (
	"database/sql/driver"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence/conformance"
)

// empty drops all tables of the keyspace of one shard.
func empty(t testing.TB) {
	t.Helper()
	plain := open(t, in(t, "plain", nil))
	rows, err := plain.Query("SHOW TABLES")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var tables []string
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, table)
	}
	for _, table := range tables {
		exec(t, plain, "DROP TABLE "+table)
	}
}

// The conformance suite passes.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute")
	}
	report := conformance.Check(t, conformance.Harness{Connector: func(t testing.TB) driver.Connector {
		t.Helper()
		empty(t)
		cfg, err := mysql.ParseDSN(in(t, "plain", nil))
		if err != nil {
			t.Fatal(err)
		}
		c, err := mysql.NewConnector(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}})
	outcomes := map[conformance.Outcome]int{}
	for _, r := range report.Results {
		outcomes[r.Outcome]++
		if r.Outcome == conformance.Failed {
			t.Errorf("%s: %s\n%s", r.Name, r.Explanation, r.Reason)
		}
	}
	t.Logf("%v", outcomes)
}
