package sqltext_test

import (
	"github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/dialect/sqlite"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

func init() {
	sqltext.Postgres, sqltext.SQLite, sqltext.MySQL = postgres.Text, sqlite.Text, mysql.Text
}
