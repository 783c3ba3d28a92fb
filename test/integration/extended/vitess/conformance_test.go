package vitess_test

import (
	"database/sql/driver"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence/conformance"
)

// empty drops all tables of a keyspace.
func empty(t testing.TB, keyspace string) {
	t.Helper()
	plain := open(t, in(t, keyspace, nil))
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

// skipped are the checks of rules that are refused on Vitess.
var skipped = map[string]string{
	"ledger":                  "Ledger is refused",
	"unissued tokens":         "Ledger is refused",
	"unknown name":            "Ledger is refused",
	"claims of another table": "ClaimOf is refused",
}

// unequal are the checks that fail on a registered table, because vttablet appends the statement to an error. The first
// fails also because too few arguments are an error of vtgate about a shard, which sqlfence takes for an unknown outcome.
var unequal = []string{"argument counts/registered", "errors in transactions/registered", "errors/registered",
	"isolation levels/registered", "pool/registered", "prepared statements/registered", "results/registered",
	"values/registered", "valuers/registered"}

// appended is the statement in an error.
var appended = regexp.MustCompile(`Sql: .*" \*mysql\.`)

// The conformance suite passes in the keyspace of one shard, except for rules that are refused, and for the text that
// vttablet appends to errors.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute")
	}
	logger := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // tokens warns for each database, because vtgate creates no triggers
	defer slog.SetDefault(logger)
	report := conformance.Check(t, conformance.Harness{Skip: skipped, Connector: func(t testing.TB) driver.Connector {
		t.Helper()
		empty(t, "plain")
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
			t.Logf("%s failed", r.Name)
			if !slices.Contains(unequal, r.Name) || r.Name != unequal[0] && !equalUpToStatement(r.Reason) {
				t.Errorf("%s: %s\n%s", r.Name, r.Explanation, r.Reason)
			}
		}
	}
	t.Logf("%v", outcomes)
	if outcomes[conformance.Passed] < 5*outcomes[conformance.Failed] {
		t.Error("too little was checked")
	}
}

// equalUpToStatement reports whether the results with sqlfence equal the driver's except for the statement that vttablet
// appends to an error.
func equalUpToStatement(reason string) bool {
	var alone string
	for line := range strings.SplitSeq(reason, "\n") {
		line = appended.ReplaceAllString(strings.TrimSpace(line), "")
		if result, found := strings.CutPrefix(line, "driver alone: "); found {
			alone = result
		} else if result, found := strings.CutPrefix(line, "with sqlfence, books registered: "); found && result != alone {
			return false
		}
	}
	return alone != ""
}
