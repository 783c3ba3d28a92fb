package drivers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// With Key a statement may assign a row the key that it has, as ORMs do which
// save a record whole, and never another.

// keyFences are the ways to keep the mark of a row that has a token of its own.
var keyFences = []struct {
	name  string
	rules []sqlfence.Rule
}{
	{"row fence", []sqlfence.Rule{sqlfence.RowFence("fence_token")}},
	{"ledger", []sqlfence.Rule{sqlfence.Ledger()}},
	{"both", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger()}},
}

// eachISBNKeyed runs test for books with a token for each ISBN, marked 5.
func eachISBNKeyed(t *testing.T, test func(t *testing.T, sh *shop)) {
	eachBase(t, func(t *testing.T, b base) {
		for _, fence := range keyFences {
			t.Run(fence.name, func(t *testing.T) {
				test(t, setting{base: b}.shop(t, append(fence.rules, sqlfence.Key("isbn"))...))
			})
		}
	})
}

// resetISBNs is reset, with 5 as the newest token of each key.
func (s *shop) resetISBNs(t *testing.T) {
	t.Helper()
	s.reset(t, 5)
	for _, key := range []string{"i1", "i2", "i3", "i7", "i9", "I2"} {
		s.raise(t, "books/"+key, 5)
	}
}

