package sqlfence

import (
	"database/sql"
	"fmt"

	"github.com/sqlfence/sqlfence/rewrite"
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
	var s *settings
	if db != nil {
		if d, ok := db.Driver().(*fencedDriver); ok {
			s = d.settings
		}
	}
	if s == nil {
		return Explanation{}, fmt.Errorf("%w: Explain of a database that isn't fenced, or not on the outside", ErrInvalid)
	}
	plan := s.rewriter.Plan(query)
	x := Explanation{Kind: Passed, Tables: s.names(plan), SQL: query}
	switch plan.Verdict {
	case rewrite.Guard:
		x.Kind = Guarded
		x.SQL, x.Err = s.show(plan)
	case rewrite.Refuse:
		x.Err = s.unguardable(&plan.Refusal)
	}
	if x.Err != nil {
		x.Kind, x.SQL = Refused, ""
	}
	return x, nil
}

// show returns the guarded text of a plan for one token a table.
func (r *registry) show(plan *rewrite.Plan) (string, error) {
	if form, err := plan.Default(); err == nil {
		return form.SQL, nil
	}
	values := rewrite.Values{Literal: true, Tables: make([]rewrite.TableValues, len(plan.Tables))}
	for i, n := range plan.Tables {
		if t := r.tables[n]; t.rules.Fenced() {
			values.Tables[i].Tokens = []rewrite.Token{{Name: t.resource, Value: 1}}
		}
	}
	form, err := plan.Render(values)
	if err != nil {
		return "", r.unrendered(err)
	}
	return form.SQL, nil
}
