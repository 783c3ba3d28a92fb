package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// refill stores books 1 to 3 with the token 5, and the ledger's token 5.
func refill(t testing.TB, db *sql.DB) {
	t.Helper()
	exec(t, db, "DELETE FROM books")
	exec(t, db, "INSERT INTO books (id, isbn, price, fence_token) VALUES (1, 'i1', 11, 5), (2, 'i2', 12, 5), (3, 'i3', 13, 5)")
	exec(t, db, "REPLACE INTO fencing_tokens VALUES ('books', 5), ('books/1', 5), ('books/7', 5)")
}

func count(t testing.TB, db *sql.DB, condition string) (n int) {
	t.Helper()
	if err := db.QueryRow("SELECT COUNT(*) FROM books WHERE " + condition).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// untouched is the condition of rows as refill has stored them.
const untouched = "id <= 3 AND isbn = CONCAT('i', id) AND price = 10 + id AND fence_token = 5"

// eachMode runs test in each mode, with the rules.
func eachMode(t *testing.T, test func(t *testing.T, plain, guarded *sql.DB), rules ...sqlfence.Rule) {
	dsn := setup(t)
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			test(t, open(t, m.with(t, dsn)), fence(t, m.with(t, dsn), rules...))
		})
	}
}

func TestReplaceByTheLedger(t *testing.T) {
	eachMode(t, func(t *testing.T, plain, guarded *sql.DB) {
		for _, query := range []string{
			"REPLACE INTO books (id, isbn, price) VALUES (?, 'i2', 1), (8, 'i8', 2)",
			"REPLACE books SET id = ?, isbn = 'i2', price = 1",
			"REPLACE LOW_PRIORITY books VALUES (1 + ?, 'i2', 1, 1, 't', 0, NULL, NULL)",
		} {
			for token, want := range map[int64]error{4: sqlfence.ErrStale, 5: nil, 6: sqlfence.ErrInvalid} {
				refill(t, plain)
				ctx := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books", Value: token})
				_, err := guarded.ExecContext(ctx, query, 1)
				same := count(t, plain, untouched) == 3
				switch {
				case want == nil && (err != nil || same):
					t.Errorf("%s, token %d: unchanged %v, %v", query, token, same, err)
				case want != nil && (err == nil || !same):
					t.Errorf("%s, token %d: unchanged %v, %v", query, token, same, err)
				case token == 4 && !errors.Is(err, want):
					t.Errorf("%s, token %d: %v", query, token, err)
				}
			}
		}
	}, sqlfence.Ledger())
}

// newRows are inserts that can only add rows.
var newRows = []string{
	"INSERT INTO books (isbn) VALUES (?)",
	"INSERT INTO books (id, isbn) VALUES (NULL, ?), (DEFAULT, 'x')",
	"INSERT INTO books SET isbn = ?",
	"INSERT INTO books SET id = 3 + 4, isbn = ?",
	"INSERT IGNORE INTO books (isbn) VALUES (?), ('i1')",
	"INSERT IGNORE INTO books (id, isbn) VALUES (1, 'i1'), (7, ?)",
	"INSERT INTO books (id, isbn) SELECT id + 6, ? FROM pens WHERE id = 1",
	"INSERT INTO books (id, isbn) VALUES (7, ?)",
}

// upserts may change row 1, and two of them its key.
var upserts = []string{
	"INSERT INTO books (isbn, price) VALUES ('i1', ?) ON DUPLICATE KEY UPDATE price = 1",
	"INSERT INTO books (id, isbn, price) VALUES (7, 'i1', ?) ON DUPLICATE KEY UPDATE price = 1",
	"INSERT INTO books (id, isbn, price) VALUES (7, 'i1', ?) ON DUPLICATE KEY UPDATE id = VALUES(id)",
	"INSERT INTO books (id, isbn, price) VALUES (3 + 4, 'i1', ?) ON DUPLICATE KEY UPDATE id = VALUES(id)",
	"INSERT INTO books SET isbn = 'i1', price = ? ON DUPLICATE KEY UPDATE price = 1",
	"INSERT IGNORE INTO books SET id = 7, isbn = 'i1', price = ? ON DUPLICATE KEY UPDATE id = 7",
	"INSERT IGNORE INTO books (isbn, price) SELECT 'i1', ? FROM pens ON DUPLICATE KEY UPDATE price = 1",
	"REPLACE INTO books (isbn, price) VALUES ('i1', ?)",
	"REPLACE INTO books SET id = 7, isbn = 'i1', price = ?",
}

