package fencepgx

import (
	"github.com/jackc/pgx/v5"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
)

// Misplaces refuses a statement if pgx, in the simple protocol, would write arguments to places where the server reads
// no placeholder, such as in a string: a value could end the string and begin another statement.
func (l *link) Misplaces(r core.Request, _ bool) string {
	simple, args := l.session.simple, r.Args
	for len(args) > 0 && isOption(args[0].Value) {
		if mode, ok := args[0].Value.(pgx.QueryExecMode); ok {
			simple = mode == pgx.QueryExecModeSimpleProtocol
		}
		args = args[1:]
	}
	if simple && len(args) > 0 && !lang.Inlines(l.session.state.Settings().Dialect(), r.Query) {
		return misplacesArguments
	}
	return ""
}

const misplacesArguments = "in its simple protocol pgx would write the arguments where the server reads no " +
	"placeholders; write a blank before each string, and pass strings that contain quotes, backslashes or $ as arguments"
