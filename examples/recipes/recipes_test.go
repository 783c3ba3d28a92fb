// Package recipes runs the code of docs/recipes.md on SQLite, that of docs/jobs.md on SQLite
// and PostgreSQL, and that of docs/sealed.md on PostgreSQL.
package recipes

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/mattn/go-sqlite3"
	_ "modernc.org/sqlite"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/examples/internal/servers"
	"github.com/sqlfence/sqlfence/fencepgx"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/tokens"
)

// TestPages checks that each block of Go on the pages is in the file that runs it, apart from blanks.
func TestPages(t *testing.T) {
	words := func(text []byte) string { return strings.Join(strings.Fields(string(text)), " ") }
	check := checking(t)
	for _, p := range []struct {
		page, file string
		least      int
	}{{"../../docs/recipes.md", "recipes_test.go", 17}, {"../../docs/jobs.md", "jobs_test.go", 10},
		{"../../docs/sealed.md", "sealed_test.go", 3}} {
		page, err := os.ReadFile(p.page)
		check(err)
		source, err := os.ReadFile(p.file)
		check(err)
		blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(page, -1)
		if len(blocks) < p.least {
			t.Errorf("%s has %d blocks of Go", p.page, len(blocks))
		}
		for _, block := range blocks {
			if bytes.HasPrefix(block[1], []byte("package main\n")) { // the program around the recipes
				_, block[1], _ = bytes.Cut(block[1], []byte("ctx := context.Background()\n"))
				block[1], _, _ = bytes.Cut(block[1], []byte("\t// the recipe goes here"))
			}
			if !strings.Contains(words(source), words(block[1])) {
				t.Errorf("%s doesn't run\n%s", p.file, block[1])
			}
			if n := strings.Count(string(block[1]), "\n"); n > 12 {
				t.Errorf("a recipe of %d lines:\n%s", n, block[1])
			}
		}
		for _, parameters := range regexp.MustCompile("`file:shop.db(.*?)`").FindAllSubmatch(page, -1) {
			if !strings.Contains(string(parameters[1]), "_txlock=immediate&") {
				t.Errorf("%s doesn't lock at BEGIN", parameters[1])
			}
		}
	}
}

const driver = "sqlite"

var books = func() sqlfence.Option {
	books := sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Ledger())
	return books
}()

// check ends the program, as on the page.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

func checking(t *testing.T) func(error) {
	return func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// fresh creates a database with the recipes' tables, and returns its name.
func fresh(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/recipes.md")
	check := checking(t)
	check(err)
	parameters := regexp.MustCompile("`file:shop.db(\\?_txlock=immediate&_pragma=.*?)`").FindSubmatch(page)
	if parameters == nil {
		t.Fatal("the page has no data source name")
	}
	dsn := "file:" + filepath.Join(t.TempDir(), "shop.db") + string(parameters[1])
	plain, err := sql.Open(driver, dsn)
	check(err)
	defer plain.Close()
	for _, query := range []string{
		"CREATE TABLE books (id integer PRIMARY KEY, price integer, version bigint NOT NULL DEFAULT 1, fence_token bigint NOT NULL DEFAULT 0)",
		"CREATE TABLE pens (id integer PRIMARY KEY, price integer, fence_token bigint NOT NULL DEFAULT 0)",
		"CREATE TABLE orders (id integer PRIMARY KEY, price integer, version bigint NOT NULL DEFAULT 1, fence_token bigint NOT NULL DEFAULT 0)",
		"CREATE TABLE jobs (id integer PRIMARY KEY, state text NOT NULL, claim bigint NOT NULL DEFAULT 0)",
		"INSERT INTO books (id, price) VALUES (1, 20)",
		"INSERT INTO pens (id, price) VALUES (1, 20)",
		"INSERT INTO orders (id, price) VALUES (1, 20)",
		"INSERT INTO jobs (id, state) VALUES (1, 'queued'), (2, 'queued')",
	} {
		_, err := plain.Exec(query)
		check(err)
	}
	return dsn
}

// open opens a fresh database with a table's option, and creates sqlfence's tables.
func open(t *testing.T, table sqlfence.Option) (*sql.DB, *lease.Leases, *tokens.Store) {
	t.Helper()
	check := checking(t)
	ctx, dsn, books := t.Context(), fresh(t), table
	db, err := sqlfence.Open(driver, dsn, books)
	check(err)
	leases, err := lease.New(db)
	check(err)
	check(leases.Setup(ctx)) // creates the tables of leases and tokens if they are missing
	store, err := tokens.New(db)
	check(err)
	t.Cleanup(func() { db.Close() })
	return db, leases, store
}

func wantStale(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("a late write: %v", err)
	}
}

