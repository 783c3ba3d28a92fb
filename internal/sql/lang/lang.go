// Package lang analyses names and statements without knowing the tables: it parses names, finds a statement's kind, and
// makes a fingerprint without the values.
package lang

import (
	"strings"

	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// grammar returns how a dialect is read.
func grammar(d dialect.Dialect) (*lex.Grammar, error) {
	db, err := dialect.Of(d)
	if err != nil {
		return nil, err
	}
	return db.Grammar, nil
}

// IsWhole reports whether a text can be read to its end with nothing left open, so that text appended to it is read as
// if it stood alone. Plain PostgreSQL strings are read without backslash escapes.
func IsWhole(d dialect.Dialect, query string) bool {
	g, err := grammar(d)
	if err != nil {
		return false
	}
	_, fault := lex.Scan(g.Lex, query, lex.EscapesNone, nil)
	return fault == nil
}

// Misplaces reports whether a driver that writes values into the text, even a driver without support for dollar quotes,
// may put values where the database reads no placeholder.
func Misplaces(d dialect.Dialect, query string) bool {
	g, err := grammar(d)
	return err != nil || g.Lex.Misplaces(query)
}

// Inlines reports whether a driver that writes the arguments' values into a text, as pgx does in PostgreSQL's simple
// protocol, puts the values where the database reads placeholders.
func Inlines(d dialect.Dialect, query string) bool {
	g, err := grammar(d)
	return err == nil && g.Lex.Inlines(query, false)
}

// tokensOf returns the tokens of a text; ok is false without a grammar for the dialect, or if the text can't be read.
func tokensOf(d dialect.Dialect, query string) ([]lex.Token, bool) {
	t, _, ok := scan(d, query)
	return t.Tokens, ok
}

// scan returns the tokens of a text with the grammar of the dialect; ok is false as for tokensOf.
func scan(d dialect.Dialect, query string) (t lex.Scanned, g *lex.Grammar, ok bool) {
	g, err := grammar(d)
	if err != nil {
		return t, nil, false
	}
	tokens, fault := lex.Scan(g.Lex, query, lex.EscapesUnknown, nil)
	return lex.Scanned{Src: query, Tokens: tokens, Rules: g.Lex}, g, fault == nil
}

// firstKeyword returns the letters that a text begins with.
func firstKeyword(query string) string { return lex.Letters(strings.TrimLeft(query, " \t\r\n\f\v(")) }
