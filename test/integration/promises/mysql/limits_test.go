package mysql_test

import (
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// narrow are types of columns that can't store every token, with their highest numbers.
var narrow = map[string]int64{
	"tinyint": 127, "tinyint unsigned": 255, "smallint": 32767, "mediumint unsigned": 16777215, "int": 2147483647,
	"int unsigned": 4294967295, "int(5) zerofill": 4294967295, "decimal(9)": 999999999, "bigint": 0,
}

// In a sql_mode that isn't strict, and under IGNORE, the server stores a type's highest number instead of a higher
// number. So two holders would have the same token. Such a write is refused, in each mode, also if sql_select_limit cuts
// the rows in which the server describes the columns.
func TestNumbersAboveTheColumnsTypeAreRefused(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	for _, params := range []map[string]string{
		{"sql_mode": "''"}, {"sql_mode": "'NO_UNSIGNED_SUBTRACTION'"}, {"sql_mode": "'STRICT_TRANS_TABLES'"}, {"sql_mode": "'STRICT_ALL_TABLES'"},
		{"sql_mode": "'TRADITIONAL'"}, {"sql_mode": "''", "sql_select_limit": "0"}, {"sql_mode": "''", "sql_select_limit": "1"},
	} {
		moded := harness.MySQLWith(t, dsn, func(c *mysql.Config) { c.Params = params })
		for column, most := range narrow {
			top := most
			if most == 0 {
				top = 4294967295
			}
			exec(t, plain, "DROP TABLE IF EXISTS limited")
			exec(t, plain, "CREATE TABLE limited (id int PRIMARY KEY, n "+column+" NOT NULL DEFAULT 0, price int NOT NULL DEFAULT 0)")
			for _, c := range []struct {
				rules   []sqlfence.Rule
				queries []string
			}{
				{[]sqlfence.Rule{sqlfence.Claim("n"), sqlfence.Key("id")}, []string{
					"UPDATE limited SET n = n + 1 WHERE id = 1", "UPDATE IGNORE limited SET n = n + 7 WHERE id = 1",
					"INSERT INTO limited (id) VALUES (1) ON DUPLICATE KEY UPDATE n = n + 1",
					"UPDATE limited JOIN pens USING (id) SET limited.n = n + 1",
				}},
				{[]sqlfence.Rule{sqlfence.RowFence("n")}, []string{
					"UPDATE limited SET price = 1 WHERE id = 1", "UPDATE IGNORE limited SET price = 2 WHERE id = 1",
					"INSERT INTO limited (id) VALUES (2)", "INSERT IGNORE INTO limited (id) VALUES (2)",
					"INSERT INTO limited (id) VALUES (1) ON DUPLICATE KEY UPDATE price = 3",
				}},
				{[]sqlfence.Rule{sqlfence.Serial("n")}, []string{
					"UPDATE limited SET price = 1 WHERE id = 1", "UPDATE IGNORE limited SET price = 2, n = n + 1 WHERE id = 1",
					"INSERT IGNORE INTO limited (id) VALUES (1) ON DUPLICATE KEY UPDATE price = 3",
				}},
			} {
				db, err := sqlfence.Open("mysql", moded, sqlfence.WithTable("limited", c.rules...))
				harness.CloseAtEnd(t, db, err)
				exec(t, plain, "REPLACE INTO pens (id) VALUES (1)")
				for _, query := range c.queries {
					exec(t, plain, "DELETE FROM limited")
					exec(t, plain, "INSERT INTO limited (id, n) VALUES (1, ?)", top)
					ctx := of("limited", top+1)
					if c.queries[0] == "UPDATE limited SET n = n + 1 WHERE id = 1" {
						ctx = t.Context()
					}
					_, err := db.ExecContext(ctx, query)
					var highest, price int64
					row := plain.QueryRowContext(t.Context(), "SELECT MAX(n), MAX(price) FROM limited")
					if err := row.Scan(&highest, &price); err != nil {
						t.Fatal(err)
					}
					what := fmt.Sprintf("%s with %v: %s", column, params, query)
					switch {
					case most == 0 && (err != nil || highest <= top):
						t.Errorf("%s stores %d: %v", what, highest, err)
					case most > 0 && (err == nil || highest != top || price != 0):
						t.Errorf("%s stores %d: %v", what, highest, err)
					}
				}
			}
		}
	}
}

// In a table that sqlfence hasn't created the ledger's column may be narrow. Then no token is issued twice, either.
func TestNoTokenAboveTheLedgersColumnIsIssued(t *testing.T) {
	for _, mode := range []string{"", "STRICT_TRANS_TABLES"} {
		dsn := harness.MySQLDatabase(t)
		plain := open(t, dsn)
		exec(t, plain, "CREATE TABLE fencing_tokens (name varchar(99) PRIMARY KEY, token int unsigned NOT NULL)")
		exec(t, plain, "INSERT INTO fencing_tokens VALUES ('books', 4294967295)")
		moded := harness.MySQLWith(t, dsn, func(c *mysql.Config) { c.Params = map[string]string{"sql_mode": "'" + mode + "'"} })
		store, err := tokens.New(open(t, moded))
		if err != nil {
			t.Fatal(err)
		}
		for what, take := range map[string]func() (sqlfence.Token, error){
			"Issue": func() (sqlfence.Token, error) { return store.Issue(t.Context(), "books") },
		} {
			if token, err := take(); err == nil {
				t.Errorf("%s in the mode %q: %v", what, mode, token)
			}
		}
	}
}
