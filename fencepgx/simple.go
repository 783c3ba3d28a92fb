package fencepgx

import (
	"github.com/jackc/pgx/v5"

	"github.com/sqlfence/sqlfence/internal/sql/lang"
)

// In the simple protocol pgx writes the arguments into the text, where its scanner finds placeholders. Where the server
// reads none, such as in a string, a value could end that string, and what stands behind it be a statement that no plan
// has seen.

// misplaces reports whether pgx would do so with the arguments of a text.
func (s *session) misplaces(text string, args []any) bool {
	simple := s.simple
	for len(args) > 0 && isOption(args[0]) {
		if mode, ok := args[0].(pgx.QueryExecMode); ok {
			simple = mode == pgx.QueryExecModeSimpleProtocol
		}
		args = args[1:]
	}
	return simple && len(args) > 0 && !lang.Inlines(s.state.Settings().Dialect(), text)
}

const misplacesArguments = "in its simple protocol pgx would write the arguments where the server reads no " +
	"placeholders; write a blank before each string, and pass strings that contain quotes, backslashes or $ as arguments"
