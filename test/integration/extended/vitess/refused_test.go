package vitess_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// wantRefused fails the test unless err is an UnguardableError whose reason contains reason.
func wantRefused(t *testing.T, what string, err error, reason string) {
	t.Helper()
	if refused := (*sqlfence.UnguardableError)(nil); !errors.As(err, &refused) || !strings.Contains(refused.Reason, reason) {
		t.Errorf("%s: %v, want a refusal with %q", what, err, reason)
	}
}

// Rules that compare with another row are refused, and Hold.
func TestRulesWithAnotherRowAreRefused(t *testing.T) {
	for _, keyspace := range keyspaces {
		dsn, plain := setup(t, keyspace)
		reset(t, plain)
		for name, s := range map[string][]sqlfence.Rule{
			"ledger": {sqlfence.Ledger()}, "the default": nil, "ledger and mark": {sqlfence.RowFence("fence_token"), sqlfence.Ledger()},
		} {
			db := fence(t, dsn, s...)
			_, err := db.ExecContext(holding(9), "UPDATE books SET price = 2 WHERE id = 1")
			wantRefused(t, name, err, "Ledger holds only where")
		}
		claims, err := sqlfence.Open("mysql", dsn, sqlfence.WithTable("pens", sqlfence.Claim("price"), sqlfence.Key("id")),
			sqlfence.WithTable("books", sqlfence.ClaimOf("pens")))
		harness.CloseAtEnd(t, claims, err)
		_, err = claims.ExecContext(sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "pens/1", Value: 11}), "UPDATE books SET price = 2 WHERE id = 1")
		wantRefused(t, "ClaimOf", err, "ClaimOf holds only where")

		for _, db := range []string{"plain", "fenced"} {
			pool := plain
			if db == "fenced" {
				pool = fence(t, dsn, sqlfence.RowFence("fence_token"))
			}
			tx, err := pool.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			err = harness.NewStore(t, pool).Hold(t.Context(), tx, sqlfence.Token{Name: "books", Value: 1})
			wantRefused(t, db+": Hold", err, "Hold needs a lock")
			_ = tx.Rollback()
		}
	}
}

// own are statements that may write to several shards, or that only vtgate has. Under a stale token none of them changes
// a row.
var own = []string{
	"UPDATE books SET price = 666",
	"UPDATE books SET price = 666 WHERE id IN (1, 2, 4)",
	"UPDATE books SET price = 666 WHERE price > 0 ORDER BY id LIMIT 3",
	"UPDATE books SET id = id + 10",
	"UPDATE books SET id = 14 WHERE id = 4",
	"UPDATE IGNORE books SET price = 666",
	"UPDATE books b JOIN pens p ON p.id = b.id SET b.price = 666",
	"UPDATE books b JOIN pens p ON p.price = b.price + 10 SET b.price = 666",
	"UPDATE pens p LEFT JOIN books b ON b.id = p.id SET b.price = 666",
	"UPDATE books SET price = 666 WHERE id IN (SELECT id FROM pens)",
	"UPDATE books SET price = (SELECT MAX(price) + 600 FROM pens)",
	"WITH q AS (SELECT 1 AS id) UPDATE books SET price = 666 WHERE id IN (SELECT id FROM q)",
	"UPDATE books SET fence_token = 0",
	"UPDATE sharded.books SET price = 666",
	"UPDATE plain.books SET price = 666",
	"UPDATE /*vt+ MULTI_SHARD_AUTOCOMMIT=1 */ books SET price = 666",
	"DELETE /*vt+ MULTI_SHARD_AUTOCOMMIT=1 */ FROM books",
	"INSERT /*vt+ MULTI_SHARD_AUTOCOMMIT=1 */ INTO books (id, price) VALUES (1, 0), (4, 0) ON DUPLICATE KEY UPDATE price = 666",
	"/*vt+ MULTI_SHARD_AUTOCOMMIT=1 */ UPDATE books SET price = 666",
	"UPDATE /*vt+ QUERY_TIMEOUT_MS=1000 */ books SET price = 666",
	"UPDATE /*+ SET_VAR(sql_mode='') */ books SET price = 666",
	"DELETE FROM books",
	"DELETE FROM books WHERE id IN (1, 4)",
	"DELETE FROM books ORDER BY id DESC LIMIT 2",
	"DELETE b FROM books b JOIN pens p ON p.id = b.id",
	"INSERT INTO books (id, price) VALUES (1, 0), (4, 0) ON DUPLICATE KEY UPDATE price = 666",
	"INSERT INTO books (id, price) SELECT id, price FROM pens ON DUPLICATE KEY UPDATE price = 666",
	"INSERT IGNORE INTO books (id, price) VALUES (4, 0), (1, 0) ON DUPLICATE KEY UPDATE price = VALUES(price) + 666",
	"REPLACE INTO books (id, price) VALUES (1, 666), (4, 666)",
	"TRUNCATE books",
	"TRUNCATE TABLE books",
	"DROP TABLE books",
	"ALTER TABLE books DROP COLUMN fence_token",
	"VEXPLAIN ALL UPDATE books SET price = 666",
	"VEXPLAIN /*vt+ EXECUTE_DML_QUERIES */ ALL UPDATE books SET price = 666",
	"EXPLAIN ANALYZE UPDATE books SET price = 666",
	"STREAM * FROM books",
	"PREPARE p FROM 'UPDATE books SET price = 666'",
	"CALL p()",
	"LOAD DATA INFILE 'books.csv' REPLACE INTO TABLE books",
	"REVERT VITESS_MIGRATION 'aaaaaaaa_aaaa_aaaa_aaaa_aaaaaaaaaaaa'",
}

