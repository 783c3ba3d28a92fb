package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// On a fenced database AddFence adds the column as on a bare one, without an event, and then guarded writes work.
func TestAddFence(t *testing.T) {
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		source := b.DSN(t)
		plain := b.Raw(t, source)
		harness.MustExec(t, plain, "CREATE TABLE books (id bigint PRIMARY KEY, price bigint)")
		harness.MustExec(t, plain, "INSERT INTO books (id, price) VALUES (1, 10)")
		var events int
		observer := func(context.Context, sqlfence.Event) { events++ }
		db, sent := b.Counted(t, source, harness.Books(sqlfence.RowFence("fence_token")), sqlfence.WithObserver(observer))

		if err := schema.AddFence(t.Context(), db, "books", "fence_token"); err != nil {
			t.Fatal(err)
		}
		if events > 0 {
			t.Errorf("%d events, want none", events)
		}
		var mark sql.NullInt64
		if err := plain.QueryRow("SELECT fence_token FROM books").Scan(&mark); err != nil || !mark.Valid || mark.Int64 != 0 {
			t.Errorf("the mark is %v, %v, want 0", mark, err)
		}
		_, err := db.ExecContext(harness.Holding(t, 5), "UPDATE books SET price = 20 WHERE id = 1")
		if err != nil {
			t.Error(err)
		}
		_, err = db.ExecContext(harness.Holding(t, 4), "UPDATE books SET price = 30 WHERE id = 1")
		harness.WantStale(t, err, 4, 5)

		sent.Reset()
		for _, db := range []*sql.DB{db, plain} {
			if err := schema.AddFence(t.Context(), db, "BOOKS", "Fence_Token"); err != nil && !tellsCapitalsApart(b) {
				t.Errorf("again: %v", err)
			}
			if err := schema.AddFence(t.Context(), db, "books", "fence_token"); err != nil {
				t.Errorf("again: %v", err)
			}
		}
		for _, text := range sent.Texts() {
			if !strings.HasPrefix(text, "S") { // SELECT and SHOW
				t.Errorf("again it has sent\n%s", text)
			}
		}
	})
}

// tellsCapitalsApart reports whether Books can be a table beside books. MySQL's tables are files, and most file systems
// distinguish capitals.
func tellsCapitalsApart(b harness.Base) bool { return b.Dialect == sqlfence.MySQL }

// The statements of AddFenceSQL, executed one by one, have the effects of AddFence.
func TestAddFenceSQL(t *testing.T) {
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		source := b.DSN(t)
		plain := b.Raw(t, source)
		plain.SetMaxOpenConns(1)
		harness.MustExec(t, plain, "CREATE TABLE books (id bigint PRIMARY KEY, price bigint)")
		texts, err := schema.AddFenceSQL(b.Dialect, "books", "fence_token")
		if err != nil {
			t.Fatal(err)
		}
		before := settings(t, b, plain)
		for _, text := range texts {
			harness.MustExec(t, plain, text)
		}
		if after := settings(t, b, plain); after != before {
			t.Errorf("the session's settings were %s, now they are %s", before, after)
		}
		if err := schema.AddFence(t.Context(), plain, "books", "fence_token"); err != nil {
			t.Error(err)
		}
		if b.Dialect == sqlfence.Postgres {
			for _, text := range texts {
				harness.MustExec(t, plain, text)
			}
			tx := harness.Begin(context.Background(), t, plain, sql.LevelDefault)
			for _, query := range append([]string{"SET LOCAL lock_timeout = '17s'"}, texts...) {
				if _, err := tx.Exec(query); err != nil {
					t.Fatal(err)
				}
			}
			var patience string
			if err := tx.QueryRow("SELECT current_setting('lock_timeout')").Scan(&patience); err != nil || patience != "17s" {
				t.Errorf("the transaction's lock_timeout is %s, %v", patience, err)
			}
		}
	})
}

