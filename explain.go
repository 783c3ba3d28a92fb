package sqlfence

import (
	"database/sql"

	"github.com/sqlfence/sqlfence/internal/fenced"
)

// An Explanation describes what happens to a statement.
type Explanation struct {
	Kind   EventKind // Guarded, Refused or Passed
	Tables []string  // as in an [Event]
	SQL    string    // the statement sent, with one token for each table; empty if refused
	Err    error     // the [*UnguardableError] of a refused statement, else nil
}

// Explain returns how db would guard or why it would refuse a statement, without sending anything or calling an
// observer. It ignores tokens, modes and [Bypass], and shows a guard's values as placeholders, or, if they can't be
// arguments of the statement, as the token 1. A db that sqlfence didn't open, or with another wrapper around sqlfence,
// is [ErrInvalid]. Explain is safe for concurrent use.
func Explain(db *sql.DB, query string) (Explanation, error) {
	s, err := fenced.SettingsOf("Explain", db)
	if err != nil {
		return Explanation{}, err
	}
	kind, tables, text, err := s.Explain(query)
	return Explanation{EventKind(kind), tables, text, err}, nil
}
