package lex_test

import (
	"github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/dialect/sqlite"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

func init() {
	*lex.Postgres, *lex.SQLite, *lex.MySQL = *postgres.Lex, *sqlite.Lex, *mysql.Lex
}
