package setup_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/verify"
)

// A shadowed is two schemas: in home the table books, with token 9, and in other another object with its name and rows,
// whose fence_token is another column.
type shadowed struct{ two }

// eachShadowed runs test with each kind of object that can have a table's name and rows.
func eachShadowed(t *testing.T, test func(t *testing.T, w shadowed)) {
	eachTwo(t, func(t *testing.T, w two) {
		harness.MustExec(t, w.plain, "ALTER TABLE books ADD COLUMN spare bigint NOT NULL DEFAULT 0")
		harness.MustExec(t, w.plain, "UPDATE books SET fence_token = 9")
		shadows := map[string][]string{"view": {w.view()}}
		if w.Dialect == sqlfence.Postgres {
			shadows["foreign table"] = []string{
				"CREATE EXTENSION postgres_fdw", "CREATE SERVER here FOREIGN DATA WRAPPER postgres_fdw OPTIONS (" + options(t, w.atHome, "host", "port", "dbname") + ")",
				"CREATE USER MAPPING FOR CURRENT_USER SERVER here OPTIONS (" + options(t, w.atHome, "user", "password") + ")",
				`CREATE FOREIGN TABLE "Ten".books (id integer, price integer, fence_token bigint OPTIONS (column_name 'spare')) SERVER here OPTIONS (schema_name 'public')`,
			}
			var installed bool
			if err := w.plain.QueryRow("SELECT count(*) > 0 FROM pg_available_extensions WHERE name = 'postgres_fdw'").Scan(&installed); err != nil {
				t.Fatal(err)
			}
			if !installed {
				delete(shadows, "foreign table")
				need.Missing(t, "postgres_fdw", "the server has no postgres_fdw")
			}
		}
		for name, queries := range shadows {
			t.Run(name, func(t *testing.T) {
				for _, query := range queries {
					harness.MustExec(t, w.plain, query)
				}
				test(t, shadowed{w})
				harness.MustExec(t, w.plain, fmt.Sprintf("DROP %s %s.books", strings.ToUpper(name), w.other))
			})
		}
	})
}

// options returns parts of PostgreSQL's data source name as options of a foreign server.
func options(t *testing.T, dsn string, names ...string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	all := map[string]string{"host": u.Hostname(), "port": u.Port(), "dbname": strings.TrimPrefix(u.Path, "/"), "user": u.User.Username(), "password": password}
	for i, name := range names {
		names[i] = name + " '" + strings.ReplaceAll(all[name], "'", "''") + "'"
	}
	return strings.Join(names, ", ")
}

func (w two) view() string {
	return "CREATE VIEW " + w.other + ".books AS SELECT id, price, spare AS fence_token FROM " + w.home + ".books"
}

// wants fails unless a stale write ends with the error, in each way to send it, and none has succeeded.
func (w shadowed) wants(t *testing.T, when string, db *sql.Conn, table string, want error) {
	t.Helper()
	ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 3})
	for _, query := range []string{"UPDATE @ SET price = 99 WHERE id = 1", "UPDATE @ AS b SET price = 99", "DELETE FROM @"} {
		query = strings.ReplaceAll(query, "@", table)
		if _, err := db.ExecContext(ctx, query); !errors.Is(err, want) {
			t.Errorf("%s, %s: %v, want %v", when, query, err, want)
		}
		stmt, err := db.PrepareContext(ctx, query)
		if err == nil {
			_, err = stmt.ExecContext(ctx)
			stmt.Close()
		}
		if !errors.Is(err, want) {
			t.Errorf("%s, prepared, %s: %v, want %v", when, query, err, want)
		}
	}
	w.untouched(t, when)
}

func (w shadowed) untouched(t *testing.T, when string) {
	t.Helper()
	var left int
	if err := w.plain.QueryRow("SELECT count(*) FROM " + w.home + ".books WHERE price = 10").Scan(&left); err != nil || left != 1 {
		t.Fatalf("%s: %d rows are as they were, %v", when, left, err)
	}
}