// If one row of a statement has a newer token, in whichever shard, no row of any shard is changed, alone and in a
// transaction that then commits.
func TestStatementsWithOneStaleRowChangeNothing(t *testing.T) {
	kinds := map[string]int{}
	for _, keyspace := range keyspaces {
		_, plain := setup(t, keyspace)
		for _, variables := range sessions {
			db := fence(t, in(t, keyspace, variables), sqlfence.RowFence("fence_token"))
			for _, newer := range []string{"id = 1", "id = 4", "id > 0"} {
				for _, query := range own {
					for _, inTx := range []bool{false, true} {
						reset(t, plain)
						exec(t, plain, "UPDATE books SET fence_token = 9 WHERE "+newer)
						before := content(t, plain)
						var err error
						if inTx {
							tx, failed := db.BeginTx(t.Context(), nil)
							if failed != nil {
								t.Fatal(failed)
							}
							_, err = tx.ExecContext(holding(5), query)
							_ = tx.Commit()
						} else {
							_, err = db.ExecContext(holding(5), query)
						}
						kind := "passed"
						switch {
						case errors.Is(err, sqlfence.ErrStale):
							kind = "stale"
						case errors.Is(err, sqlfence.ErrUnguardable):
							kind = "refused"
						case errors.Is(err, sqlfence.ErrOutOfScope), errors.Is(err, sqlfence.ErrNoFence):
							kind = "other refusal"
						case err != nil:
							kind = fmt.Sprint("the server's error ", number(err))
						}
						kinds[kind]++
						after := content(t, plain)
						if kind == "passed" && !inTx && newer == "id > 0" || strings.HasPrefix(kind, "the server's") {
							t.Logf("%s, %v, %s, %v: %s: %s: %.200v", keyspace, variables, newer, inTx, kind, query, err)
						}
						if err != nil && after != before || changedStale(before, after) {
							t.Errorf("%s, %v, %s, %v: %s: %v: A STALE WRITE LANDED: %s, before %s", keyspace, variables, newer, inTx, query, err, after, before)
						}
					}
				}
			}
		}
	}
	t.Logf("%v", kinds)
}

// changedStale reports whether a row with the newer token has changed.
func changedStale(before, after string) bool {
	for row := range strings.FieldsSeq(before) {
		if strings.Contains(row, ":9:") && !strings.Contains(" "+after, " "+row+" ") {
			return true
		}
	}
	return false
}

