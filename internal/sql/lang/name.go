package lang

import "github.com/sqlfence/sqlfence/internal/dialect"

// ParseName reads an SQL name of one or two parts, "books", `shop."Books"`, and
// returns it as the database would after folding: schema (or "") and name.
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

// ParseColumn reads the name of a column, and returns it as the database would after
// folding.
func ParseColumn(d dialect.Dialect, s string) (string, error) {
	g, err := grammar(d)
	if err != nil {
		return "", err
	}
	return g.Lex.ParseColumn(s)
}