func TestNewRows(t *testing.T) {
	for _, rule := range []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger()} {
		eachMode(t, func(t *testing.T, plain, guarded *sql.DB) {
			for _, query := range newRows {
				refill(t, plain)
				_, err := guarded.Exec(query, "i7")
				if err != nil {
					t.Errorf("%s: %v", query, err)
				}
				if added, marked, left := count(t, plain, "id > 3"), count(t, plain, "id > 3 AND fence_token > 0"), count(t, plain, untouched); added < 1 || marked > 0 || left != 3 {
					t.Errorf("%s: %d rows, %d of them with a mark; %d are left", query, added, marked, left)
				}
			}
			for _, query := range upserts {
				refill(t, plain)
				for _, ctx := range []context.Context{context.Background(), of("books/7", 9), of("books/2", 9)} {
					if _, err := guarded.ExecContext(ctx, query, 1); err == nil || count(t, plain, untouched) != 3 {
						t.Errorf("%s: %v, %d rows are left", query, err, count(t, plain, untouched))
					}
				}
			}
			// The row's token lets the upsert pass, and the upsert doesn't change the row's key.
			for i, query := range upserts {
				refill(t, plain)
				_, err := guarded.ExecContext(of("books/1", 5), query, 1)
				if i == 0 && err != nil || count(t, plain, "id = 1") != 1 {
					t.Errorf("%s: %v", query, err)
				}
			}
		}, rule, sqlfence.Key("id"), sqlfence.UnfencedInserts())
	}
}

func of(name string, value int64) context.Context {
	return sqlfence.WithFence(context.Background(), sqlfence.Token{Name: name, Value: value})
}

// A word that is a function without brackets isn't a column, so assigning the word to a key column of the same name
// assigns another key.
func TestKeysThatAreCalledAsFunctions(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	words := []string{"current_user", "current_date", "current_time", "current_timestamp", "current_role", "localtime", "localtimestamp",
		"utc_date", "utc_time", "utc_timestamp", "sysdate", "user", "rownum", "session_user", "system_user"}
	if rows, err := plain.Query("SELECT LOWER(word) FROM information_schema.keywords"); err == nil {
		defer rows.Close()
		for rows.Next() {
			var word string
			if err := rows.Scan(&word); err != nil {
				t.Fatal(err)
			}
			words = append(words, word)
		}
	}
	functions := 0
	for _, word := range words {
		var value sql.NullString
		if plain.QueryRow("SELECT "+word).Scan(&value) != nil {
			continue // the word is a column, or isn't valid alone
		}
		functions++
		for _, column := range []string{word, "`" + word + "`", "books." + word} {
			exec(t, plain, "DROP TABLE books")
			exec(t, plain, fmt.Sprintf("CREATE TABLE books (`%s` varchar(60), fence_token bigint)", word))
			exec(t, plain, "INSERT INTO books VALUES ('a', 1)")
			db, err := sqlfence.Open("mysql", dsn, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Key(word)))
			if err != nil {
				t.Fatal(err)
			}
			_, err = db.ExecContext(of("books/a", 2), "UPDATE books SET "+column+" = "+word)
			if db.Close(); count(t, plain, "`"+word+"` = 'a'") != 1 {
				t.Errorf("%s = %s is another key now, %v", column, word, err)
			}
		}
	}
	if functions < 5 {
		t.Errorf("only %d words are functions", functions)
	}
}

func TestKeyOfItself(t *testing.T) {
	eachMode(t, func(t *testing.T, plain, guarded *sql.DB) {
		for _, query := range []string{
			"UPDATE books SET id = id, price = 1 WHERE id = 1",
			"UPDATE books SET `id` = `id`, price = 1 WHERE id = 1",
			"UPDATE books AS b SET b.id = b.id, price = 1 WHERE id = 1",
			"INSERT INTO books (isbn, id) VALUES ('i1', 1) ON DUPLICATE KEY UPDATE id = id, price = 1",
			"INSERT INTO books (isbn, id) VALUES ('i1', 1) ON DUPLICATE KEY UPDATE id = books.id, price = 1",
		} {
			refill(t, plain)
			_, err := guarded.ExecContext(of("books/1", 4), query)
			harness.WantError(t, err, sqlfence.ErrStale)
			if _, err := guarded.ExecContext(of("books/1", 6), query); err != nil || count(t, plain, "id = 1 AND price = 1 AND fence_token = 6") != 1 {
				t.Errorf("%s: %v", query, err)
			}
			_, err = guarded.ExecContext(of("books/2", 9), query)
			harness.WantError(t, err, sqlfence.ErrOutOfScope)
		}
	}, sqlfence.RowFence("fence_token"), sqlfence.Key("id"))
}

