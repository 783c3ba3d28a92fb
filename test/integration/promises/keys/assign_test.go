package keys_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// With Key a statement may assign a row the key that it has, as ORMs do that save all columns, but no other key.

// keyFences are the rules that compare tokens in a table where each row has a token of its own.
var keyFences = []struct {
	name  string
	rules []sqlfence.Rule
}{
	{"row fence", []sqlfence.Rule{sqlfence.RowFence("fence_token")}},
	{"ledger", []sqlfence.Rule{sqlfence.Ledger()}},
	{"both", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger()}},
}

// eachISBNKeyed runs test for books with a token for each ISBN, and with the stored token 5.
func eachISBNKeyed(t *testing.T, test func(t *testing.T, sh *harness.Shop)) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, fence := range keyFences {
			t.Run(fence.name, func(t *testing.T) {
				test(t, harness.Setting{Base: b}.Shop(t, append(fence.rules, sqlfence.Key("isbn"))...))
			})
		}
	})
}

// resetISBNs is reset, with 5 as the newest token of each key.
func resetISBNs(t *testing.T, s *harness.Shop) {
	t.Helper()
	s.Reset(t, 5, "i1", "i2", "i3", "i7", "i9", "I2")
}

// isbns returns the books as "id:isbn:price".
func isbns(t testing.TB, s *harness.Shop) string {
	t.Helper()
	rows, err := s.Plain.Query("SELECT id, COALESCE(CAST(isbn AS text), 'NULL'), price FROM books ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var id, price int
		var isbn string
		if err := rows.Scan(&id, &isbn, &price); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%d:%s:%d", id, isbn, price))
	}
	return strings.Join(all, " ")
}

func holdingISBNs(t testing.TB, value int64, keys ...string) context.Context {
	ctx := t.Context()
	for _, key := range keys {
		ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: "books/" + key, Value: value})
	}
	return ctx
}

const isbnsAtStart = "1:i1:10 2:i2:10 3:i3:10"

var keyKeepers = []harness.Write{
	{Name: "update", Query: "UPDATE books SET isbn = $1, price = $2 WHERE id = $3", Args: []any{"i2", 30, 2}},
	{Name: "update of constants", Query: "UPDATE books SET price = 30, \"isbn\" = 'i2' WHERE id = 2", Args: nil},
	{Name: "update of all with the key", Query: "UPDATE books SET isbn = $1, price = 30 WHERE isbn = $2", Args: []any{"i2", "i2"}},
	{Name: "upsert", Query: "INSERT INTO books (id, isbn, price) VALUES ($1, $2, 30) ON CONFLICT (id) DO UPDATE SET isbn = $3, price = 30", Args: []any{2, "i2", "i2"}},
	{Name: "upsert of the excluded", Query: "INSERT INTO books (id, isbn, price) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET isbn = excluded.isbn, price = excluded.price", Args: []any{2, "i2", 30}},
	{Name: "upsert of the excluded, by the key", Query: `INSERT INTO books (id, isbn, price) VALUES ($1, $2, $3) ON CONFLICT (isbn) DO UPDATE SET "isbn" = "excluded"."isbn", price = excluded.price WHERE books.price < $4`, Args: []any{8, "i2", 30, 99}},
	{Name: "upsert without the primary key", Query: "INSERT INTO books (isbn, price) VALUES ($1, 30) ON CONFLICT (isbn) DO UPDATE SET isbn = excluded.isbn, price = 30", Args: []any{"i2"}},
}