func TestLeader(t *testing.T) {
	check, dsn := checking(t), fresh(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var write func() error
	var written error
	work := func(context.Context) { written = write(); stop() }

	election, err := lease.NewElection("books", lease.Callbacks{Elected: work}) // work must return when its ctx ends
	check(err)
	db, err := sqlfence.Open(driver, dsn, books, sqlfence.WithTokenSource(election.Tokens))
	check(err)

	defer db.Close()
	write = func() error { _, err := db.Exec("UPDATE books SET price = 30 WHERE id = 1"); return err }
	leases, err := lease.New(db)
	check(err)
	check(leases.Setup(ctx))
	err = election.Run(ctx, leases) // campaigns, leads, campaigns again, until ctx ends

	check(err)
	check(written)
	if err := write(); !errors.Is(err, lease.ErrNotLeader) {
		t.Errorf("a write of a process that doesn't lead: %v", err)
	}
}

func TestLease(t *testing.T) {
	db, leases, store := open(t, books)
	var err error
	check, ctx := checking(t), t.Context()
	err = leases.Do(ctx, "books", func(ctx context.Context) error { // waits for the lease, and extends it
		_, err := db.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1") // presents the lease's token
		return err
	})
	check(err)
	testLateWrite(t, db, store)
}

func testLateWrite(t *testing.T, db *sql.DB, store *tokens.Store) {
	older, err := store.Issue(t.Context(), "books")
	check(err)
	_, err = store.Issue(t.Context(), "books") // another holder takes over
	check(err)
	late := sqlfence.WithFence(t.Context(), older)
	_, err = db.ExecContext(late, "UPDATE books SET price = 10 WHERE id = 1")
	if !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("a late write: %v", err)
	}
}

func TestTheNewestRun(t *testing.T) {
	check, dsn, ctx := checking(t), fresh(t), t.Context()
	run := func() *sql.DB {
		source, err := tokens.NewSource("books")
		check(err)
		db, err := sqlfence.Open(driver, dsn, books, sqlfence.WithTokenSource(source.Tokens))
		check(err)

		t.Cleanup(func() { db.Close() })
		if _, err := db.Exec("UPDATE books SET price = 10"); !errors.Is(err, sqlfence.ErrNoFence) {
			t.Errorf("a write before the token was issued: %v", err)
		}
		store, err := tokens.New(db)
		check(err)
		check(store.Setup(ctx))
		check(source.Issue(ctx, store)) // takes over

		_, err = db.Exec("UPDATE books SET price = 30 WHERE id = 1")
		check(err)
		return db
	}
	older := run()
	run()
	_, err := older.Exec("UPDATE books SET price = 10 WHERE id = 1")
	wantStale(t, err)
}

func TestTheLastToBegin(t *testing.T) {
	db, _, store := open(t, books)
	check, ctx := checking(t), t.Context()
	var err error
	late := store.Do(ctx, "books", func(late context.Context) error {
		err = store.Do(ctx, "books", func(ctx context.Context) error { // takes no lock
			_, err := db.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1")
			return err // ErrStale: another caller began later
		})
		check(err)
		_, err := db.ExecContext(late, "UPDATE books SET price = 10 WHERE id = 1")
		return err
	})
	wantStale(t, late)
}

func TestLockService(t *testing.T) {
	db, _, store := open(t, books)
	check := checking(t)
	write := func(ctx context.Context, revision int64) (err error) {
		token := sqlfence.Token{Name: "books", Value: revision}
		check(store.Adopt(ctx, token))
		ctx = sqlfence.WithFence(ctx, token)
		_, err = db.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1")
		return err
	}
	check(write(t.Context(), 7))
	check(store.Adopt(t.Context(), sqlfence.Token{Name: "books", Value: 9}))
	_, err := db.ExecContext(sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 7}), "UPDATE books SET price = 10")
	wantStale(t, err)
}

