package harness

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// Tests of the harness without sqlfence: each database is fresh and works, and the counter records what database/sql
// sends.

func TestDatabasesAreFresh(t *testing.T) {
	EachBase(t, func(t *testing.T, b Base) {
		first, second := b.DSN(t), b.DSN(t)
		for _, dsn := range []string{first, second, first} {
			db := b.Raw(t, dsn)
			// When first is opened again, CREATE TABLE fails, because the table exists. In second it must succeed.
			_, err := db.Exec("CREATE TABLE books (id integer PRIMARY KEY, price integer)")
			if seen := slices.Contains(tableNames(t, b, db), "books"); !seen {
				t.Fatalf("books is not where it was created: %v", err)
			}
			if _, err := db.Exec("INSERT INTO books (id, price) VALUES ($1, $2)", CountBooks(t, db)+1, 10); err != nil {
				t.Fatal(err)
			}
		}
		if got := CountBooks(t, b.Raw(t, first)); got != 2 {
			t.Errorf("first database has %d rows, want 2", got)
		}
		if got := CountBooks(t, b.Raw(t, second)); got != 1 {
			t.Errorf("second database has %d rows, want 1", got)
		}
	})
}

func TestCounterSeesStatements(t *testing.T) {
	EachBase(t, func(t *testing.T, b Base) {
		c := new(Counter)
		db := sql.OpenDB(b.Counting(t, b.DSN(t), c))
		defer db.Close()
		const (
			create = "CREATE TABLE books (id integer PRIMARY KEY, price integer)"
			query  = "SELECT count(*) FROM books"
		)
		insert := b.Text(t, "INSERT INTO books (id, price) VALUES ($1, $2)")
		if _, err := db.Exec(create); err != nil {
			t.Fatal(err)
		}
		stmt, err := db.Prepare(insert)
		if err != nil {
			t.Fatal(err)
		}
		defer stmt.Close()
		for id := range 2 {
			if _, err := stmt.Exec(id, 10); err != nil {
				t.Fatal(err)
			}
		}
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		var n int
		if err := tx.QueryRow(query).Scan(&n); err != nil || n != 2 {
			t.Fatalf("count = %d, %v; want 2", n, err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}

		var kinds []string
		for _, call := range c.Calls() {
			kinds = append(kinds, call.Kind)
		}
		if want := []string{"exec", "prepare", "stmt exec", "stmt exec", "begin", "query"}; !slices.Equal(kinds, want) {
			t.Errorf("kinds = %q, want %q", kinds, want)
		}
		if got, want := c.Texts(), []string{create, insert, insert, insert, query}; !slices.Equal(got, want) {
			t.Errorf("texts = %q, want %q", got, want)
		}
		// The base driver chooses the arguments' type: pgx keeps int, the others convert to int64.
		if args := c.Calls()[3].Args; len(args) != 2 || fmt.Sprint(args[0].Value, args[1].Value) != "1 10" {
			t.Errorf("args of the second insert = %v, want 1 and 10", args)
		}
		c.Reset()
		if got := c.Calls(); len(got) != 0 {
			t.Errorf("after reset: %v", got)
		}
	})
}

func tableNames(t *testing.T, b Base, db *sql.DB) []string {
	t.Helper()
	rows, err := db.Query(map[sqlfence.Dialect]string{
		sqlfence.Postgres: "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()",
		sqlfence.SQLite:   "SELECT name FROM sqlite_schema WHERE type = 'table'",
		sqlfence.MySQL:    "SELECT table_name FROM information_schema.tables WHERE table_schema = database()",
	}[b.Dialect])
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}

// pgx pings a connection that was idle for a while. The proxy must count every other message, and not these pings.
func TestProxyCountsNoPings(t *testing.T) {
	b := Bases[slices.IndexFunc(Bases, func(b Base) bool { return b.Name == "pgx" })]
	p := NewProxy(t, b.DSN(t))
	db := b.Raw(t, p.DSN)
	db.SetMaxOpenConns(1)
	MustExec(t, db, "SELECT 1") // connects
	if n := p.Trips(func() { _ = db.PingContext(t.Context()) }); n != 0 {
		t.Errorf("a ping: %d round trips", n)
	}
	if n := p.Trips(func() { MustExec(t, db, "SELECT 1") }); n != 1 {
		t.Errorf("a statement: %d round trips", n)
	}
}

// Undisturbed repeats its function if the database hasn't responded to anybody for a while.
func TestUndisturbedBeginsAnew(t *testing.T) {
	EachDriver(t, func(t *testing.T, b Base) {
		db := b.Raw(t, b.DSN(t))
		db.SetMaxOpenConns(1)
		tries := 0
		Undisturbed(t, db, 100*time.Millisecond, func() error {
			if tries++; tries > 1 {
				return nil
			}
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			time.Sleep(200 * time.Millisecond) // holds every other response back
			return errors.New("too late")
		})
		if tries != 2 {
			t.Errorf("%d tries", tries)
		}
	})
}

// A test that evaluates its subtests together is skipped if a subtest was skipped, and isn't skipped otherwise.
func TestParentIsSkippedWithASubtest(t *testing.T) {
	for _, skips := range []bool{false, true} {
		t.Run(fmt.Sprint("skips ", skips), func(t *testing.T) {
			var both Subtests
			ran := 0
			t.Cleanup(func() {
				if t.Skipped() != (ran < 2) {
					t.Errorf("%d of 2 subtests have run, and their parent is skipped: %v", ran, t.Skipped())
				}
			})
			both.Run(t, "runs", func(*testing.T) { ran++ })
			both.Run(t, "may skip", func(t *testing.T) {
				if skips {
					t.Skip("on purpose")
				}
				ran++
			})
			both.NeedAll(t)
		})
	}
}
