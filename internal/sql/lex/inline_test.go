package lex_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/dialect/sqlite"
)

// Where pgx and the server would find placeholders at different places, values
// can't be written into the text.
func TestInlinesOnlyInPostgres(t *testing.T) {
	if !sqlite.Lex.Inlines("SELECT 'x' ?1", true) {
		t.Error("no driver of SQLite writes values into the text")
	}
}

func TestInlines(t *testing.T) {
	for text, want := range map[string]bool{
		`UPDATE books SET price = $1 WHERE id = $2`:                       true,
		`UPDATE books SET a = 'it''s $1', b = "c$1" WHERE id = $1`:        true,
		`UPDATE books SET a = E'\'$1' WHERE id = -$1`:                     true,
		`UPDATE books SET a = U&'\0041$1' WHERE id = $1 -- don't $3`:      true,
		`UPDATE books SET a = $$plain$$ /* /* $2 */ it's */ WHERE b = $1`: true,
		`UPDATE books SET a = a$1 WHERE id = $1`:                          false,
		`UPDATE books SET a = a$b$, c = $1, d = e$b$`:                     false,
		`UPDATE books SET a = date'\', b = '$1' WHERE id = $1`:            false,
		`UPDATE books SET a = date '\', b = '$1' WHERE id = $1`:           true,
		`UPDATE books SET a = $$it's$$, b = $1`:                           false, // before pgx 5.9
		`UPDATE books SET a = $x$ $1 $x$ WHERE id = $1`:                   false,
		"UPDATE books SET a = E'\\''\n'\\'$1' WHERE id = $1":              false,
		"SELECT e'\\'$1', E'$2', 'e' || $1":                               true,
		"SELECT 1 -- $1\n, 1 - 2, 2 / 3 /* $1 */, $1":                     true,
		`SELECT "a$1", 'b$1', $1, $2`:                                     true,
		"SELECT $a$ it's $a$ || $1":                                       false, // before pgx 5.9
		"SELECT $a$ x $a$ || $b$ y $b$ || $1":                             true,
		"SELECT $1 'x'":                                                   false,
		"SELECT $1 || 'x', b || $2":                                       true,
		"SELECT 'open, $1":                                                false,
		"SELECT $1 /* open":                                               false,
		"SELECT 1 $":                                                      false,
		"SELECT a$1":                                                      false,
		"UPDATE books SET a = 'x'\n$1":                                    false,
	} {
		if got := postgres.Lex.Inlines(text, true); got != want {
			t.Errorf("inlines = %v, want %v: %s", got, want, text)
		}
	}
}

// A driver that knows dollar quotes, as pgx does since 5.9, finds no placeholder in one.
func TestInlinesByNewerDrivers(t *testing.T) {
	for text, want := range map[string]bool{
		"SELECT $a$ it's $a$ || $1": true, "SELECT $$it's $2$$, $1": true, "SELECT name'\\' || ' $1'": false, "SELECT a$1": false,
	} {
		if got := postgres.Lex.Inlines(text, false); got != want {
			t.Errorf("inlines = %v, want %v: %s", got, want, text)
		}
	}
}