func connOf(t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// A view or a foreign table that a session finds by the guarded table's name takes no stale write: nobody knows what
// its column fence_token is, so guarded writes to it are refused.
func TestViewsDontStandInATablesPlace(t *testing.T) {
	eachShadowed(t, func(t *testing.T, w shadowed) {
		for _, name := range []string{"books", w.home + ".books", w.home + ".*", "*"} {
			books := sqlfence.WithTable(name, sqlfence.RowFence("fence_token"), sqlfence.Resource("books"))
			w.wants(t, "found from the beginning, "+name, connOf(t, w.Fenced(t, w.astray, books)), "books", sqlfence.ErrUnguardable)

			conn := connOf(t, w.Fenced(t, w.atHome, books))
			w.wants(t, "not found, "+name, conn, "books", sqlfence.ErrStale)
			execOn(t, conn, w.use)
			w.wants(t, "found later, "+name, conn, "books", sqlfence.ErrUnguardable)
			w.wants(t, "by its schema, "+name, conn, w.home+".books", sqlfence.ErrStale)
			if !strings.HasPrefix(name, w.home) {
				w.wants(t, "the other one by its schema, "+name, conn, w.other+".books", sqlfence.ErrUnguardable)
			}

			conn = connOf(t, w.Fenced(t, w.atHome, books))
			execOn(t, conn, w.use)
			w.wants(t, "found before the first write, "+name, conn, "books", sqlfence.ErrUnguardable)
		}
		if w.Dialect != sqlfence.Postgres {
			return
		}
		db := w.Fenced(t, w.astray, sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
		tx, err := db.BeginTx(sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 3}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("SET LOCAL search_path = public"); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("ROLLBACK AND CHAIN"); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("UPDATE books SET price = 99"); !errors.Is(err, sqlfence.ErrUnguardable) {
			t.Errorf("where the end of a transaction moves the session: %v", err)
		}
		_ = tx.Rollback()
		w.untouched(t, "where the end of a transaction moves the session")
		holding := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 3})
		text := `SELECT set_config('search_path', '"Ten"', false); UPDATE books SET price = 99`
		if _, err := w.Fenced(t, w.atHome, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"))).ExecContext(holding, text); !errors.Is(err, sqlfence.ErrUnguardable) {
			t.Errorf("%s: %v", text, err)
		}
		w.untouched(t, text)
	})
}

func execOn(t *testing.T, conn *sql.Conn, query string) {
	t.Helper()
	if _, err := conn.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// A rule that reads no column of the row also guards writes through a view.
func TestALedgerGuardsAViewsWrites(t *testing.T) {
	eachShadowed(t, func(t *testing.T, w shadowed) {
		store := w.store(t, w.plain)
		if err := store.Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := store.Issue(t.Context(), "books"); err != nil {
				t.Fatal(err)
			}
		}
		db := w.Fenced(t, w.astray, sqlfence.WithTable("books", sqlfence.Ledger()), sqlfence.WithSchema(w.home))
		_, err := db.ExecContext(sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 1}), "UPDATE books SET price = 99")
		if !errors.Is(err, sqlfence.ErrStale) {
			t.Errorf("%v, want ErrStale", err)
		}
		w.untouched(t, "under the ledger")
		harness.MustExec(t, w.plain, "DROP TABLE fencing_tokens")
	})
}

