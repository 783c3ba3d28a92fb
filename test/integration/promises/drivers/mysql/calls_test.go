package mysql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// Through sqlfence go-sql-driver/mysql executes statements in the same way, and returns the same results.

// With arguments the driver's connection refuses to execute with ErrSkip. database/sql compares with ErrSkip, and then
// prepares the statement.
func TestMySQLErrSkip(t *testing.T) {
	calls := func(db *sql.DB, c *harness.Counter) []harness.Call {
		t.Helper()
		if _, err := db.Exec("CREATE TABLE pens (id INT PRIMARY KEY, price INT)"); err != nil {
			t.Fatal(err)
		}
		for way, run := range harness.Ways {
			if err := run(t.Context(), db, "DELETE FROM pens WHERE id = ?", 1); err != nil {
				t.Errorf("%s: %v", way, err)
			}
		}
		c.Reset()
		if _, err := db.Exec("INSERT INTO pens VALUES (?, ?)", 1, 10); err != nil {
			t.Fatal(err)
		}
		if n := countRows(t, db, "SELECT count(*) FROM pens WHERE price = ?", 10); n != 1 {
			t.Errorf("%d pens", n)
		}
		return c.Calls()
	}
	rawCounter := new(harness.Counter)
	raw := calls(harness.CloseAtEnd(t, sql.OpenDB(harness.MySQL.Counting(t, harness.MySQLDatabase(t), rawCounter)), nil), rawCounter)
	fenced := calls(harness.MySQL.Counted(t, harness.MySQLDatabase(t)))
	if !reflect.DeepEqual(raw, fenced) {
		t.Errorf("fenced: %v\n   raw: %v", fenced, raw)
	}
	var kinds []string
	for _, c := range fenced {
		kinds = append(kinds, c.Kind)
	}
	if got := fmt.Sprint(kinds); got != "[exec prepare stmt exec query prepare stmt query]" {
		t.Errorf("calls: %s", got)
	}

	harness.OnConn(t, harness.MySQL.Fenced(t, harness.MySQLDatabase(t)), func(c driver.Conn) {
		args := []driver.NamedValue{{Ordinal: 1, Value: int64(1)}}
		if _, err := c.(driver.ExecerContext).ExecContext(t.Context(), "DO ?", args); err != driver.ErrSkip {
			t.Errorf("ExecContext: %v, want ErrSkip bare", err)
		}
		if _, err := c.(driver.QueryerContext).QueryContext(t.Context(), "SELECT ?", args); err != driver.ErrSkip {
			t.Errorf("QueryContext: %v, want ErrSkip bare", err)
		}
	})
}

// A row that an UPDATE leaves unchanged doesn't count, unless clientFoundRows is set.
func TestMySQLRowsAffected(t *testing.T) {
	for _, tt := range []struct {
		change func(*mysql.Config)
		want   string
	}{
		{nil, "1; 0; 1; 0; "},
		{func(c *mysql.Config) { c.ClientFoundRows = true }, "1; 1; 1; 0; "},
		{func(c *mysql.Config) { c.InterpolateParams = true }, "1; 0; 1; 0; "},
	} {
		besideMySQL(t, tt.change, tt.want, func(t *testing.T, db *sql.DB) string {
			var seen []any
			for _, args := range [][]any{{20, 1}, {20, 1}, {30, 1}, {30, 99}} {
				if len(seen) == 0 {
					if _, err := db.Exec("INSERT INTO pens (id, price) VALUES (?, ?)", 1, 10); err != nil {
						t.Fatal(err)
					}
				}
				n, err := harness.Affected(db.Exec("UPDATE pens SET price = ? WHERE id = ?", args...))
				if err != nil {
					t.Fatal(err)
				}
				seen = append(seen, n)
			}
			return saw(seen...)
		})
	}
}

// resultOf executes a query on a driver's connection, and returns the results that the driver's manual describes.
func resultOf(ctx context.Context, c any, query string) string {
	res, err := c.(driver.ExecerContext).ExecContext(ctx, query, nil)
	if err != nil {
		return err.Error()
	}
	all, ok := res.(mysql.Result)
	if !ok {
		return fmt.Sprintf("%T is no mysql.Result", res)
	}
	return fmt.Sprint(all.AllRowsAffected(), all.AllLastInsertIds())
}

// The results of several statements in one text are in the driver's own result. Conn.Raw gives it, on sqlfence's
// connection as on the driver's.
func TestMySQLAllRowsAffected(t *testing.T) {
	const query = "INSERT INTO pens (price) VALUES (1), (2); UPDATE pens SET price = 3; DELETE FROM pens WHERE id = 1"
	several := func(c *mysql.Config) { c.MultiStatements = true }
	besideMySQL(t, several, "[2 2 1] [1 0 0]; ", func(t *testing.T, db *sql.DB) (seen string) {
		harness.OnConn(t, db, func(c driver.Conn) { seen = saw(resultOf(t.Context(), c, query)) })
		return seen
	})
	besideMySQL(t, several, "[2 2 1] [1 0 0]; ", func(t *testing.T, db *sql.DB) (seen string) {
		harness.OnConn(t, db, func(c driver.Conn) {
			if fenced, ok := c.(interface{ Raw() driver.Conn }); ok {
				c = fenced.Raw()
			}
			seen = saw(resultOf(t.Context(), c, query))
		})
		return seen
	})
}

func TestMySQLMultiStatements(t *testing.T) {
	const query = "INSERT INTO pens (price) VALUES (7), (8); SELECT id, price FROM pens ORDER BY id; SELECT 'two' AS word"
	run := func(t *testing.T, db *sql.DB) string {
		if _, err := db.Exec("DELETE FROM pens; ALTER TABLE pens AUTO_INCREMENT = 5"); err != nil {
			return err.Error()
		}
		n, err := harness.Affected(db.Exec("UPDATE pens SET price = 1; INSERT INTO pens (price) VALUES (1), (2), (3)"))
		return saw(n, err, harness.Describe(db.Query(query)))
	}
	several := func(c *mysql.Config) { c.MultiStatements = true }
	for _, change := range []func(*mysql.Config){nil, several} {
		want := run(t, mysqlPens(t, change))
		if (change == nil) != strings.Contains(want, "Error 1064") || (change != nil) != strings.Contains(want, "next result") {
			t.Errorf("the driver alone: %s", want)
		}
		besideMySQL(t, change, want, run)
	}
}
