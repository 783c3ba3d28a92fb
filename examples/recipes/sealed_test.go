package recipes

import (
	"database/sql"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/examples/internal/scratch"
	"github.com/sqlfence/sqlfence/examples/internal/servers"
	"github.com/sqlfence/sqlfence/schema"
)

// A sealedDB is a database of docs/sealed.md, as clients without sqlfence open it.
type sealedDB struct {
	*sql.DB
	t   *testing.T
	dsn string
}

func newSealedDB(t *testing.T) sealedDB {
	check := checking(t)
	source, err := scratch.New(t.Context(), "sealed", servers.PostgresURL(t))
	check(err)
	bare, err := sql.Open(source.Driver, source.DSN)
	check(err)
	t.Cleanup(func() { check(errors.Join(bare.Close(), source.Drop())) })
	db := sealedDB{bare, t, source.DSN}
	db.exec(`CREATE TABLE books (id bigint PRIMARY KEY, price integer, fence_token bigint NOT NULL DEFAULT 0);
		CREATE TABLE jobs (id bigint PRIMARY KEY, state varchar(10), claim bigint NOT NULL DEFAULT 0);
		INSERT INTO books VALUES (1, 20, 7); INSERT INTO jobs VALUES (1, 'running', 3), (2, 'done', 5)`)
	return db
}

func (db sealedDB) exec(query string) {
	db.t.Helper()
	_, err := db.Exec(query)
	checking(db.t)(err)
}

// refused wants a client without sqlfence to be refused with this code.
func (db sealedDB) refused(query, code string) {
	db.t.Helper()
	_, err := db.Exec(query)
	if e := (*pgconn.PgError)(nil); !errors.As(err, &e) || e.Code != code {
		db.t.Errorf("%s: %v, want %s", query, err, code)
	}
}

// onSealedPage returns the first block of SQL on the page that begins with this.
func onSealedPage(t *testing.T, begins string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/sealed.md")
	checking(t)(err)
	block := regexp.MustCompile("(?s)```sql\n(" + begins + ".*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatalf("the page has no SQL that begins with %s", begins)
	}
	return string(block[1])
}

func TestSealedTable(t *testing.T) {
	bare := newSealedDB(t)
	check, ctx, dsn := checking(t), t.Context(), bare.dsn

	db, err := sqlfence.Open("pgx", dsn,
		sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Sealed()))
	check(err) // ends the program
	err = schema.Seal(ctx, db)

	check(err)
	defer db.Close()
	update := onSealedPage(t, "UPDATE books")
	bare.refused("UPDATE books SET price = 30", "FT001")
	bare.refused("TRUNCATE books", "FT001")
	bare.refused(strings.Replace(update, "-42", "-6", 1), "FT002")
	bare.exec(update)
	ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: 42})
	_, err = db.ExecContext(ctx, "UPDATE books SET price = 40 WHERE id = 1")
	check(err)
	remove, _, _ := strings.Cut(onSealedPage(t, "-- PostgreSQL"), "-- MariaDB")
	bare.refused("DELETE FROM books", "FT001")
	bare.refused(strings.Replace(remove, "'42'", "'6'", 1), "FT002")
	bare.exec(remove)
}

func TestSealedTransaction(t *testing.T) {
	bare := newSealedDB(t)
	check, ctx := checking(t), t.Context()
	db, err := sqlfence.Open("pgx", bare.dsn,
		sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Sealed(sqlfence.FromTransaction())))
	check(err)
	defer db.Close()
	check(schema.Seal(ctx, db))
	transaction := onSealedPage(t, "BEGIN")
	bare.exec(transaction)
	bare.refused("UPDATE books SET price = 40", "FT001")
	late := strings.Replace(transaction, "books:000000000000042", "books:000000000000006", 1)
	conn, err := bare.Conn(ctx)
	check(err)
	defer conn.Close()
	_, err = conn.ExecContext(ctx, late)
	if err == nil || !strings.Contains(err.Error(), "FT002") {
		t.Errorf("a late transaction: %v", err)
	}
	_, _ = conn.ExecContext(ctx, "ROLLBACK")
}

func TestSealedQueue(t *testing.T) {
	bare := newSealedDB(t)
	check, ctx := checking(t), t.Context()
	db, err := sqlfence.Open("pgx", bare.dsn,
		sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("claim"), sqlfence.Sealed()))
	check(err)
	defer db.Close()
	check(schema.Seal(ctx, db))
	bare.exec("INSERT INTO jobs (id) VALUES (3)")
	bare.exec("UPDATE jobs SET claim = claim + 1 WHERE id = 3")
	bare.refused("UPDATE jobs SET state = 'done' WHERE id = 1", "FT001")
	bare.refused("UPDATE jobs SET state = 'done', claim = -2 WHERE id = 1", "FT002")
	bare.exec("UPDATE jobs SET state = 'done', claim = -3 WHERE id = 1")
	if _, err := db.ExecContext(sqlfence.Bypass(ctx, "prune"), "DELETE FROM jobs"); !errors.Is(err, sqlfence.ErrNoFence) {
		t.Errorf("Bypass: %v", err)
	}
	if _, err := db.ExecContext(sqlfence.Bypass(ctx, "cancel"), "UPDATE jobs SET state = 'stop'"); !errors.Is(err, sqlfence.ErrNoFence) {
		t.Errorf("Bypass: %v", err)
	}
	// Pruning, as docs/jobs.md has it.
	rows, err := db.QueryContext(ctx, "UPDATE jobs SET claim = claim + 1 WHERE id = 1 RETURNING id, claim")
	check(err)
	_, err = db.ExecContext(presenting(ctx, t, rows), "DELETE FROM jobs WHERE id = 1")
	check(err)
	bare.refused("DELETE FROM jobs WHERE set_config('sqlfence.delete_jobs', '5', true) IS NOT NULL", "FT002")
	bare.exec("DELETE FROM jobs WHERE set_config('sqlfence.delete_jobs', '1,5', true) IS NOT NULL")
}
