package mysql_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// unasked are INSERT ... SELECT statements whose query would replace the ledger by a CTE, or would return a row without
// evaluating the WHERE that contains the ledger's check.
var unasked = []string{
	"INSERT INTO books (id, price) WITH fencing_tokens AS (SELECT CAST('books' AS BINARY) AS name, 5 AS token) SELECT id + 6, 1 FROM pens",
	"INSERT INTO books (id, price) WITH `FENCING_TOKENS` (name, token) AS (SELECT CAST('books' AS BINARY), 5) SELECT id + 6, 1 FROM pens",
	"INSERT INTO books (id, price) WITH RECURSIVE a AS (SELECT 1), fencing_tokens (name, token) AS (SELECT CAST('books' AS BINARY), 5) SELECT id + 6, 1 FROM pens",
	"INSERT INTO books (id, price) WITH `fencing_to\u212Aens` (name, token) AS (SELECT CAST('books' AS BINARY), 5) SELECT id + 6, 1 FROM pens",
	"INSERT INTO books (id, price) WITH fenc\u0130ng_tokens (name, token) AS (SELECT CAST('books' AS BINARY), 5) SELECT id + 6, 1 FROM pens",
	"INSERT INTO books (id, price) WITH fenc\u0131ng_tokens (name, token) AS (SELECT CAST('books' AS BINARY), 5) SELECT id + 6, 1 FROM pens",
	"INSERT INTO books (id, price) SELECT 7, 1 FROM pens WHERE 1 = 0 GROUP BY grp WITH ROLLUP",
	"INSERT INTO books (id, price) SELECT 7, 1 FROM pens WHERE 1 = 0 GROUP BY ROLLUP (grp)",
	"INSERT INTO books (id, price) SELECT 7, 1 FROM pens WHERE 1 = 0 GROUP BY ''",
	"INSERT INTO books (id, price) SELECT 7, 1 EXCEPT SELECT 8, 1 FROM pens WHERE 1 = 0",
	"INSERT INTO books (id, price) SELECT 7, 1 FROM pens WHERE 1 = 0 INTERSECT SELECT 7, 1 UNION SELECT 8, 1",
	"INSERT INTO books (id, price) SELECT own.round(price), 1 FROM pens WHERE 1 = 0",
	"INSERT INTO books (id, price) SELECT 7, COALESCE(trim (price), 1) FROM pens WHERE 1 = 0",
}

// No query on the ledger lets an INSERT pass whose token isn't the newest.
func TestQueriesThatAnswerForTheLedger(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	exec(t, plain, "REPLACE INTO fencing_tokens VALUES ('books', 9)")
	var own string
	if err := plain.QueryRow("SELECT DATABASE()").Scan(&own); err != nil {
		t.Fatal(err)
	}
	const aggregate = "CREATE AGGREGATE FUNCTION round(x int) RETURNS int BEGIN DECLARE EXIT HANDLER FOR NOT FOUND RETURN 7; LOOP FETCH GROUP NEXT ROW; END LOOP; END"
	if _, err := plain.Exec(strings.Replace(aggregate, "round", own+".round", 1)); err != nil && number(err) != 1064 { // not in MySQL
		t.Fatal(err)
	}
	for _, m := range modes {
		for _, rules := range []string{"ledger", "both"} {
			db := fence(t, m.with(t, dsn), rulesets[rules]...)
			for _, query := range unasked {
				_, err := db.ExecContext(holding(5), strings.Replace(query, "own.", own+".", 1))
				if n := count(t, plain, "TRUE"); n != 0 {
					t.Errorf("%s/%s: %s: %v, %d STALE ROWS LANDED", m.name, rules, query, err, n)
				}
				exec(t, plain, "DELETE FROM books")
			}
			exec(t, db, "INSERT INTO pens (id) SELECT 9 FROM pens WHERE id = 1")
			exec(t, plain, "DELETE FROM pens WHERE id = 9")
			const named = "INSERT INTO books (id, price) WITH a AS (SELECT 7 AS id) SELECT id, 1 FROM a"
			if _, err := db.ExecContext(holding(9), named); err != nil {
				t.Errorf("%s/%s: %v", m.name, rules, err)
			}
			exec(t, plain, "DELETE FROM books")
		}
	}
}

// MariaDB releases the lock of the ledger's row at XA PREPARE, so XA PREPARE is refused in a transaction that the
// ledger guards. One-phase commits pass, as do transactions without the ledger.
func TestPreparedTransactions(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	exec(t, plain, "REPLACE INTO fencing_tokens VALUES ('books', 5)")
	for name, tt := range map[string]struct {
		rules   []sqlfence.Rule
		prepare string
		refused bool
	}{
		"ledger":    {rulesets["ledger"], "XA PREPARE 'sqlfence'", true},
		"both":      {rulesets["both"], "xa /* */ prepare 'sqlfence'", true},
		"row":       {rulesets["row"], "XA PREPARE 'sqlfence'", false},
		"one phase": {rulesets["ledger"], "", false},
	} {
		exec(t, plain, "REPLACE INTO books (id, price, fence_token) VALUES (1, 1, 1)")
		conn, err := fence(t, dsn, tt.rules...).Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		exec(t, conn, "XA START 'sqlfence'")
		if _, err := conn.ExecContext(holding(5), "UPDATE books SET price = 7 WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		exec(t, conn, "XA END 'sqlfence'")
		phase := " ONE PHASE"
		if tt.prepare != "" {
			_, err := conn.ExecContext(context.Background(), tt.prepare)
			if errors.Is(err, sqlfence.ErrUnguardable) != tt.refused {
				t.Errorf("%s: %v", name, err)
			}
			if err == nil {
				phase = ""
			}
		}
		exec(t, conn, "XA COMMIT 'sqlfence'"+phase)
		if n := count(t, plain, "price = 7"); n != 1 {
			t.Errorf("%s: %d books", name, n)
		}
	}
}
