// Package lang says of a text what needs no tables to be known: which name it is, which kind of statement,
// which one but for its values.
package lang

import (
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

// IsWhole reports whether a text can be read to its end, with nothing left open: text behind it is read as by itself.
// PostgreSQL's plain strings are read as they are without backslash escapes.
func IsWhole(d dialect.Dialect, query string) bool {
	g, err := grammar(d)
	if err != nil {
		return false
	}
	_, fault := lex.Scan(g.Lex, query, lex.EscapesNone, nil)
	return fault == nil
}

// Misplaces reports whether such a driver, also one that knows no dollar quotes, may put them elsewhere.
func Misplaces(d dialect.Dialect, query string) bool {
	g, err := grammar(d)
	return err != nil || g.Lex.Misplaces(query)
}

// Inlines reports whether a driver that writes the arguments' values into a text, as pgx does in PostgreSQL's simple
// protocol, puts them where the database reads placeholders.
func Inlines(d dialect.Dialect, query string) bool {
	g, err := grammar(d)
	return err == nil && g.Lex.Inlines(query, false)
}
