// Package ncruces runs the conformance suite over a driver that sqlfence doesn't
// know, as the driver's author would. It has a folder of its own because the
// driver takes the name sqlite3, as mattn's does.
package ncruces

import (
	"database/sql/driver"
	"path/filepath"
	"testing"

	sqlite "github.com/ncruces/go-sqlite3/driver"
	_ "github.com/ncruces/go-sqlite3/embed"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/conformance"
)

func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles SQLite to WebAssembly first")
	}
	conformance.Run(t, conformance.Harness{
		Connector: func(t testing.TB) driver.Connector {
			file := filepath.ToSlash(filepath.Join(t.TempDir(), "test.db"))
			c, err := new(sqlite.SQLite).OpenConnector("file:" + file + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)")
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		Skip: map[string]string{
			"empty statements": "the driver crashes on them, also alone",
		},
		Options: []sqlfence.Option{sqlfence.WithDialect(sqlfence.SQLite)},
	})
}