// settings returns how long the session waits for locks.
func settings(t *testing.T, b harness.Base, db *sql.DB) (value string) {
	t.Helper()
	query := map[sqlfence.Dialect]string{
		sqlfence.Postgres: "SELECT current_setting('lock_timeout')",
		sqlfence.SQLite:   "SELECT '-'",
		sqlfence.MySQL:    "SELECT @@SESSION.lock_wait_timeout",
	}[b.Dialect]
	if err := db.QueryRow(query).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// An existing column that can't be a fence column stays as it is, and AddFence returns an error.
func TestAddFenceBesideAnother(t *testing.T) {
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		kinds := map[sqlfence.Dialect][]string{
			sqlfence.Postgres: {"integer", "text", "numeric", "double precision", "bigint GENERATED ALWAYS AS (id + 1) STORED", "bigint GENERATED ALWAYS AS IDENTITY"},
			sqlfence.SQLite:   {"text", "real", "", "integer GENERATED ALWAYS AS (id + 1) VIRTUAL", "integer AS (id + 1) STORED"},
			sqlfence.MySQL:    {"int", "text", "double", "bigint unsigned", "bigint AS (id + 1)", "bigint AUTO_INCREMENT UNIQUE"},
		}[b.Dialect]
		source := b.DSN(t)
		plain := b.Raw(t, source)
		for _, kind := range kinds {
			harness.MustExec(t, plain, "CREATE TABLE books (id bigint, fence_token "+kind+")")
			before := columns(t, b, plain)
			err := schema.AddFence(t.Context(), plain, "books", "fence_token")
			if err == nil || !strings.Contains(err.Error(), "books") || !strings.Contains(err.Error(), "want ") {
				t.Errorf("%s: err = %v", kind, err)
			}
			texts, err := schema.AddFenceSQL(b.Dialect, "books", "fence_token")
			for _, text := range texts {
				if err == nil {
					_, err = plain.Exec(text)
				}
			}
			if err == nil {
				t.Errorf("%s: the statements don't fail", kind)
			}
			if after := columns(t, b, plain); after != before {
				t.Errorf("%s: there were\n%s\nnow there are\n%s", kind, before, after)
			}
			harness.MustExec(t, plain, "DROP TABLE books")
		}
		for _, kind := range []string{"bigint", "bigint NOT NULL DEFAULT 7", "BIGINT NULL"} {
			harness.MustExec(t, plain, "CREATE TABLE books (id bigint, fence_token "+kind+")")
			before := columns(t, b, plain)
			if err := schema.AddFence(t.Context(), plain, "books", "fence_token"); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
			if after := columns(t, b, plain); after != before {
				t.Errorf("%s: there were\n%s\nnow there are\n%s", kind, before, after)
			}
			harness.MustExec(t, plain, "DROP TABLE books")
		}
	})
}

func columns(t *testing.T, b harness.Base, db *sql.DB) string {
	t.Helper()
	return harness.Describe(db.Query(map[sqlfence.Dialect]string{
		sqlfence.Postgres: `SELECT attname, atttypid, attnotnull, attgenerated, attidentity, pg_get_expr(adbin, adrelid) FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
			WHERE attrelid = to_regclass('books') AND attnum > 0 ORDER BY attnum`,
		sqlfence.SQLite: "SELECT sql FROM sqlite_schema WHERE name = 'books'",
		sqlfence.MySQL:  "SHOW COLUMNS FROM books",
	}[b.Dialect]))
}

// Names are parsed as by WithTable, and no name can end a statement's text.
func TestAddFenceNames(t *testing.T) {
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		source := b.DSN(t)
		plain := b.Raw(t, source)
		quote := `"`
		if b.Dialect == sqlfence.MySQL {
			quote = "`"
		}
		quoted := func(name string) string { return quote + strings.ReplaceAll(name, quote, quote+quote) + quote }
		for _, name := range []string{
			"books", "My Books", "Books", "$add$", "a$add$b$add_add$", "it's", `back\slash`, "quote\"d", "tick`ed", "bücher",
			"percent%s%", "{column}", "{tries}", "order", "a.b", "; DROP TABLE books",
		} {
			table, column := quoted(name), quoted(name)
			harness.MustExec(t, plain, "CREATE TABLE "+table+" (id bigint)")
			for range 2 {
				if err := schema.AddFence(t.Context(), plain, table, column); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if _, err := plain.Exec("INSERT INTO " + table + " (id, " + column + ") VALUES (1, 2)"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			harness.MustExec(t, plain, "DROP TABLE "+table)
			harness.MustExec(t, plain, "CREATE TABLE "+table+" (id bigint)")
			texts, err := schema.AddFenceSQL(b.Dialect, table, column)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, text := range texts {
				if _, err := plain.Exec(text); err != nil {
					t.Errorf("%s: %v:\n%s", name, err, text)
				}
			}
			if _, err := plain.Exec("INSERT INTO " + table + " (id, " + column + ") VALUES (1, 2)"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			harness.MustExec(t, plain, "DROP TABLE "+table)
		}
	})
}

// Columns that differ by more than capital letters are different ones.
func TestAddFenceBesideSimilar(t *testing.T) {
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		plain := b.Raw(t, b.DSN(t))
		harness.MustExec(t, plain, "CREATE TABLE books (id bigint, fénce bigint, fence_ bigint, fencex bigint)")
		for range 2 {
			if err := schema.AddFence(t.Context(), plain, "books", "fence"); err != nil {
				t.Error(err)
			}
		}
		harness.MustExec(t, plain, "INSERT INTO books (id, fence) VALUES (1, 2)")
	})
}