func TestKeyMayBeAssignedToItself(t *testing.T) {
	eachISBNKeyed(t, func(t *testing.T, sh *harness.Shop) {
		if sh.Dialect == sqlfence.Postgres { // SQLite numbers new rows by itself
			sh.Exec(t, "CREATE SEQUENCE ids START 100")
			sh.Exec(t, "ALTER TABLE books ALTER id SET DEFAULT nextval('ids')")
		} else if sh.Dialect == sqlfence.MySQL {
			sh.Exec(t, "ALTER TABLE books MODIFY id integer AUTO_INCREMENT")
		}
		resetISBNs(t, sh)
		keepers := sh.Runnable(t, keyKeepers)
		sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
			for _, w := range keepers {
				resetISBNs(t, sh)
				if n, err := send(holdingISBNs(t, 5, "i2"), w); n == 0 || err != nil {
					t.Errorf("%s: %d rows, %v", w.Name, n, err)
				}
				if got := isbns(t, sh); got != "1:i1:10 2:i2:30 3:i3:10" {
					t.Errorf("%s left %s", w.Name, got)
				}
				resetISBNs(t, sh)
				unchanged := sh.Unchanged(t)
				_, err := send(holdingISBNs(t, 4, "i2"), w)
				harness.WantError(t, err, sqlfence.ErrStale)
				_, err = send(holdingISBNs(t, 5, "i9"), w)
				harness.WantError(t, err, sqlfence.ErrOutOfScope)
				_, err = send(holdingISBNs(t, 5, "i2", "i9"), w)
				harness.WantError(t, err, sqlfence.ErrUnguardable)
				_, err = send(t.Context(), w)
				harness.WantError(t, err, sqlfence.ErrNoFence)
				unchanged()
				if t.Failed() {
					t.Fatalf("by %s", w.Name)
				}
			}
		})
	})
}

// A statement may assign the key column to itself, as upserts do for the sake of RETURNING. Then every row keeps its
// key, with any tokens in the context.
func TestKeyMayBeAssignedByItsName(t *testing.T) {
	eachISBNKeyed(t, func(t *testing.T, sh *harness.Shop) {
		sh.EachForm(t, func(t *testing.T, send func(context.Context, harness.Write) (int64, error)) {
			for _, w := range sh.Runnable(t, []harness.Write{
				{Name: "update", Query: "UPDATE books SET isbn = isbn, price = $1 WHERE id = 2", Args: []any{30}},
				{Name: "update from another table", Query: "UPDATE books SET isbn = books.isbn, price = $1 FROM (SELECT 1 AS n) AS p WHERE books.id = 2 AND p.n = 1", Args: []any{30}},
				{Name: "upsert", Query: "INSERT INTO books (isbn, id) VALUES ('i2', $1) ON CONFLICT (isbn) DO UPDATE SET isbn = books.isbn, price = 30", Args: []any{8}},
			}) {
				for _, keys := range [][]string{{"i2"}, {"i2", "i9"}} {
					resetISBNs(t, sh)
					if n, err := send(holdingISBNs(t, 5, keys...), w); n == 0 || err != nil {
						t.Errorf("%s: %d rows, %v", w.Name, n, err)
					}
					if got := isbns(t, sh); got != "1:i1:10 2:i2:30 3:i3:10" {
						t.Errorf("%s left %s", w.Name, got)
					}
				}
				resetISBNs(t, sh)
				unchanged := sh.Unchanged(t)
				_, err := send(holdingISBNs(t, 4, "i2"), w)
				harness.WantError(t, err, sqlfence.ErrStale)
				_, err = send(holdingISBNs(t, 5, "i9"), w)
				harness.WantError(t, err, sqlfence.ErrOutOfScope)
				unchanged()
				if t.Failed() {
					t.Fatalf("by %s", w.Name)
				}
			}
		})
		resetISBNs(t, sh)
		_, err := sh.DB.ExecContext(holdingISBNs(t, 5, "i2", "i9"), `UPDATE books AS b SET "isbn" = b."isbn", price = 30 WHERE b.id = 2`)
		if got := isbns(t, sh); err != nil || got != "1:i1:10 2:i2:30 3:i3:10" {
			t.Errorf("update of an alias: %v, left %s", err, got)
		}
	})
}

