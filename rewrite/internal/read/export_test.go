package read

import "github.com/sqlfence/sqlfence/internal/sql/lex"

// The databases' values. They are below no folder of a database, so the external tests fill them.
var Postgres, SQLite, MySQL = new(lex.Grammar), new(lex.Grammar), new(lex.Grammar)
