package lang

import "github.com/sqlfence/sqlfence/internal/dialect"

// ParseName reads an SQL name of one or two parts, "books", `shop."Books"`, and returns schema (or "") and name as the
// database folds them.
func ParseName(d dialect.Dialect, s string) (schema, name string, err error) {
	g, err := grammar(d)
	if err != nil {
		return "", "", err
	}
	return g.Lex.ParseName(s)
}

// SpellName reads a name as [ParseName] does, and returns the spelling that must be sent to the database. The two
// results differ if only some servers ignore the case of table names: in MySQL, SpellName keeps the capital letters of
// s.
func SpellName(d dialect.Dialect, s string) (schema, name string, err error) {
	g, err := grammar(d)
	if err != nil {
		return "", "", err
	}
	return g.Lex.SpellName(s)
}

// ParseColumn reads the name of a column, and returns the name as the database folds it.
func ParseColumn(d dialect.Dialect, s string) (string, error) {
	g, err := grammar(d)
	if err != nil {
		return "", err
	}
	return g.Lex.ParseColumn(s)
}