// Through a fenced database no view of a registered table's name can be created.
func TestViewsOfATablesNameAreNotMade(t *testing.T) {
	eachTwo(t, func(t *testing.T, w two) {
		harness.MustExec(t, w.plain, "ALTER TABLE books ADD COLUMN spare bigint NOT NULL DEFAULT 0")
		queries := []string{w.view(), strings.Replace(w.view(), "CREATE", "CREATE OR REPLACE", 1)}
		if w.Dialect == sqlfence.Postgres {
			queries = append(queries, "CREATE TEMP VIEW books AS SELECT id, price, 0::bigint AS fence_token FROM public.books",
				"CREATE OR REPLACE TEMPORARY RECURSIVE VIEW books (id) AS SELECT 1", `CREATE VIEW "Ten".U&"\0062ooks" AS SELECT 1 AS id`,
				`DO $$BEGIN CREATE TEMP VIEW books AS SELECT 1 AS id; END$$`, `CREATE SCHEMA x CREATE VIEW books AS SELECT 1 AS id`)
		} else {
			queries = append(queries, strings.Replace(w.view(), "CREATE", "CREATE ALGORITHM = MERGE DEFINER = CURRENT_USER() SQL SECURITY INVOKER", 1))
		}
		for _, rule := range []sqlfence.Option{
			sqlfence.WithTable("books", sqlfence.RowFence("fence_token")), sqlfence.WithTable(w.home+".books", sqlfence.RowFence("fence_token")),
			sqlfence.WithTable("books", sqlfence.Ledger(), sqlfence.Key("id")), sqlfence.WithTable("*", sqlfence.RowFence("fence_token")),
		} {
			db := w.Fenced(t, w.atHome, rule)
			for _, query := range queries {
				if _, err := db.ExecContext(t.Context(), query); !errors.Is(err, sqlfence.ErrUnguardable) {
					t.Errorf("%s: %v, want ErrUnguardable", query, err)
				}
			}
		}
		db := w.Fenced(t, w.atHome, sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
		for _, query := range []string{"CREATE VIEW shelf AS SELECT id, price FROM books", "DROP VIEW shelf"} {
			if _, err := db.ExecContext(t.Context(), query); err != nil {
				t.Errorf("%s: %v", query, err)
			}
		}
		if _, err := db.ExecContext(sqlfence.Bypass(t.Context(), "migration"), w.view()); err != nil {
			t.Errorf("under Bypass: %v", err)
		}
	})
}

// A program with a schema for each tenant may choose where its sessions find names. No statement takes another round
// trip.
func TestTenantsWriteWhereThereIsNoView(t *testing.T) {
	eachTwo(t, func(t *testing.T, w two) {
		harness.MustExec(t, w.plain, "CREATE TABLE "+w.other+".books (id integer PRIMARY KEY, price integer, fence_token bigint)")
		db, calls := w.Counted(t, w.atHome, sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
		db.SetMaxOpenConns(1)
		ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books", Value: 3})
		for range 2 {
			for _, use := range []string{w.use, strings.Replace(w.use, w.other, w.home, 1)} {
				if _, err := db.ExecContext(context.Background(), use); err != nil {
					t.Fatal(err)
				}
				calls.Reset()
				if _, err := db.ExecContext(ctx, "UPDATE books SET price = 5"); err != nil {
					t.Errorf("%s: %v", use, err)
				}
			}
		}
		if sent := calls.Calls(); len(sent) != 1 {
			t.Errorf("sent %v, want one statement", sent)
		}
	})
}

// verify.Check reports a view in the place of a guarded table: one that the pool's sessions find, and one in another
// schema.
func TestVerifyFindsViewsOfATablesName(t *testing.T) {
	eachShadowed(t, func(t *testing.T, w shadowed) {
		for dsn, want := range map[string]struct {
			code  string
			level slog.Level
		}{w.astray: {"storage", slog.LevelError}, w.atHome: {"other-name", slog.LevelWarn}} {
			found, err := verify.Check(t.Context(), w.Fenced(t, dsn, sqlfence.WithTable("books", sqlfence.RowFence("fence_token"))))
			if err != nil {
				t.Fatal(err)
			}
			ok := strings.Contains(t.Name(), "foreign") && dsn == w.atHome // a foreign table's origin is unknown
			for _, f := range found {
				ok = ok || f.Code == want.code && f.Level == want.level && f.Table == "books"
			}
			if !ok {
				t.Errorf("found %v, want %v %s", found, want.level, want.code)
			}
		}
	})
}
