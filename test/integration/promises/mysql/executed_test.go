package mysql_test

import (
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// An SQL string that MariaDB executes inside a block or after SET STATEMENT is refused as outside of it, whether the
// string names the table or concatenates its name.
func TestTextsThatAreExecuted(t *testing.T) {
	dsn := setup(t)
	plain, db := open(t, dsn), fence(t, dsn, sqlfence.RowFence("fence_token"))
	for _, query := range []string{
		"EXECUTE IMMEDIATE CONCAT('UPDATE bo', 'oks SET price = 99')",
		"BEGIN NOT ATOMIC EXECUTE IMMEDIATE CONCAT('UPDATE bo', 'oks SET price = 99'); END",
		"BEGIN NOT ATOMIC EXECUTE IMMEDIATE 'UPDATE books SET price = 99'; END",
		"BEGIN NOT ATOMIC DECLARE x INT; PREPARE p FROM CONCAT('UPDATE bo', 'oks SET price = 99'); EXECUTE p; END",
		"IF TRUE THEN EXECUTE IMMEDIATE CONCAT('UPDATE bo', 'oks SET price = 99'); END IF",
		"CASE WHEN TRUE THEN EXECUTE IMMEDIATE CONCAT('UPDATE bo', 'oks SET price = 99'); END CASE",
		"FOR i IN 1 .. 1 DO EXECUTE IMMEDIATE CONCAT('UPDATE bo', 'oks SET price = 99'); END FOR",
		"SET STATEMENT max_statement_time = 10 FOR EXECUTE IMMEDIATE CONCAT('UPDATE bo', 'oks SET price = 99')",
		"BINLOG 'SOgWTg8BAAAA'",
	} {
		refill(t, plain)
		_, err := db.ExecContext(holding(4), query)
		harness.WantError(t, err, sqlfence.ErrUnguardable)
		if count(t, plain, untouched) != 3 {
			t.Errorf("%s: rows have changed", query)
		}
	}
}
