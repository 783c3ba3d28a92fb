package lang_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
)

func TestVerb(t *testing.T) {
	for _, d := range []dialect.Dialect{dialect.Postgres, dialect.SQLite, dialect.MySQL} {
		for query, want := range map[string]string{
			"":                              "",
			";":                             "",
			"'text'":                        "",
			"\"update\" books":              "",
			"update books SET price = 1":    "UPDATE",
			"/* a */ Insert INTO books":     "INSERT",
			"(DELETE FROM books)":           "DELETE",
			"TRUNCATE books":                "TRUNCATE",
			"EXPLAIN ANALYZE MERGE INTO b":  "MERGE",
			"WITH a AS (SELECT 1) SELECT 2": "WITH",
			"WITH a AS (SELECT id AS update FROM b FOR UPDATE), c AS (SELECT 1 FROM b FOR NO KEY UPDATE) DELETE FROM b": "DELETE",
			"'unterminated": "",
		} {
			if got := lang.Verb(d, query); got != want {
				t.Errorf("%v: Verb(%q) = %q, want %q", d, query, got, want)
			}
		}
	}
	if got := lang.Verb(0, "UPDATE books"); got != "" {
		t.Errorf("of a dialect that isn't read: %q", got)
	}
}

// IsWhole reports whether a second statement could follow the text: no string, comment or bracket is open at its end.
func TestIsWhole(t *testing.T) {
	for query, want := range map[string]bool{
		"": true, "SELECT 1 -- '": true, "SELECT '\\' /* ' */": true, "SELECT $$ ' $$": true, `SELECT "'"`: true,
		"SELECT '": false, `SELECT "`: false, "SELECT /* /* */": false, "SELECT $a$ $$": false, `SELECT e'\'`: false, "SELECT (": false,
	} {
		if got := lang.IsWhole(dialect.Postgres, query); got != want {
			t.Errorf("IsWhole(%s) = %v", query, got)
		}
	}
}
