package lex_test

import (
	"testing"

	"github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/dialect/sqlite"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// written has how each database's texts are written, by how they are read.
var written = map[*lex.Rules]sqltext.Dialect{
	postgres.Lex: postgres.Text, sqlite.Lex: sqlite.Text, mysql.Lex: mysql.Text,
}

// A name that a dialect has quoted is one token, and ParseName returns the original name.
func TestQuotedNamesAreRead(t *testing.T) {
	for _, name := range []string{"books", "a b", `a"b`, "a`b", `""`, "``", `a\b`, "a'b", "select", "é", "--", "/*", "[", "U&", "u&\"0062"} {
		for r, d := range written {
			quoted := d.Quote(name)
			if schema, got, err := r.ParseName(quoted); err != nil || got != name && got != lex.Fold(name) || schema != "" {
				t.Errorf("%q: got %q, %q, %v from %s", name, schema, got, err, quoted)
			}
			if toks, err := lex.Scan(r, quoted, lex.EscapesNone, nil); err != nil || len(toks) != 2 {
				t.Errorf("%q: %s is %d tokens, %v", name, quoted, len(toks), err)
			}
		}
	}
}

// A text constant is one token whatever the session's settings are, before anything that may follow it, and MySQL's has
// a character set in front.
func TestQuotedTextsAreRead(t *testing.T) {
	for _, text := range []string{"", "o'neill", `a\b`, `\'; DROP TABLE books --`, "a\nb", "$1 ? :a", "''"} {
		for r, d := range written {
			quoted := d.Text(text)
			toks, err := lex.Scan(r, quoted+" THEN 1", lex.EscapesUnknown, nil)
			tokens := 4 // the text, THEN, 1 and the end
			if r == mysql.Lex {
				tokens = 5
			}
			if err != nil || len(toks) != tokens || int(toks[tokens-4].End) != len(quoted) {
				t.Errorf("%q is read as %v, %v", quoted, toks, err)
			}
		}
	}
}
