package sqlfence_test

import (
	"database/sql"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/nonce"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

func init() { nonce.Fix("nonce") }

// open fences a recorder as a database that speaks SQLite's SQL.
func open(t testing.TB, r *fakedb.Recorder, opts ...sqlfence.Option) *sql.DB {
	t.Helper()
	db, err := sqlfence.OpenDB(r, append([]sqlfence.Option{sqlfence.WithDialect(sqlfence.SQLite)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // some tests have closed it
	return db
}