// If another table of the statement has a column of the key's name, the assignment of this name is refused, by sqlfence
// or by the database.
func TestKeyIsNotAssignedFromAnotherTable(t *testing.T) {
	eachISBNKeyed(t, func(t *testing.T, sh *harness.Shop) {
		resetISBNs(t, sh)
		sh.Exec(t, "CREATE TABLE others (id int, isbn text)")
		sh.Exec(t, "INSERT INTO others VALUES (2, 'i9')")
		unchanged := sh.Unchanged(t)
		for _, query := range []string{
			"UPDATE books SET isbn = isbn FROM others WHERE books.id = others.id",
			"UPDATE books SET isbn = isbn FROM (SELECT 2 AS n, 'i9' AS isbn) AS o WHERE books.id = n",
			"UPDATE books SET isbn = isbn FROM others AS a JOIN others AS b USING (isbn) WHERE books.id = 2",
			"UPDATE books SET isbn = others.isbn FROM others WHERE books.id = others.id",
			"UPDATE books SET isbn = o.isbn FROM others AS o WHERE books.id = o.id",
			"UPDATE books SET isbn = books.isbn FROM others AS books WHERE price = 10",
			"UPDATE books AS b SET isbn = books.isbn FROM others AS books WHERE b.id = books.id",
			"UPDATE books AS b SET isbn = isbn FROM others AS books WHERE b.id = books.id",
			"UPDATE books SET isbn = excluded.isbn FROM others AS excluded WHERE books.id = excluded.id",
			"UPDATE books AS excluded SET isbn = excluded.isbn FROM others WHERE excluded.id = others.id",
			"WITH books AS (SELECT 2 AS n, 'i9' AS isbn) UPDATE books SET isbn = isbn FROM books AS o WHERE id = n",
		} {
			for _, keys := range [][]string{{"i2"}, {"i2", "i9"}} {
				if _, err := sh.DB.ExecContext(holdingISBNs(t, 5, keys...), query); err == nil {
					t.Errorf("%s passed", query)
				}
			}
		}
		unchanged()
	})
}

