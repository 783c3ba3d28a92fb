package read_test

import (
	"github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/dialect/sqlite"
	"github.com/sqlfence/sqlfence/rewrite/internal/read"
)

func init() {
	*read.Postgres, *read.SQLite, *read.MySQL = *postgres.Grammar, *sqlite.Grammar, *mysql.Grammar
}
