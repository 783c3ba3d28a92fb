package confirm_test

import (
	"github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/dialect/sqlite"
	"github.com/sqlfence/sqlfence/internal/sql/confirm"
)

func init() {
	*confirm.Postgres, *confirm.SQLite, *confirm.MySQL = *postgres.Confirm, *sqlite.Confirm, *mysql.Confirm
}
