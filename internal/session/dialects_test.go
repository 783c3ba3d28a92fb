package session_test

import (
	"github.com/sqlfence/sqlfence/internal/dialect/mysql"
	"github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/dialect/sqlite"
	"github.com/sqlfence/sqlfence/internal/session"
)

func init() {
	*session.Postgres, *session.SQLite, *session.MySQL = *postgres.Session, *sqlite.Session, *mysql.Session
}
