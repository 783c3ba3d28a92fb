package lang_test

import (
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
)

func TestFingerprint(t *testing.T) {
	for query, want := range map[string]string{
		"":                                 "",
		";":                                ";",
		"UPDATE books SET price = 30":      "UPDATE books SET price = ?",
		"UPDATE books SET price = $1":      "UPDATE books SET price = ?",
		"UPDATE  books\n\tSET price = 'x'": "UPDATE books SET price = ?",
		"UPDATE books SET price = 1.5 -- trace 7\nWHERE id = 2 /* 8 */":                "UPDATE books SET price = ? WHERE id = ?",
		"UPDATE books SET a=1,b=$2":                                                    "UPDATE books SET a=?,b=?",
		"SELECT id FROM books WHERE id IN (1, 2, 3)":                                   "SELECT id FROM books WHERE id IN (?)",
		"SELECT id FROM books WHERE id IN ( $1 , $2 )":                                 "SELECT id FROM books WHERE id IN (?)",
		"INSERT INTO books (id, price) VALUES ($1, $2), ($3, 'x') ,(5,6) RETURNING id": "INSERT INTO books (id, price) VALUES (?) RETURNING id",
		"INSERT INTO books (id, price) VALUES (1, now()), (2, now())":                  "INSERT INTO books (id, price) VALUES (?, now()), (?, now())",
		`UPDATE "my 7 books" SET "a1" = 7`:                                             `UPDATE "my 7 books" SET "a1" = ?`,
		"SELECT f(1), (2, 3), g()":                                                     "SELECT f(?), (?), g()",
		"SELECT id FROM b WHERE (a, b) IN ((1, 2), (3, 4))":                            "SELECT id FROM b WHERE (a, b) IN ((?))",
		"'never closed 4711":                                                           " …",
		"UPDATE books SET secret = 'never closed 4711":                                 "UPDATE …",
		"INSERT INTO books VALUES (1, 2":                                               "INSERT …",
	} {
		for _, d := range []dialect.Dialect{dialect.Postgres, dialect.SQLite} {
			if got := lang.Fingerprint(d, query); got != want {
				t.Errorf("%v: Fingerprint(%q) = %q, want %q", d, query, got, want)
			}
		}
	}
	for query, want := range map[string]string{
		"SELECT $1::uuid, E'a\\'b', $$secret$$, B'01'": "SELECT ?::uuid, ?, ?, ?",
		"DELETE FROM books WHERE id = ANY($1)":         "DELETE FROM books WHERE id = ANY(?)",
	} {
		if got := lang.Fingerprint(dialect.Postgres, query); got != want {
			t.Errorf("Fingerprint(%q) = %q, want %q", query, got, want)
		}
	}
	for query, want := range map[string]string{
		"UPDATE `books` SET price = ?, title = 'it''s' WHERE id IN (1, ?)": "UPDATE `books` SET price = ?, title = ? WHERE id IN (?)",
		"INSERT books SET a = _utf8mb4'a', b = 0x1F # secret":              "INSERT books SET a = _utf8mb4?, b = ?",
		`UPDATE "books" SET secret = "x"`:                                  "UPDATE ? SET secret = ?", // maybe strings
	} {
		if got := lang.Fingerprint(dialect.MySQL, query); got != want {
			t.Errorf("MySQL: Fingerprint(%q) = %q, want %q", query, got, want)
		}
	}
	if got := lang.Fingerprint(0, "UPDATE books SET secret = 'x'"); got != "UPDATE …" {
		t.Errorf("of a dialect that isn't read: %q", got)
	}
}

// The fingerprint of a fingerprint is the same, and a fingerprint contains no constant.
func FuzzFingerprint(f *testing.F) {
	f.Add("UPDATE books SET a = 'secret', b = 4711 WHERE c IN (1, 2), (3)")
	f.Add("INSERT INTO books VALUES (1), (2) -- secret")
	f.Fuzz(func(t *testing.T, query string) {
		for _, d := range []dialect.Dialect{dialect.Postgres, dialect.SQLite} {
			got := lang.Fingerprint(d, query)
			if strings.HasSuffix(got, " …") {
				continue
			}
			if strings.Contains(query, "'") && !strings.Contains(query, `"`) && !strings.ContainsAny(query, "`[") && strings.Contains(got, "'") {
				t.Errorf("%v: Fingerprint(%q) = %q has a constant", d, query, got)
			}
		}
	})
}