// A row can't be moved out of its token's scope, nor into the scope of another token.
func TestKeyCannotBeMoved(t *testing.T) {
	moves := []harness.Write{
		{Name: "away", Query: "UPDATE books SET isbn = $1 WHERE id = $2", Args: []any{"i9", 2}},
		{Name: "away, all", Query: "UPDATE books SET isbn = 'i9'", Args: nil},
		{Name: "away in a list", Query: "UPDATE books SET (isbn, price) = ($1, 30) WHERE id = 2", Args: []any{"i9"}},
		{Name: "away by an expression", Query: "UPDATE books SET isbn = 'i' || 9 WHERE id = 2", Args: nil},
		{Name: "away by a cast", Query: "UPDATE books SET isbn = CAST($1 AS varchar(2)) WHERE id = 2", Args: []any{"i22"}},
		{Name: "to nothing", Query: "UPDATE books SET isbn = NULL WHERE id = 2", Args: nil},
		{Name: "to no argument", Query: "UPDATE books SET isbn = $1 WHERE id = 2", Args: []any{nil}},
		{Name: "away by an upsert", Query: "INSERT INTO books (id, isbn) VALUES (2, 'i2') ON CONFLICT (id) DO UPDATE SET isbn = $1", Args: []any{"i9"}},
		{Name: "another's row", Query: "UPDATE books SET isbn = $1, price = 30 WHERE id = $2", Args: []any{"i9", 3}},
		{Name: "another's row too", Query: "UPDATE books SET isbn = 'i9', price = 30 WHERE id IN (2, 3)", Args: nil},
		{Name: "another's row, all", Query: "UPDATE books SET isbn = 'i9'", Args: nil},
		{Name: "another's row by an upsert", Query: "INSERT INTO books (id, isbn, price) VALUES ($1, $2, 30) ON CONFLICT (id) DO UPDATE SET isbn = excluded.isbn", Args: []any{3, "i9"}},
		{Name: "another's row by an upsert of an argument", Query: "INSERT INTO books (id, isbn, price) VALUES ($1, $2, 30) ON CONFLICT (id) DO UPDATE SET isbn = $3 WHERE books.price = 10", Args: []any{3, "i9", "i9"}},
		{Name: "another's column", Query: "INSERT INTO books (id, isbn, price) VALUES (2, 'i2', 30) ON CONFLICT (id) DO UPDATE SET isbn = excluded.price", Args: nil},
		{Name: "the table called excluded", Query: "INSERT INTO books AS excluded (id, isbn) VALUES (2, 'i2') ON CONFLICT (id) DO UPDATE SET isbn = excluded.isbn", Args: nil},
	}
	onPostgres := []harness.Write{
		{Name: "another's row by a merge", Query: "MERGE INTO books USING (SELECT 3 AS id) AS s ON s.id = books.id WHEN MATCHED THEN UPDATE SET isbn = 'i9', price = 30", Args: nil},
		{Name: "another's row by a merge with a condition", Query: "MERGE INTO books USING (SELECT 3 AS id) AS s ON s.id = books.id WHEN MATCHED AND books.price = 10 THEN UPDATE SET isbn = 'i9', price = 30", Args: nil},
		{Name: "by a source called excluded", Query: "MERGE INTO books USING (SELECT 2 AS id, 'i9' AS isbn) AS excluded ON excluded.id = books.id WHEN MATCHED THEN UPDATE SET isbn = excluded.isbn", Args: nil},
		{Name: "by a table called excluded", Query: "UPDATE books SET isbn = excluded.isbn FROM (SELECT 2 AS id, 'i9' AS isbn) AS excluded WHERE excluded.id = books.id", Args: nil},
		{Name: "in a WITH", Query: "WITH a AS (UPDATE books SET isbn = 'i9' WHERE id = 3 RETURNING id) SELECT * FROM a", Args: nil},
		{Name: "by default", Query: "UPDATE books SET isbn = DEFAULT WHERE id = 2", Args: nil},
	}
	onSQLite := []harness.Write{
		{Name: "away, the second time", Query: "UPDATE books SET isbn = 'i2', price = 30, isbn = $1 WHERE id = 2", Args: []any{"i9"}},
		{Name: "away, the first time", Query: "UPDATE books SET isbn = $1, price = 30, isbn = 'i2' WHERE id = 2", Args: []any{"i9"}},
		{Name: "by two equal signs", Query: "UPDATE books SET isbn == 'i9' WHERE id = 2", Args: nil},
		{Name: "by the row's number", Query: "UPDATE books SET rowid = 9 WHERE id = 2", Args: nil},
		{Name: "to a text like the column's name", Query: "UPDATE books SET isbn = 'isbn' WHERE id = 2", Args: nil},
	}
	onMySQL := []harness.Write{
		{Name: "away, the second time", Query: "UPDATE books SET isbn = 'i2', price = 30, isbn = $1 WHERE id = 2", Args: []any{"i9"}},
		{Name: "away, the first time", Query: "UPDATE books SET isbn = $1, price = 30, isbn = 'i2' WHERE id = 2", Args: []any{"i9"}},
		{Name: "away by an assignment", Query: "UPDATE books SET isbn := 'i9' WHERE id = 2", Args: nil},
		{Name: "by default", Query: "UPDATE books SET isbn = DEFAULT WHERE id = 2", Args: nil},
		{Name: "away, where it isn't unique", Query: "UPDATE IGNORE books SET isbn = $1 WHERE id >= 2", Args: []any{"i9"}},
		{Name: "away, one row", Query: "UPDATE books SET isbn = $1 ORDER BY id DESC LIMIT 1", Args: []any{"i9"}},
		{Name: "by the row that is there", Query: "INSERT INTO books SET id = 2, isbn = $1 ON DUPLICATE KEY UPDATE isbn = VALUES(isbn)", Args: []any{"i9"}},
		{Name: "by another unique column", Query: "INSERT INTO books SET id = 9, isbn = $1 ON DUPLICATE KEY UPDATE isbn = 'i9'", Args: []any{"i2"}},
		{Name: "by a replacement", Query: "REPLACE INTO books SET id = 2, isbn = $1", Args: []any{"i9"}},
		{Name: "by a join", Query: "UPDATE books, pens SET isbn = $1", Args: []any{"i9"}},
	}
	eachISBNKeyed(t, func(t *testing.T, sh *harness.Shop) {
		all := slices.Concat(moves, map[sqlfence.Dialect][]harness.Write{sqlfence.Postgres: onPostgres, sqlfence.SQLite: onSQLite, sqlfence.MySQL: onMySQL}[sh.Dialect])
		resetISBNs(t, sh)
		sh.Raise(t, "books/i2", 9)
		sh.Raise(t, "books/i9", 9)
		for _, w := range all {
			if sh.Dialect == sqlfence.Postgres && harness.Lacks(t, sh.Plain, w.Query) {
				continue
			}
			for _, keys := range [][]string{{"i2"}, {"i9"}, {"i2", "i9"}} {
				for _, f := range sh.Forms()[:4] {
					_, err := f.Run(holdingISBNs(t, 9, keys...), sh.DB, w.As(sh.Dialect))
					if !errors.Is(err, sqlfence.ErrOutOfScope) && !errors.Is(err, sqlfence.ErrUnguardable) {
						t.Errorf("%s with %s by %s: %v", w.Name, keys, f.Name, err)
					}
					if got := isbns(t, sh); got != isbnsAtStart {
						t.Fatalf("%s with %s by %s left %s", w.Name, keys, f.Name, got)
					}
				}
			}
		}
	})
}