func TestQueue(t *testing.T) {
	check, ctx, dsn := checking(t), t.Context(), fresh(t)
	db, err := sqlfence.Open(driver, dsn, sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("claim")))
	check(err)
	defer db.Close()
	var id, claim int64
	err = db.QueryRowContext(ctx, `UPDATE jobs SET state = 'running', claim = claim + 1
		WHERE id = (SELECT id FROM jobs WHERE state = 'queued' ORDER BY id LIMIT 1)
		RETURNING id, claim`).Scan(&id, &claim)
	check(err) // sql.ErrNoRows: no job is queued
	token, err := sqlfence.ClaimToken("jobs", id, claim)
	check(err)
	ctx = sqlfence.WithFence(ctx, token)
	_, err = db.ExecContext(ctx, "UPDATE jobs SET state = 'done' WHERE id = $1", id) // ErrStale: another worker has the job
	check(err)
	_, err = db.ExecContext(t.Context(), "UPDATE jobs SET claim = claim + 1 WHERE id = $1", id)
	check(err)
	_, err = db.ExecContext(ctx, "UPDATE jobs SET state = 'done' WHERE id = $1", id)
	wantStale(t, err)
}

func TestVersion(t *testing.T) {
	check, ctx, dsn := checking(t), t.Context(), fresh(t)
	db, err := sqlfence.Open(driver, dsn, sqlfence.WithTable("books", sqlfence.Serial("version", sqlfence.Required())))
	check(err)
	defer db.Close()
	var price, version int64
	check(db.QueryRowContext(ctx, "SELECT price, version FROM books WHERE id = 1").Scan(&price, &version))
	ctx = sqlfence.WithSerial(ctx, version)
	_, err = db.ExecContext(ctx, "UPDATE books SET price = $1 WHERE id = 1", price+1)
	if errors.Is(err, sqlfence.ErrConflict) {
		// read again, and decide again
	}
	check(err)
	if _, err := db.ExecContext(ctx, "UPDATE books SET price = 5 WHERE id = 1"); !errors.Is(err, sqlfence.ErrConflict) {
		t.Errorf("a second write of the same version: %v", err)
	}
}

func TestCron(t *testing.T) {
	db, leases, _ := open(t, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Resource("report")))
	check, ctx := checking(t), t.Context()
	runs := 0
	report := func(ctx context.Context) error {
		runs++
		_, err := db.ExecContext(ctx, "UPDATE books SET price = 30 WHERE id = 1")
		return err
	}
	for range 2 { // nodes
		var err error
		err = leases.Do(ctx, "report", report, lease.MinHold(55*time.Minute), lease.NoWait()) // hourly
		if errors.Is(err, lease.ErrHeld) {
			err = nil // another node runs or ran the job
		}
		check(err)
	}
	if runs != 1 {
		t.Errorf("the job ran %d times", runs)
	}
}

func TestMixedWriters(t *testing.T) {
	ctx := t.Context()
	t.Run("inserts", func(t *testing.T) {
		dsn := fresh(t)
		db, err := sqlfence.Open(driver, dsn,
			sqlfence.WithTable("orders", sqlfence.RowFence("fence_token"), sqlfence.UnfencedInserts()))
		checking(t)(err)
		defer db.Close()
		_, err = db.ExecContext(ctx, "INSERT INTO orders (price) VALUES (10)")
		checking(t)(err)
		if _, err := db.ExecContext(ctx, "UPDATE orders SET price = 10"); !errors.Is(err, sqlfence.ErrNoFence) {
			t.Errorf("an UPDATE without a token: %v", err)
		}
	})
	t.Run("changes", func(t *testing.T) {
		check, dsn := checking(t), fresh(t)
		db, err := sqlfence.Open(driver, dsn, sqlfence.WithTable("orders",
			sqlfence.RowFence("fence_token"), sqlfence.Optional(), sqlfence.Serial("version", sqlfence.Required())))
		check(err)
		defer db.Close()
		store, err := tokens.New(db)
		check(err)
		check(store.Setup(ctx))
		token, err := store.Issue(ctx, "orders")
		check(err)
		const change = "UPDATE orders SET price = price + 1 WHERE id = 1"
		_, err = db.ExecContext(sqlfence.WithFence(sqlfence.WithSerial(ctx, 1), token), change) // the worker
		check(err)
		if _, err := db.ExecContext(sqlfence.WithSerial(ctx, 1), change); !errors.Is(err, sqlfence.ErrConflict) {
			t.Errorf("the API, with the version before the worker's write: %v", err)
		}
		_, err = db.ExecContext(sqlfence.WithSerial(ctx, 2), change)
		check(err)
		if _, err := db.ExecContext(ctx, change); !errors.Is(err, sqlfence.ErrNoSerial) {
			t.Errorf("the API, without a version: %v", err)
		}
	})
}

