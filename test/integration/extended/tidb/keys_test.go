package tidb_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// keyTypes are types of a key column. Under most of them some of the keys a, A, á and a with a blank are equal.
var keyTypes = []string{
	"varchar(20) COLLATE utf8mb4_bin", "varchar(20) COLLATE utf8mb4_general_ci", "varchar(20) COLLATE utf8mb4_unicode_ci",
	"varchar(20) COLLATE utf8mb4_0900_ai_ci", "varchar(20) COLLATE utf8mb4_0900_bin", "varchar(20) COLLATE utf8_general_ci",
	"varchar(20) COLLATE utf8_bin", "varchar(20) COLLATE latin1_bin", "varchar(20) COLLATE ascii_bin",
	"varchar(20) COLLATE gbk_chinese_ci", "varchar(20) COLLATE gbk_bin", "varbinary(20)",
	"char(20) COLLATE utf8mb4_bin", "char(20) COLLATE utf8mb4_general_ci", "text COLLATE utf8mb4_general_ci",
	"text COLLATE utf8mb4_bin", "enum('a', 'b') COLLATE utf8mb4_general_ci", "set('a', 'b') COLLATE utf8mb4_general_ci",
}

// keyConstants are expressions for the key a, with different collations and coercibilities.
var keyConstants = []string{
	"'a'", "'A'", "'a '", "?", "_latin1'a'", "_binary'a'", "CAST('a' AS CHAR)", "CAST('A' AS CHAR)", "CAST(? AS CHAR)",
	"CAST('a' AS CHAR CHARACTER SET latin1)", "CONVERT('a' USING utf8mb4)", "CONVERT('a' USING ascii)", "CONCAT('a')",
	"CONVERT('a' USING gbk)", "LOWER('A')", "(SELECT isbn FROM names LIMIT 1)", "(SELECT MAX(isbn) FROM names WHERE id = 1)",
	"'a' COLLATE utf8mb4_bin", "'a' COLLATE utf8mb4_general_ci", "'a' COLLATE utf8mb4_unicode_ci",
	"'a' COLLATE utf8mb4_0900_ai_ci", "CAST('a' AS CHAR) COLLATE utf8mb4_general_ci", "JSON_UNQUOTE('\"a\"')",
}

// keyWrites are writes with %s for a constant, and queries for the keys that they write.
var keyWrites = []struct{ write, keys string }{
	{"DELETE FROM books WHERE isbn = %s", "SELECT isbn FROM books WHERE isbn = %s"},
	{"DELETE FROM books WHERE price < 5 AND %s = isbn", "SELECT isbn FROM books WHERE price < 5 AND %s = isbn"},
	{"DELETE FROM books WHERE isbn IN (%s)", "SELECT isbn FROM books WHERE isbn IN (%s)"},
	{"DELETE FROM books WHERE isbn = %s OR price = 9", "SELECT isbn FROM books WHERE isbn = %s OR price = 9"},
	{"DELETE b FROM books b JOIN names n ON n.id = 1 WHERE b.isbn = %s",
		"SELECT b.isbn FROM books b JOIN names n ON n.id = 1 WHERE b.isbn = %s"},
	{"DELETE b FROM books b JOIN names n ON n.isbn = b.isbn WHERE n.isbn = %s AND n.id = 1",
		"SELECT b.isbn FROM books b JOIN names n ON n.isbn = b.isbn WHERE n.isbn = %s AND n.id = 1"},
	{"UPDATE books SET price = 8 WHERE isbn = %s", "SELECT isbn FROM books WHERE isbn = %s"},
	{"UPDATE books b JOIN names n ON n.id = 1 SET b.price = 8 WHERE b.isbn = %s",
		"SELECT b.isbn FROM books b JOIN names n ON n.id = 1 WHERE b.isbn = %s"},
}