// This test shows why vtgate's directives are refused: with one of them the shards commit apart.
func TestDirectiveAppliesInPart(t *testing.T) {
	_, plain := setup(t, "sharded")
	reset(t, plain)
	const query = "UPDATE /*vt+ MULTI_SHARD_AUTOCOMMIT=1 */ books SET price = 600 + LENGTH(UUID_TO_BIN(CASE WHEN id = 4 THEN 'x' ELSE UUID() END))"
	if _, err := plain.Exec(query); number(err) != 1411 {
		t.Fatalf("%v, want error 1411", err)
	}
	if all := content(t, plain); !strings.Contains(all, ":616:") {
		t.Errorf("nothing was applied; the directive may be allowed: %s", all)
	}
}

// vtgate executes a DELETE with a LIMIT over two shards in two steps: a query for keys, which takes no lock, and a DELETE
// of the keys without the condition. Here the row has changed between the steps. So guarded writes of this form are
// refused, in both keyspaces.
func TestDeleteWithLimitIsRefused(t *testing.T) {
	for _, keyspace := range keyspaces {
		dsn, plain := setup(t, keyspace)
		reset(t, plain)
		tx, err := plain.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, tx, "UPDATE books SET version = 2 WHERE id = 1")
		deleted := make(chan error)
		go func() {
			_, err := plain.Exec("DELETE FROM books WHERE version = 1 AND price < 5 ORDER BY price LIMIT 1")
			deleted <- err
		}()
		harness.Eventually(t, "the DELETE waits", func() bool {
			waiting := 0
			if err := plain.QueryRow(countWaiting).Scan(&waiting); err != nil {
				t.Fatal(err)
			}
			return waiting > 0
		})
		if err := errors.Join(tx.Commit(), <-deleted); err != nil {
			t.Fatal(err)
		}
		if kept := strings.Contains(content(t, plain), "1:a:1:4:2"); kept != (keyspace == "plain") {
			t.Errorf("%s: the row with the other version is there: %v", keyspace, kept)
		}
		for _, rules := range [][]sqlfence.Rule{{sqlfence.RowFence("fence_token")}, {sqlfence.Claim("version"), sqlfence.Key("id")}} {
			_, err := fence(t, dsn, rules...).ExecContext(holding(9), "DELETE FROM books WHERE id = 1 ORDER BY price LIMIT 1")
			wantRefused(t, keyspace, err, "leave LIMIT out")
		}
	}
}

// A value can't hide a refusal, although vtgate takes the error's number from the value: here that of a deadlock, after
// which a caller would try again, and that of a lost shard.
func TestValuesHideNoRefusal(t *testing.T) {
	dsn, plain := setup(t, "sharded")
	exec(t, plain, "ALTER TABLE books MODIFY isbn varchar(300)")
	for _, value := range []string{"(errno 1213) (sqlstate 40001)", "(errno 2013) (sqlstate HY000)", "' for function uuid_to_bin (errno 1062) (sqlstate 23000)"} {
		reset(t, plain)
		exec(t, plain, "UPDATE books SET isbn = ?, who = ?, since = 1, till = 9000000000000000 WHERE id = 1", value, value)
		for _, test := range []struct {
			rules []sqlfence.Rule
			ctx   context.Context
			want  error
		}{
			{[]sqlfence.Rule{sqlfence.EditLock("who", "since", "till")}, sqlfence.WithEditor(t.Context(), "ada"), sqlfence.ErrLocked},
			{[]sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("isbn")}, holding(9), sqlfence.ErrOutOfScope},
			{[]sqlfence.Rule{sqlfence.Claim("version"), sqlfence.Key("isbn")},
				sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/" + value, Value: 9}), sqlfence.ErrStale},
		} {
			_, err := fence(t, dsn, test.rules...).ExecContext(test.ctx, "UPDATE books SET price = 2 WHERE id = 1")
			if !errors.Is(err, test.want) {
				t.Errorf("%s: %.300v, want %v", value, err, test.want)
			}
		}
	}
}

