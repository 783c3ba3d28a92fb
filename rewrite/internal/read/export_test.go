package read

import "github.com/sqlfence/sqlfence/internal/sql/lex"

// The databases' grammars. This package can't import the databases' folders, so the external tests fill the values.
var Postgres, SQLite, MySQL = new(lex.Grammar), new(lex.Grammar), new(lex.Grammar)
