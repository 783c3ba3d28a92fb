package effects_test

import (
	"database/sql"
	"database/sql/driver"

	"github.com/mattn/go-sqlite3"
	"modernc.org/sqlite"
)

// mattnWithFunctions is mattn's driver with the function f, which statements of the corpus call. modernc's driver has f
// in each of its databases.
const mattnWithFunctions = "sqlite3 with f"

func init() {
	f := func(args ...any) any { return int64(len(args)) }
	sql.Register(mattnWithFunctions, &sqlite3.SQLiteDriver{ConnectHook: func(c *sqlite3.SQLiteConn) error {
		return c.RegisterFunc("f", f, false)
	}})
	sqlite.MustRegisterScalarFunction("f", -1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		return int64(len(args)), nil
	})
}