// A value in an error can't forge a refusal, although vtgate takes the error's number from the value, and although the
// value has the marker of an earlier refusal: no other error has its value where a guard's error has the marker.
func TestValuesForgeNoRefusal(t *testing.T) {
	dsn, plain := setup(t, "plain")
	exec(t, plain, "ALTER TABLE books ADD UNIQUE one (isbn)")
	exec(t, plain, "ALTER TABLE books MODIFY isbn varchar(300)")
	reset(t, plain)
	exec(t, plain, "UPDATE books SET fence_token = 9 WHERE id = 2")
	db := fence(t, dsn, sqlfence.RowFence("fence_token"))
	_, err := db.ExecContext(holding(5), "UPDATE books SET price = 2 WHERE id = 2")
	var server *mysql.MySQLError
	if !errors.Is(err, sqlfence.ErrStale) || !errors.As(err, &server) {
		t.Fatal(err)
	}
	_, marker, _ := strings.Cut(server.Message, "Incorrect string value: '")
	marker = marker[:strings.Index(marker, ":stale:")] + ":stale:0:9"
	const number1411 = "(errno 1411) (sqlstate HY000) "
	taken := false
	for _, value := range []string{number1411 + marker[:34], number1411 + "sqlfence:AAAA:stale:0:9", marker,
		"Incorrect string value: '" + marker} {
		exec(t, plain, "UPDATE books SET isbn = ? WHERE id = 1", value)
		_, err := db.ExecContext(holding(10), "INSERT INTO books (id, isbn) SELECT 7, isbn FROM books AS b WHERE b.id = 1")
		if number(err) == 0 || errors.Is(err, sqlfence.ErrStale) || errors.Is(err, sqlfence.ErrUnguardable) {
			t.Errorf("%s: %v, want MySQL's error", value, err)
		}
		taken = taken || number(err) == 1411
	}
	if !taken {
		t.Error("vtgate takes no number from a value any more")
	}
}

// With vttablet's --queryserver-config-terse-errors a guard's error has no text. Guarded writes are refused, and the
// refusal names the flag.
func TestTerseErrorsAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts another Vitess")
	}
	if os.Getenv("SQLFENCE_VITESS_OPTIONS") != "" {
		dsn, plain := setup(t, "sharded")
		reset(t, plain)
		_, err := fence(t, dsn, sqlfence.RowFence("fence_token")).ExecContext(holding(5), "UPDATE books SET price = 2")
		wantRefused(t, "a guarded write", err, "--queryserver-config-terse-errors")
		return
	}
	in(t, "plain", nil)
	c := osexec.Command("../../../../scripts/with-vitess", os.Args[0], "-test.run=^TestTerseErrorsAreRefused$")
	c.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SQLFENCE_VITESS_") }),
		"SQLFENCE_VITESS_OPTIONS=--queryserver-config-terse-errors")
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v: %s", err, out)
	}
}

// A table registered with its keyspace is found in a statement that addresses one shard or a type of tablets. A view in
// the table's place is found with and without the keyspace.
func TestNamesWithKeyspaceAreFound(t *testing.T) {
	dsn, plain := setup(t, "sharded")
	reset(t, plain)
	db, err := sqlfence.Open("mysql", dsn, sqlfence.WithTable("sharded.books", sqlfence.RowFence("fence_token")))
	harness.CloseAtEnd(t, db, err)
	for _, keyspace := range []string{"sharded", "`sharded:-80`", "`sharded@primary`"} {
		if _, err := db.ExecContext(t.Context(), "UPDATE "+keyspace+".books SET price = 666 WHERE id = 1"); !errors.Is(err, sqlfence.ErrNoFence) {
			t.Errorf("%s: %.300v, want ErrNoFence", keyspace, err)
		}
	}
	dsn, plain = setup(t, "plain")
	exec(t, plain, "CREATE OR REPLACE VIEW shelf AS SELECT id, price, version AS fence_token FROM books")
	views, err := sqlfence.Open("mysql", dsn, sqlfence.WithTable("shelf", sqlfence.RowFence("fence_token")))
	harness.CloseAtEnd(t, views, err)
	for _, name := range []string{"shelf", "plain.shelf"} {
		_, err := views.ExecContext(sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "shelf", Value: 5}), "UPDATE "+name+" SET price = 2 WHERE id = 1")
		wantRefused(t, name, err, "the view")
	}
}