// A name with a schema matches the table of this schema only.
func TestAddFenceInSchema(t *testing.T) {
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		plain := b.Raw(t, b.DSN(t))
		plain.SetMaxOpenConns(1) // only this connection has the attached database
		var home string
		create, drop := "CREATE SCHEMA sqlfence_other", "DROP SCHEMA sqlfence_other"
		switch b.Dialect {
		case sqlfence.SQLite:
			create, drop, home = "ATTACH ':memory:' AS sqlfence_other", "DETACH sqlfence_other", "main"
		case sqlfence.Postgres:
			if err := plain.QueryRow("SELECT current_schema()").Scan(&home); err != nil {
				t.Fatal(err)
			}
			drop += " CASCADE"
		case sqlfence.MySQL:
			if err := plain.QueryRow("SELECT DATABASE()").Scan(&home); err != nil {
				t.Fatal(err)
			}
		}
		harness.MustExec(t, plain, create)
		defer harness.MustExec(t, plain, drop)
		harness.MustExec(t, plain, "CREATE TABLE sqlfence_other.books (id bigint)")
		harness.MustExec(t, plain, "CREATE TABLE "+home+".books (id bigint)")
		for i, name := range []string{"sqlfence_other.books", home + ".books", "books"} {
			if err := schema.AddFence(t.Context(), plain, name, "fence"+string(rune('0'+i))); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		harness.MustExec(t, plain, "INSERT INTO sqlfence_other.books (id, fence0) VALUES (1, 2)")
		harness.MustExec(t, plain, "INSERT INTO "+home+".books (id, fence1, fence2) VALUES (1, 2, 3)")
		if _, err := plain.Exec("SELECT fence1 FROM sqlfence_other.books"); err == nil {
			t.Error("the other table has the column, too")
		}
	})
}

func TestAddFenceErrors(t *testing.T) {
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		plain := b.Raw(t, b.DSN(t))
		for _, names := range [][2]string{{"", "fence"}, {"books", ""}, {"books", "a.b"}, {"books; DROP TABLE x", "fence"}, {"books", "fence bigint, x"}} {
			if err := schema.AddFence(t.Context(), plain, names[0], names[1]); !errors.Is(err, sqlfence.ErrInvalid) {
				t.Errorf("%q: err = %v, want ErrInvalid", names, err)
			}
			if _, err := schema.AddFenceSQL(b.Dialect, names[0], names[1]); !errors.Is(err, sqlfence.ErrInvalid) {
				t.Errorf("%q: err = %v, want ErrInvalid", names, err)
			}
		}
		err := schema.AddFence(t.Context(), plain, "nowhere", "fence_token")
		if err == nil || !strings.HasPrefix(err.Error(), "schema: add the fence column fence_token to table nowhere: ") || errors.Is(err, sqlfence.ErrInvalid) {
			t.Errorf("no such table: err = %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := schema.AddFence(ctx, plain, "nowhere", "fence_token"); !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v, want that of the context", err)
		}
	})
}

// Several calls of AddFence at once add one column.
func TestAddFenceAtOnce(t *testing.T) {
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		plain := b.Raw(t, b.DSN(t))
		harness.MustExec(t, plain, "CREATE TABLE books (id bigint)")
		const n = 8
		errs := make(chan error, n)
		for range n {
			go func() { errs <- schema.AddFence(t.Context(), plain, "books", "fence_token") }()
		}
		for range n {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}