// SQLite stores rows by an integer primary key. Such a key can't be changed, either.
func TestKeyThatIsThePrimaryKeyCannotBeMoved(t *testing.T) {
	eachKeyed(t, func(t *testing.T, sh *harness.Shop, _ string, send func(context.Context, harness.Write) (int64, error)) {
		resetKeys(t, sh, 5)
		sh.Raise(t, "books/1", 9)
		sh.Raise(t, "books/7", 9)
		for _, move := range []harness.Write{
			{Name: "into scope", Query: "UPDATE books SET id = 7 WHERE id = 1", Args: nil},
			{Name: "into scope by an argument", Query: "UPDATE books SET price = 30, id = $1 WHERE id = $2", Args: []any{7, 1}},
			{Name: "into scope by another column", Query: "INSERT INTO books (id, isbn) VALUES ($1, 'i1') ON CONFLICT (isbn) DO UPDATE SET id = excluded.id", Args: []any{7}},
		} {
			unchanged := sh.Unchanged(t)
			_, err := send(harness.HoldingKeys(t, 7, 9), move)
			harness.WantError(t, err, sqlfence.ErrOutOfScope)
			unchanged()
		}
		if n, err := send(harness.HoldingKeys(t, 1, 9), harness.Write{Query: "UPDATE books SET id = $1, price = 30 WHERE isbn = 'i1'", Args: []any{1}}); n != 1 || err != nil {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}

// The column's type may store the assigned value as another text.
func TestKeyIsAssignedAsTheDatabaseWritesIt(t *testing.T) {
	eachKeyed(t, func(t *testing.T, sh *harness.Shop, _ string, send func(context.Context, harness.Write) (int64, error)) {
		resetKeys(t, sh, 5)
		unchanged := sh.Unchanged(t)
		spellings := []string{"02", " 2", "+2"}
		if sh.Dialect == sqlfence.SQLite { // PostgreSQL doesn't accept these as integers
			spellings = append(spellings, "2.0", "2e0")
		}
		for _, key := range spellings {
			sh.Raise(t, "books/"+key, 1)
			ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/" + key, Value: 9})
			_, err := send(ctx, harness.Write{Query: "UPDATE books SET id = $1 WHERE id = $2", Args: []any{key, 2}})
			harness.WantError(t, err, sqlfence.ErrUnguardable)
		}
		unchanged()
	})
}

// A column may take i2 and I2 for equal, but they are two keys.
func TestKeyIsAssignedByteByByte(t *testing.T) {
	eachISBNKeyed(t, func(t *testing.T, sh *harness.Shop) {
		sh.Exec(t, "DROP TABLE books")
		collation := "COLLATE NOCASE"
		if sh.Dialect == sqlfence.MySQL {
			collation = "COLLATE utf8mb4_general_ci"
		}
		if sh.Dialect == sqlfence.Postgres {
			sh.Exec(t, "CREATE COLLATION folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
			collation = "COLLATE folding"
		}
		sh.Exec(t, "CREATE TABLE books (id integer PRIMARY KEY, isbn text "+collation+" UNIQUE, price integer DEFAULT 10, fence_token bigint)")
		resetISBNs(t, sh)
		for _, w := range []harness.Write{
			{Name: "update", Query: "UPDATE books SET isbn = $1 WHERE id = 2", Args: []any{"I2"}},
			{Name: "update by the key", Query: "UPDATE books SET isbn = $1 WHERE isbn = $2", Args: []any{"I2", "I2"}},
			{Name: "upsert", Query: "INSERT INTO books (isbn, id) VALUES ($1, 8) ON CONFLICT (isbn) DO UPDATE SET isbn = excluded.isbn", Args: []any{"I2"}},
		} {
			for _, key := range []string{"i2", "I2"} {
				sh.Raise(t, "books/"+key, 9)
				_, err := harness.Forms[0].Run(holdingISBNs(t, 9, key), sh.DB, w.As(sh.Dialect))
				harness.WantError(t, err, sqlfence.ErrOutOfScope)
				if got := isbns(t, sh); got != isbnsAtStart {
					t.Fatalf("%s with %s left %s", w.Name, key, got)
				}
			}
		}
	})
}