// A write under a token of the key a changes no row with another key that the column's collation considers equal. The
// write fails if it finds such a row, and lands if it finds none. TiDB replaces a column by a constant in WHERE.
func TestWriteReachesNoKeyThatItsCollationConsidersEqual(t *testing.T) {
	dsn := empty(t)
	landed, refused := 0, 0
	for i, collation := range []string{"utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_0900_ai_ci"} {
		config := func(c *mysql.Config) { c.Collation = collation }
		plain := open(t, harness.MySQLWith(t, dsn, config))
		if err := plain.Ping(); err != nil {
			t.Logf("%s: %v", collation, err)
			continue
		}
		dbs := map[string]*sql.DB{
			"row fence": fence(t, harness.MySQLWith(t, dsn, config), sqlfence.RowFence("fence_token"), sqlfence.Key("isbn")),
			"claim":     fence(t, harness.MySQLWith(t, dsn, config), sqlfence.Claim("fence_token"), sqlfence.Key("isbn")),
		}
		ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/a", Value: 7})
		for _, kind := range keyTypes {
			exec(t, plain, "DROP TABLE IF EXISTS books, names")
			key := map[bool]string{true: "isbn(9)", false: "isbn"}[strings.HasPrefix(kind, "text")]
			if _, err := plain.Exec("CREATE TABLE books (id bigint PRIMARY KEY, isbn " + kind + ", price bigint, fence_token bigint NOT NULL DEFAULT 7, KEY (" + key + "))"); err != nil {
				t.Logf("%s: %v", kind, err)
				continue
			}
			exec(t, plain, "CREATE TABLE names (id bigint PRIMARY KEY, isbn "+kind+", KEY ("+key+"))")
			fill := func(rows ...int) {
				for _, table := range []string{"names (id, isbn)", "books (id, isbn, price)"} {
					exec(t, plain, "DELETE FROM "+strings.Fields(table)[0])
					for n, text := range []string{"a", "A", "a ", "á", "b"} {
						if slices.Contains(rows, n) || strings.HasPrefix(table, "names") {
							_, _ = plain.Exec("INSERT IGNORE INTO "+table+" VALUES (?, ?"+strings.Repeat(", 1", strings.Count(table, ",")-1)+")", n+1, text)
						}
					}
				}
			}
			content := func() (all string) {
				t.Helper()
				if err := plain.QueryRow("SELECT COALESCE(GROUP_CONCAT(CONCAT_WS(':', id, HEX(isbn), price) ORDER BY id), '') FROM books").Scan(&all); err != nil {
					t.Fatal(err)
				}
				return all
			}
			for _, rows := range [][]int{{0}, {0, 1, 2, 3, 4}} {
				fill(rows...)
				full := content()
				for j, w := range keyWrites {
					if i > 0 && j > 0 {
						break
					}
					for _, constant := range keyConstants {
						var args []any
						if strings.Contains(constant, "?") {
							args = []any{"a"}
						}
						written, exact, err := countKeys(plain, fmt.Sprintf(w.keys, constant), args)
						if err != nil {
							continue // the collations can't be compared
						}
						for rule, db := range dbs {
							if rule == "claim" && j > 0 {
								continue
							}
							query := fmt.Sprintf(w.write, constant)
							_, err := db.ExecContext(ctx, query, args...)
							after := content()
							wrong := ""
							switch {
							case err == nil && !exact:
								wrong = "IT HAS REACHED ANOTHER KEY"
							case err != nil && (after != full || !errors.Is(err, sqlfence.ErrOutOfScope)):
								wrong = "not all or nothing"
							case err != nil && exact && !looksForeign(constant):
								wrong = "refused"
							case err == nil && (written > 0) != (after != full):
								wrong = "it has written other rows"
							}
							if wrong != "" {
								t.Errorf("%s, %s, rows %v, %s: %s: %s: %v; it left %s of %s", collation, kind, rows, rule, query, wrong, err, after, full)
							}
							if err != nil {
								refused++
							} else if written > 0 {
								landed++
							}
							if after != full {
								fill(rows...)
							}
						}
					}
				}
			}
		}
	}
	if landed == 0 || refused == 0 {
		t.Errorf("%d landed and %d refused: the test tests nothing", landed, refused)
	}
	t.Logf("%d writes landed, %d were refused", landed, refused)
}

// looksForeign reports whether a constant is another text than the token's key, so that a write may be refused before
// it is sent.
func looksForeign(constant string) bool { return constant == "'A'" || constant == "'a '" }

// countKeys returns the number of keys of a query, and whether each of them is exactly a.
func countKeys(db *sql.DB, query string, args []any) (n int, exact bool, err error) {
	rows, err := db.Query("SELECT CONVERT(isbn USING utf8mb4) FROM ("+query+") AS found", args...)
	if err != nil {
		return 0, false, err
	}
	defer rows.Close()
	exact = true
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return 0, false, err
		}
		n++
		exact = exact && key == "a"
	}
	return n, exact, rows.Err()
}

// A write that presents the claim of another table's row is compared with the row of exactly this key, whatever other
// keys the collation considers equal.
func TestClaimOfReadsNoKeyThatItsCollationConsidersEqual(t *testing.T) {
	for _, kind := range keyTypes[:9] {
		dsn, plain := setup(t)
		exec(t, plain, "DROP TABLE pens")
		if _, err := plain.Exec("CREATE TABLE pens (code " + kind + ", claim bigint NOT NULL, KEY (code))"); err != nil {
			t.Logf("%s: %v", kind, err)
			continue
		}
		db, err := sqlfence.Open("mysql", dsn, sqlfence.WithTable("pens", sqlfence.Claim("claim"), sqlfence.Key("code")),
			sqlfence.WithTable("books", sqlfence.ClaimOf("pens")))
		harness.CloseAtEnd(t, db, err)
		ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "pens/a", Value: 7})
		exec(t, plain, "INSERT INTO pens VALUES ('A', 9), ('a ', 5)")
		reset(t, plain)
		for claim, want := range map[int64]error{0: sqlfence.ErrStale, 7: nil, 8: sqlfence.ErrStale} {
			if claim > 0 {
				exec(t, plain, "INSERT INTO pens VALUES ('a', ?)", claim)
			}
			if _, err := db.ExecContext(ctx, "UPDATE books SET price = 3 WHERE id = 1"); !errors.Is(err, want) {
				t.Errorf("%s: claim %d: %v, want %v", kind, claim, err, want)
			}
			exec(t, plain, "DELETE FROM pens WHERE HEX(code) = '61'")
		}
	}
}