func TestSeveralTables(t *testing.T) {
	check, dsn, ctx := checking(t), fresh(t), t.Context()
	db, err := sqlfence.Open(driver, dsn,
		sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Resource("shop")),
		sqlfence.WithTable("pens", sqlfence.RowFence("fence_token"), sqlfence.Resource("shop")))
	check(err)
	defer db.Close()
	leases, err := lease.New(db)
	check(err)
	check(leases.Setup(ctx))
	check(leases.Do(ctx, "shop", func(ctx context.Context) error {
		for _, table := range []string{"books", "pens"} {
			if _, err := db.ExecContext(ctx, "UPDATE "+table+" SET price = 30"); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Both databases of one pool write by the token of one lease.
func TestPool(t *testing.T) {
	check, ctx := checking(t), t.Context()
	plain, err := pgxpool.New(ctx, servers.PostgresURL(t))
	check(err)
	defer plain.Close()
	schema := "recipe_" + strings.ToLower(rand.Text()[:10])
	_, err = plain.Exec(ctx, "CREATE SCHEMA "+schema)
	check(err)
	defer func() {
		_, err := plain.Exec(context.WithoutCancel(ctx), "DROP SCHEMA "+schema+" CASCADE")
		check(err)
	}()
	address, err := url.Parse(servers.PostgresURL(t))
	check(err)
	values := address.Query()
	values.Set("search_path", schema)
	address.RawQuery = values.Encode()
	dsn := address.String()
	_, err = plain.Exec(ctx, "CREATE TABLE "+schema+".books (id integer PRIMARY KEY, price integer, fence_token bigint NOT NULL DEFAULT 0)")
	check(err)

	pool, err := pgxpool.New(ctx, dsn)
	check(err)
	db, err := sqlfence.OpenDB(stdlib.GetPoolConnector(pool), books)
	check(err)
	native, err := fencepgx.New(pool, books)
	check(err)

	defer pool.Close()
	defer db.Close()
	leases, err := lease.New(db)
	check(err)
	check(leases.Setup(ctx))
	var late context.Context
	check(leases.Do(ctx, "books", func(ctx context.Context) error {
		late = context.WithoutCancel(ctx)
		if _, err := native.Exec(ctx, "INSERT INTO books (id, price) VALUES (1, 20)"); err != nil {
			return err
		}
		_, err := db.ExecContext(ctx, "UPDATE books SET price = 30")
		return err
	}))
	check(leases.Do(ctx, "books", func(context.Context) error { return nil }))
	_, err = native.Exec(late, "UPDATE books SET price = 10")
	wantStale(t, err)
	_, err = db.ExecContext(late, "UPDATE books SET price = 10")
	wantStale(t, err)
}

// With the parameters of the page transactions that read first and write then wait for each other.
func TestSQLite(t *testing.T) {
	page, err := os.ReadFile("../../docs/recipes.md")
	check := checking(t)
	check(err)
	names := regexp.MustCompile("`file:shop.db(.*?)`").FindAllSubmatch(page, -1)
	if len(names) != 2 {
		t.Fatalf("the page has %d data source names", len(names))
	}
	for i, driver := range []string{"sqlite", "sqlite3"} {
		t.Run(driver, func(t *testing.T) {
			check, dsn := checking(t), "file:"+filepath.Join(t.TempDir(), "shop.db")+string(names[i][1])
			db, err := sqlfence.Open(driver, dsn, books)
			check(err)
			defer db.Close()
			_, err = db.Exec("CREATE TABLE books (id integer PRIMARY KEY, price integer, fence_token bigint NOT NULL DEFAULT 0)")
			check(err)
			leases, err := lease.New(db)
			check(err)
			check(leases.Setup(t.Context()))
			check(leases.Do(t.Context(), "books", func(ctx context.Context) error {
				done := make(chan error)
				for range 8 {
					go func() { done <- addBook(ctx, db) }()
				}
				var all error
				for range 8 {
					all = errors.Join(all, <-done)
				}
				return all
			}))
		})
	}
}

func addBook(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var books int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM books").Scan(&books); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO books (price) VALUES ($1)", books); err != nil {
		return err
	}
	return tx.Commit()
}