// isbns tells the books as "id:isbn:price".
func (s *shop) isbns(t testing.TB) string {
	t.Helper()
	rows, err := s.plain.Query("SELECT id, COALESCE(CAST(isbn AS text), 'NULL'), price FROM books ORDER BY id")
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

var keyKeepers = []write{
	{"update", "UPDATE books SET isbn = $1, price = $2 WHERE id = $3", []any{"i2", 30, 2}},
	{"update of constants", "UPDATE books SET price = 30, \"isbn\" = 'i2' WHERE id = 2", nil},
	{"update of all with the key", "UPDATE books SET isbn = $1, price = 30 WHERE isbn = $2", []any{"i2", "i2"}},
	{"upsert", "INSERT INTO books (id, isbn, price) VALUES ($1, $2, 30) ON CONFLICT (id) DO UPDATE SET isbn = $3, price = 30", []any{2, "i2", "i2"}},
	{"upsert of the excluded", "INSERT INTO books (id, isbn, price) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET isbn = excluded.isbn, price = excluded.price", []any{2, "i2", 30}},
	{"upsert of the excluded, by the key", `INSERT INTO books (id, isbn, price) VALUES ($1, $2, $3) ON CONFLICT (isbn) DO UPDATE SET "isbn" = "excluded"."isbn", price = excluded.price WHERE books.price < $4`, []any{8, "i2", 30, 99}},
	{"upsert without the primary key", "INSERT INTO books (isbn, price) VALUES ($1, 30) ON CONFLICT (isbn) DO UPDATE SET isbn = excluded.isbn, price = 30", []any{"i2"}},
}

func TestKeyMayBeAssignedToItself(t *testing.T) {
	eachISBNKeyed(t, func(t *testing.T, sh *shop) {
		if sh.dialect == sqlfence.Postgres { // what SQLite does by itself
			sh.exec(t, "CREATE SEQUENCE ids START 100")
			sh.exec(t, "ALTER TABLE books ALTER id SET DEFAULT nextval('ids')")
		}
		sh.eachForm(t, func(t *testing.T, send func(context.Context, write) (int64, error)) {
			for _, w := range keyKeepers {
				sh.resetISBNs(t)
				if n, err := send(holdingISBNs(t, 5, "i2"), w); n != 1 || err != nil {
					t.Errorf("%s: %d rows, %v", w.name, n, err)
				}
				if got := sh.isbns(t); got != "1:i1:10 2:i2:30 3:i3:10" {
					t.Errorf("%s left %s", w.name, got)
				}
				sh.resetISBNs(t)
				unchanged := sh.unchanged(t)
				_, err := send(holdingISBNs(t, 4, "i2"), w)
				wantError(t, err, sqlfence.ErrStale)
				_, err = send(holdingISBNs(t, 5, "i9"), w)
				wantError(t, err, sqlfence.ErrOutOfScope)
				_, err = send(holdingISBNs(t, 5, "i2", "i9"), w)
				wantError(t, err, sqlfence.ErrUnguardable)
				_, err = send(t.Context(), w)
				wantError(t, err, sqlfence.ErrNoFence)
				unchanged()
				if t.Failed() {
					t.Fatalf("by %s", w.name)
				}
			}
		})
	})
}

// A row can be taken neither out of its token's scope nor into another's.
func TestKeyCannotBeMoved(t *testing.T) {
	moves := []write{
		{"away", "UPDATE books SET isbn = $1 WHERE id = $2", []any{"i9", 2}},
		{"away, all", "UPDATE books SET isbn = 'i9'", nil},
		{"away in a list", "UPDATE books SET (isbn, price) = ($1, 30) WHERE id = 2", []any{"i9"}},
		{"away by an expression", "UPDATE books SET isbn = 'i' || 9 WHERE id = 2", nil},
		{"away by a cast", "UPDATE books SET isbn = CAST($1 AS varchar(2)) WHERE id = 2", []any{"i22"}},
		{"to nothing", "UPDATE books SET isbn = NULL WHERE id = 2", nil},
		{"to no argument", "UPDATE books SET isbn = $1 WHERE id = 2", []any{nil}},
		{"away by an upsert", "INSERT INTO books (id, isbn) VALUES (2, 'i2') ON CONFLICT (id) DO UPDATE SET isbn = $1", []any{"i9"}},
		{"another's row", "UPDATE books SET isbn = $1, price = 30 WHERE id = $2", []any{"i9", 3}},
		{"another's row too", "UPDATE books SET isbn = 'i9', price = 30 WHERE id IN (2, 3)", nil},
		{"another's row, all", "UPDATE books SET isbn = 'i9'", nil},
		{"another's row by an upsert", "INSERT INTO books (id, isbn, price) VALUES ($1, $2, 30) ON CONFLICT (id) DO UPDATE SET isbn = excluded.isbn", []any{3, "i9"}},
		{"another's row by an upsert of an argument", "INSERT INTO books (id, isbn, price) VALUES ($1, $2, 30) ON CONFLICT (id) DO UPDATE SET isbn = $3 WHERE books.price = 10", []any{3, "i9", "i9"}},
		{"another's column", "INSERT INTO books (id, isbn, price) VALUES (2, 'i2', 30) ON CONFLICT (id) DO UPDATE SET isbn = excluded.price", nil},
		{"the table called excluded", "INSERT INTO books AS excluded (id, isbn) VALUES (2, 'i2') ON CONFLICT (id) DO UPDATE SET isbn = excluded.isbn", nil},
	}
	onPostgres := []write{
		{"another's row by a merge", "MERGE INTO books USING (SELECT 3 AS id) AS s ON s.id = books.id WHEN MATCHED THEN UPDATE SET isbn = 'i9', price = 30", nil},
		{"another's row by a merge with a condition", "MERGE INTO books USING (SELECT 3 AS id) AS s ON s.id = books.id WHEN MATCHED AND books.price = 10 THEN UPDATE SET isbn = 'i9', price = 30", nil},
		{"by a source called excluded", "MERGE INTO books USING (SELECT 2 AS id, 'i9' AS isbn) AS excluded ON excluded.id = books.id WHEN MATCHED THEN UPDATE SET isbn = excluded.isbn", nil},
		{"by a table called excluded", "UPDATE books SET isbn = excluded.isbn FROM (SELECT 2 AS id, 'i9' AS isbn) AS excluded WHERE excluded.id = books.id", nil},
		{"in a WITH", "WITH a AS (UPDATE books SET isbn = 'i9' WHERE id = 3 RETURNING id) SELECT * FROM a", nil},
		{"by default", "UPDATE books SET isbn = DEFAULT WHERE id = 2", nil},
	}
	onSQLite := []write{
		{"away, the second time", "UPDATE books SET isbn = 'i2', price = 30, isbn = $1 WHERE id = 2", []any{"i9"}},
		{"away, the first time", "UPDATE books SET isbn = $1, price = 30, isbn = 'i2' WHERE id = 2", []any{"i9"}},
		{"by two equal signs", "UPDATE books SET isbn == 'i9' WHERE id = 2", nil},
		{"by the row's number", "UPDATE books SET rowid = 9 WHERE id = 2", nil},
	}
	eachISBNKeyed(t, func(t *testing.T, sh *shop) {
		all := slices.Concat(moves, onPostgres)
		if sh.dialect == sqlfence.SQLite {
			all = slices.Concat(moves, onSQLite)
		}
		sh.resetISBNs(t)
		sh.raise(t, "books/i2", 9)
		sh.raise(t, "books/i9", 9)
		for _, w := range all {
			for _, keys := range [][]string{{"i2"}, {"i9"}, {"i2", "i9"}} {
				for _, f := range forms[:4] {
					_, err := f.run(holdingISBNs(t, 9, keys...), sh.db, w.as(sh.dialect))
					if !errors.Is(err, sqlfence.ErrOutOfScope) && !errors.Is(err, sqlfence.ErrUnguardable) {
						t.Errorf("%s with %s by %s: %v", w.name, keys, f.name, err)
					}
					if got := sh.isbns(t); got != isbnsAtStart {
						t.Fatalf("%s with %s by %s left %s", w.name, keys, f.name, got)
					}
				}
			}
		}
	})
}

// The primary key is where SQLite keeps its rows.
func TestKeyThatIsThePrimaryKeyCannotBeMoved(t *testing.T) {
	eachKeyed(t, func(t *testing.T, sh *shop, _ string, send func(context.Context, write) (int64, error)) {
		sh.resetKeys(t, 5)
		sh.raise(t, "books/1", 9)
		sh.raise(t, "books/7", 9)
		for _, move := range []write{
			{"into scope", "UPDATE books SET id = 7 WHERE id = 1", nil},
			{"into scope by an argument", "UPDATE books SET price = 30, id = $1 WHERE id = $2", []any{7, 1}},
			{"into scope by another column", "INSERT INTO books (id, isbn) VALUES ($1, 'i1') ON CONFLICT (isbn) DO UPDATE SET id = excluded.id", []any{7}},
		} {
			unchanged := sh.unchanged(t)
			_, err := send(holdingKeys(t, 7, 9), move)
			wantError(t, err, sqlfence.ErrOutOfScope)
			unchanged()
		}
		if n, err := send(holdingKeys(t, 1, 9), write{query: "UPDATE books SET id = $1, price = 30 WHERE isbn = 'i1'", args: []any{1}}); n != 1 || err != nil {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}

// What is assigned may be stored as another text, in the manner of the column.
func TestKeyIsAssignedAsTheDatabaseWritesIt(t *testing.T) {
	eachKeyed(t, func(t *testing.T, sh *shop, _ string, send func(context.Context, write) (int64, error)) {
		sh.resetKeys(t, 5)
		unchanged := sh.unchanged(t)
		spellings := []string{"02", " 2", "+2"}
		if sh.dialect == sqlfence.SQLite { // PostgreSQL takes these for no integers
			spellings = append(spellings, "2.0", "2e0")
		}
		for _, key := range spellings {
			sh.raise(t, "books/"+key, 1)
			ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/" + key, Value: 9})
			_, err := send(ctx, write{query: "UPDATE books SET id = $1 WHERE id = $2", args: []any{key, 2}})
			wantError(t, err, sqlfence.ErrUnguardable)
		}
		unchanged()
	})
}

// A column that takes i2 and I2 for one has rows of two keys.
func TestKeyIsAssignedByteByByte(t *testing.T) {
	eachISBNKeyed(t, func(t *testing.T, sh *shop) {
		sh.exec(t, "DROP TABLE books")
		collation := "COLLATE NOCASE"
		if sh.dialect == sqlfence.Postgres {
			sh.exec(t, "CREATE COLLATION folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
			collation = "COLLATE folding"
		}
		sh.exec(t, "CREATE TABLE books (id integer PRIMARY KEY, isbn text "+collation+" UNIQUE, price integer DEFAULT 10, fence_token bigint)")
		sh.resetISBNs(t)
		for _, w := range []write{
			{"update", "UPDATE books SET isbn = $1 WHERE id = 2", []any{"I2"}},
			{"update by the key", "UPDATE books SET isbn = $1 WHERE isbn = $2", []any{"I2", "I2"}},
			{"upsert", "INSERT INTO books (id, isbn) VALUES (8, $1) ON CONFLICT (isbn) DO UPDATE SET isbn = excluded.isbn", []any{"I2"}},
		} {
			for _, key := range []string{"i2", "I2"} {
				sh.raise(t, "books/"+key, 9)
				_, err := forms[0].run(holdingISBNs(t, 9, key), sh.db, w.as(sh.dialect))
				wantError(t, err, sqlfence.ErrOutOfScope)
				if got := sh.isbns(t); got != isbnsAtStart {
					t.Fatalf("%s with %s left %s", w.name, key, got)
				}
			}
		}
	})
}