// A string with two statements is refused, even if the driver would send it.
func TestTwoStatementsInOneText(t *testing.T) {
	dsn := harness.MySQLWith(t, setup(t), func(c *mysql.Config) { c.MultiStatements = true })
	plain, guarded := open(t, dsn), fence(t, dsn, sqlfence.RowFence("fence_token"))
	refill(t, plain)
	for _, query := range []string{
		"UPDATE books SET price = 1; UPDATE books SET price = 2",
		"SELECT 1; DELETE FROM books",
		"UPDATE books SET price = 1; SELECT 1",
	} {
		_, err := guarded.ExecContext(holding(9), query)
		harness.WantError(t, err, sqlfence.ErrUnguardable)
	}
	if count(t, plain, untouched) != 3 {
		t.Error("rows have changed")
	}
}

// With id = LAST_INSERT_ID(id) the driver returns the key of the found row. The function returns an unsigned integer,
// so the statement may store another key than the row's.
func TestKeyThatIsReturned(t *testing.T) {
	eachMode(t, func(t *testing.T, plain, guarded *sql.DB) {
		for query, returns := range map[string]bool{
			"INSERT INTO books (isbn, price) VALUES ('i1', 20) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), price = VALUES(price)": true,
			"INSERT INTO books (id, isbn) VALUES (1, 'x') ON DUPLICATE KEY UPDATE price = 20, id = last_insert_id(`books`.`id`)":       true,
			"UPDATE books SET price = 20, id = LAST_INSERT_ID(id) WHERE price IN (11, 12) ORDER BY price LIMIT 1":                      true,
		} {
			refill(t, plain)
			_, err := guarded.ExecContext(sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books/1", Value: 4}), query)
			if err == nil || count(t, plain, untouched) != 3 {
				t.Errorf("%s by an old token: %v", query, err)
			}
			r, err := guarded.ExecContext(sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books/1", Value: 5}), query)
			if err != nil {
				t.Errorf("%s: %v", query, err)
				continue
			}
			if id, err := r.LastInsertId(); returns && id != 1 || err != nil {
				t.Errorf("%s returned %d, %v", query, id, err)
			}
			if count(t, plain, "id = 1 AND price = 20") != 1 || count(t, plain, untouched) != 2 {
				t.Errorf("%s: other rows have changed", query)
			}
		}
	}, sqlfence.RowFence("fence_token"), sqlfence.Key("id"), sqlfence.UnfencedInserts())
}

func TestKeyThatIsReturnedAsAnother(t *testing.T) {
	dsn := setup(t)
	for _, rules := range [][]sqlfence.Rule{{sqlfence.RowFence("fence_token")}, {sqlfence.Ledger()}} {
		for _, m := range modes {
			plain, guarded := open(t, m.with(t, dsn)), fence(t, m.with(t, dsn), append(rules, sqlfence.Key("id"), sqlfence.UnfencedInserts())...)
			for _, key := range []string{"abc", "-1", "007", "1.5", ""} {
				for _, column := range []string{"varchar(20)", "bigint", "double"} {
					exec(t, plain, "DELETE FROM books")
					exec(t, plain, "ALTER TABLE books MODIFY id "+column)
					if _, err := plain.Exec("INSERT INTO books (id, isbn, price, fence_token) VALUES (?, 'i1', 11, 5)", key); err != nil {
						continue // the type doesn't accept this key
					}
					var stored string
					if err := plain.QueryRow("SELECT id FROM books").Scan(&stored); err != nil {
						t.Fatal(err)
					}
					exec(t, plain, "REPLACE INTO fencing_tokens VALUES (?, 5)", "books/"+stored)
					for _, query := range []string{"UPDATE books SET id = LAST_INSERT_ID(id), price = 12", "INSERT INTO books (id, isbn) VALUES (?, 'i1') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), price = 12"} {
						var args []any
						if query[0] == 'I' {
							args = append(args, stored)
						}
						_, err := guarded.ExecContext(sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books/" + stored, Value: 5}), query, args...)
						if n := count(t, plain, fmt.Sprintf("CAST(id AS CHAR) = '%s'", stored)); n != 1 {
							t.Errorf("%s, %s %q: the row has another key now: %v", query, column, stored, err)
						}
					}
				}
			}
		}
	}
}
