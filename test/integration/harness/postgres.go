package harness

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/tokens"
)

// since is which version of PostgreSQL was the first to have what stands in a statement.
var since = map[string]int{
	"MERGE INTO": 15, "pg_get_backend_memory_contexts": 14,
	"GRANT pg_read_all_stats": 15, // before, that role reads no memory contexts
}

// Lacks reports whether a server doesn't know a statement for its age.
func Lacks(t testing.TB, db *sql.DB, query string) bool {
	t.Helper()
	for part, first := range since {
		if !strings.Contains(query, part) {
			continue
		}
		var version int
		if err := db.QueryRow("SELECT current_setting('server_version_num')::int / 10000").Scan(&version); err != nil {
			t.Fatal(err)
		}
		if version < first {
			return true
		}
	}
	return false
}

// NeedPostgres skips or fails a test that lacks a PostgreSQL server: see [need.Missing].
func NeedPostgres(t testing.TB) {
	t.Helper()
	need.Server(t, "POSTGRES", "scripts/with-postgres go test ./...")
}

// PostgresDSN returns the data source name of the PostgreSQL database that the
// tests of this package have to themselves: locks by name are a database's, and the
// tests of several packages run at the same time. Without a server it is NeedPostgres.
func PostgresDSN(t testing.TB) string {
	t.Helper()
	NeedPostgres(t)
	own.create.Do(func() { own.err = own.open(os.Getenv("SQLFENCE_POSTGRES_DSN")) })
	if own.err != nil {
		t.Fatalf("creating the package's database: %v", own.err)
	}
	return own.dsn
}

// Main runs the tests of a package, and drops its database, and what its servers began with, afterwards. Each package
// whose tests use PostgreSQL has a TestMain that calls it.
func Main(m *testing.M) {
	own.drops = true
	code := m.Run()
	_ = os.RemoveAll(clusters.dir)
	if err := own.drop(); err != nil {
		fmt.Fprintln(os.Stderr, "dropping the package's database:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// clusters has the folder with the data of a new [Server].
var clusters struct {
	make sync.Once
	dir  string
}

// own is the database of this process.
var own ownDatabase

type ownDatabase struct {
	create sync.Once
	err    error
	drops  bool // somebody will
	server string
	name   string
	dsn    string
	admin  *sql.DB // of the database: it creates and drops the tests' schemas
}

func (o *ownDatabase) open(server string) error {
	if !o.drops {
		return fmt.Errorf("the package has no TestMain that calls harness.Main")
	}
	name := "sqlfence_" + strings.ToLower(rand.Text())
	db, err := sql.Open("pgx", server)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := execOnce(db, "CREATE DATABASE "+name); err != nil {
		return err
	}
	o.server, o.name = server, name
	if o.dsn, err = withDatabase(server, name); err != nil {
		return err
	}
	o.admin, err = sql.Open("pgx", o.dsn)
	return err
}

func (o *ownDatabase) drop() error {
	if o.name == "" {
		return nil
	}
	if o.admin != nil {
		_ = o.admin.Close()
	}
	db, err := sql.Open("pgx", o.server)
	if err != nil {
		return err
	}
	defer db.Close()
	return execOnce(db, "DROP DATABASE "+o.name+" WITH (FORCE)")
}

// execOnce creates and drops databases, and repeats after 55006. The server waits 5 s for other sessions to leave,
// which a paused session doesn't.
func execOnce(db *sql.DB, query string) error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	for {
		if _, err := db.ExecContext(ctx, query); SQLState(err) != "55006" {
			return err
		}
	}
}

// postgresSchema creates a schema and returns a DSN whose search_path is that
// schema alone. search_path is spelled as a run-time parameter, which lib/pq and
// pgx both pass on to the server.
func postgresSchema(t testing.TB) string {
	t.Helper()
	dsn := PostgresDSN(t)
	holds(t, "PostgreSQL")
	schema := "sqlfence_" + strings.ToLower(rand.Text())
	admin := own.admin
	if _, err := admin.Exec("CREATE SCHEMA " + schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The limit turns a transaction that the test left open into a failure
		// instead of a hang.
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		drop := func() error { _, err := admin.ExecContext(ctx, "DROP SCHEMA "+schema+" CASCADE"); return err }
		err := drop()
		for SQLState(err) == "40P01" { // a statement that its client has left may still be running
			err = drop()
		}
		if err != nil {
			t.Errorf("dropping the test's schema: %v", err)
		}
	})
	return withParam(t, dsn, "search_path", schema)
}

// postgresCreate creates tables and the ledger's function in the schema of a DSN by postgresSchema. It does so in the
// session that creates the schemas: a new session takes four times as long, because it has no catalogue in its caches.
func postgresCreate(t testing.TB, dsn string, tables ...string) {
	t.Helper()
	_, schema, _ := strings.Cut(dsn, "search_path=")
	schema, _, _ = strings.Cut(schema, "&")
	text := "SET LOCAL search_path = " + schema + "; " + strings.Join(append(tables, tokens.LedgerFunction()), "; ")
	if _, err := own.admin.ExecContext(t.Context(), text); err != nil { // one transaction, as it is one text
		t.Fatal(err)
	}
}

func isURL(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

func withDatabase(dsn, name string) (string, error) {
	if !isURL(dsn) {
		return dsn + " dbname=" + name, nil // keyword=value form
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

func withParam(t testing.TB, dsn, name, value string) string {
	t.Helper()
	if !isURL(dsn) {
		return dsn + " " + name + "=" + value
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

func postgresWaiters(t testing.TB, db *sql.DB, session int) (n int) {
	t.Helper()
	const query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND $1 = ANY (pg_blocking_pids(pid))"
	if err := db.QueryRow(query, session).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// postgresWaiting counts those who wait for a table of the schema, or for a row of it.
func postgresWaiting(t testing.TB, db *sql.DB) (n int) {
	t.Helper()
	const query = `SELECT count(DISTINCT waits.pid) FROM pg_locks AS waits JOIN pg_locks AS has USING (pid)
JOIN pg_class ON pg_class.oid = has.relation WHERE NOT waits.granted AND relnamespace = current_schema()::regnamespace`
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// PostgresDatabase creates a database and returns its DSN: for tests of what a whole database has.
func PostgresDatabase(t testing.TB) string {
	t.Helper()
	dsn, err := PostgresDatabaseAs(t, "")
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

// PostgresDatabaseAs is PostgresDatabase with the options of a CREATE DATABASE, which the server may refuse.
func PostgresDatabaseAs(t testing.TB, options string) (dsn string, _ error) {
	t.Helper()
	server := PostgresDSN(t)
	holds(t, "PostgreSQL")
	name := "sqlfence_" + strings.ToLower(rand.Text())
	if err := execOnce(own.admin, "CREATE DATABASE "+name+" "+options); err != nil {
		return "", err
	}
	t.Cleanup(func() {
		if err := execOnce(own.admin, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("dropping the test's database: %v", err)
		}
	})
	return withDatabase(server, name)
}
