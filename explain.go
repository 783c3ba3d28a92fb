package sqlfence

import (
	"database/sql"

	"github.com/sqlfence/sqlfence/internal/fenced"
)

// An Explanation says what becomes of a statement. See [Explain].
type Explanation struct {
	// Kind is Guarded, Refused, or Passed where it writes to no registered table.
	Kind EventKind

	// Tables are the registered tables that it writes to, as in an [Event].
	Tables []string

	// SQL is the text that is sent: with the guard, as for a context with one token for
	// each table; as it was written if it passes; empty if it is refused.
	SQL string

	// Err says why it is refused, and where: an [*UnguardableError]. Else it is nil.
	Err error
}

// Explain returns what db would make of a statement, without sending anything: the text
// with its guard, or why it can't be guarded. It tells how the statement is read; whether it is
// sent depends on its context's tokens, the modes of its tables, and [Bypass], too. No
// observer is told. Explain may be called by several goroutines at once. Where
// the guard's values would be placeholders, their numbers show which; where they would be written
// into the text, they are shown as the token 1.
//
// db is one of [Open] or [OpenDB], or opened by a driver of [WrapDriver] or [Register]; any
// other is [ErrInvalid], also if sqlfence is beneath another wrapper such as otelsql.
func Explain(db *sql.DB, query string) (Explanation, error) {
	s, err := fenced.SettingsOf("Explain", db)
	if err != nil {
		return Explanation{}, err
	}
	kind, tables, text, err := s.Explain(query)
	return Explanation{EventKind(kind), tables, text, err}, nil
}
