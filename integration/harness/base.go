package harness

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	_ "github.com/mattn/go-sqlite3"
	_ "modernc.org/sqlite"

	"github.com/sqlfence/sqlfence"
)

// A Base is a driver that sqlfence is put around.
type Base struct {
	Name       string
	DriverName string // as registered with database/sql
	Dialect    sqlfence.Dialect
}

var Bases = []Base{
	{"pq", "postgres", sqlfence.Postgres},
	{"pgx", "pgx", sqlfence.Postgres},
	{"mattn", "sqlite3", sqlfence.SQLite},
	{"modernc", "sqlite", sqlfence.SQLite},
}

// EachBase runs test as a subtest for every base.
func EachBase(t *testing.T, test func(t *testing.T, b Base)) {
	t.Helper()
	for _, b := range Bases {
		t.Run(b.Name, func(t *testing.T) {
			if b.Dialect == sqlfence.Postgres {
				PostgresDSN(t) // skips or fails here, before the test has begun
			}
			test(t, b)
		})
	}
}

// DSN returns the data source name of a fresh, empty database, which is gone
// when the test ends: a schema of its own in PostgreSQL, a database in MySQL, a
// file in SQLite.
func (b Base) DSN(t testing.TB) string {
	t.Helper()
	switch b.Name {
	case "pq", "pgx":
		return postgresSchema(t)
	case "mysql":
		return MySQLDatabase(t)
	case "mattn":
		return sqliteFile(t, b, "_busy_timeout=10000&_journal_mode=WAL")
	case "modernc":
		return sqliteFile(t, b, "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	}
	t.Fatalf("base %q has no dsn", b.Name)
	return ""
}

// Raw opens the database with the base driver alone.
func (b Base) Raw(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(b.DriverName, dsn)
	return CloseAtEnd(t, db, err)
}

// Fenced opens the database with sqlfence around the base driver.
func (b Base) Fenced(t testing.TB, dsn string, opts ...sqlfence.Option) *sql.DB {
	t.Helper()
	db, err := sqlfence.Open(b.DriverName, dsn, opts...)
	return CloseAtEnd(t, db, err)
}

// Counted is fenced, with a counter between sqlfence and the base driver: it
// tells what sqlfence sends to the database.
func (b Base) Counted(t testing.TB, dsn string, opts ...sqlfence.Option) (*sql.DB, *Counter) {
	t.Helper()
	c := new(Counter)
	opts = append([]sqlfence.Option{sqlfence.WithDialect(b.Dialect)}, opts...)
	db, err := sqlfence.OpenDB(b.Counting(t, dsn, c), opts...)
	return CloseAtEnd(t, db, err), c
}

// Counting returns a connector of the base driver that tells c what reaches it.
func (b Base) Counting(t testing.TB, dsn string, c *Counter) *CountingConnector {
	t.Helper()
	d := b.Raw(t, dsn).Driver() // opens no connection
	return &CountingConnector{CountingDriver{d, c}, dsn}
}

func CloseAtEnd(t testing.TB, db *sql.DB, err error) *sql.DB {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// PostgresDSN returns the server to test on. Without one the test is skipped,
// or fails where the caller insists, so that nothing is skipped unnoticed.
func PostgresDSN(t testing.TB) string {
	t.Helper()
	dsn := os.Getenv("SQLFENCE_POSTGRES_DSN")
	if dsn == "" {
		const hint = "SQLFENCE_POSTGRES_DSN is not set; run scripts/with-postgres go test ./..."
		if os.Getenv("SQLFENCE_REQUIRE_POSTGRES") == "1" {
			t.Fatal(hint)
		}
		t.Skip(hint)
	}
	return dsn
}

// postgresSchema creates a schema and returns a DSN whose search_path is that
// schema alone. search_path is spelled as a run-time parameter, which lib/pq and
// pgx both pass on to the server.
func postgresSchema(t testing.TB) string {
	t.Helper()
	dsn := PostgresDSN(t)
	schema := "sqlfence_" + strings.ToLower(rand.Text())
	admin := Base{DriverName: "pgx"}.Raw(t, dsn)
	if _, err := admin.Exec("CREATE SCHEMA " + schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The limit turns a transaction that the test left open into a failure
		// instead of a hang.
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if _, err := admin.ExecContext(ctx, "DROP SCHEMA "+schema+" CASCADE"); err != nil {
			t.Errorf("dropping the test's schema: %v", err)
		}
	})
	if !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://") {
		return dsn + " search_path=" + schema // keyword=value form
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

// sqliteFile creates a database file and returns its DSN with params. The first
// connection turns WAL on for good: where several did at once, one of them could
// meet SQLITE_BUSY, which busy_timeout doesn't cover there.
func sqliteFile(t testing.TB, b Base, params string) string {
	t.Helper()
	// A second test of one name has a # in its folder's, which would end a URI's path.
	dsn := "file:" + strings.ReplaceAll(filepath.Join(t.TempDir(), "test.db"), "#", "%23") + "?" + params
	db, err := sql.Open(b.DriverName, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	var mode string
	if err := db.QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Fatalf("journal_mode = %q, %v; want wal", mode, err)
	}
	return dsn
}
