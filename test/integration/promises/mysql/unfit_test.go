package mysql_test

import (
	"strings"
	"testing"

	dialect "github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// MariaDB reads information_schema by opening tables. Setup's check of a table opens only this table, even if the
// server has thousands of tables.
func TestSetupChecksOneTableOnly(t *testing.T) {
	db := open(t, harness.MySQLDatabase(t))
	var mariadb bool
	if err := db.QueryRow("SELECT version() LIKE '%MariaDB%'").Scan(&mariadb); err != nil {
		t.Fatal(err)
	}
	if !mariadb {
		t.Skip("MySQL has a data dictionary")
	}
	query := dialect.Unfit("rowlocks", []dialect.Column{{Name: "row_key", Bytes: 255}, {Name: "user_id"}}, "table_name, row_key")
	rows, err := db.Query("EXPLAIN " + query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(*string)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		if extra := *values[len(values)-1].(**string); extra == nil {
			t.Errorf("line %d of the plan doesn't tell what it opens", lines+1)
		} else if !strings.Contains(*extra, "Scanned 0 databases") {
			t.Errorf("line %d of the plan opens tables of whole databases: %s", lines+1, *extra)
		}
		lines++
	}
	if err := rows.Err(); err != nil || lines != 4 { // the table, its columns and its indexes
		t.Errorf("%d lines, %v", lines, err)
	}
}
