package replace_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

var fence = sqlfence.RowFence("fence_token")

// A REPLACE, in each way to run it, is compared with the rows of all unique keys. A newer stored token in any of these
// rows refuses the REPLACE.
func TestReplaceIsStale(t *testing.T) {
	eachSQLite(t, func(t *testing.T, b harness.Base) {
		for _, query := range []string{
			"REPLACE INTO books (id, isbn, price) VALUES (1, $1, 30)",
			"INSERT OR REPLACE INTO books (isbn, id) VALUES ($1, NULL)",
			"INSERT OR REPLACE INTO main.books (id, isbn) VALUES (8, 'i8'), (9, $1)",
		} {
			for _, form := range b.Forms() {
				sh := harness.NewShop(t, b, fence)
				w := harness.Write{Query: query, Args: []any{"i1"}}
				sh.Reset(t, 5)
				sh.Exec(t, "UPDATE books SET fence_token = 9 WHERE id = 1")
				unchanged := sh.Unchanged(t)
				for range 2 { // sqlfence doesn't know the keys at first, and then does
					_, err := form.Run(harness.Holding(t, 8), sh.DB, w)
					if harness.WantStale(t, err, 8, 9); t.Failed() {
						t.Fatalf("%s by %s", query, form.Name)
					}
					_, err = form.Run(t.Context(), sh.DB, w)
					harness.WantError(t, err, sqlfence.ErrNoFence)
				}
				unchanged()
				if _, err := form.Run(harness.Holding(t, 9), sh.DB, w); err != nil {
					t.Fatalf("%s by %s: %v", query, form.Name, err)
				}
				var mark, count int
				if err := sh.Plain.QueryRow("SELECT fence_token, (SELECT count(*) FROM books) FROM books WHERE isbn = 'i1'").
					Scan(&mark, &count); err != nil || mark != 9 || count < 3 {
					t.Errorf("%s by %s: mark %d, %d rows, %v", query, form.Name, mark, count, err)
				}
			}
		}
	})
}

// A unique index that is created or dropped after sqlfence has read the table's keys counts at once; the next REPLACE
// may fail with a temporary error. In the transaction that creates the index it counts, too, and no longer after the
// rollback.
func TestReplaceFindsNewIndexes(t *testing.T) {
	eachSQLite(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b, fence)
		sh.Reset(t, 5)
		sh.Exec(t, "UPDATE books SET fence_token = 9, price = 70 WHERE id = 1")
		bypass := sqlfence.Bypass(t.Context(), "a migration")
		replace := func(r harness.Runner, stale bool) {
			t.Helper()
			const query = "REPLACE INTO books (id, price) VALUES (2, 70)"
			_, err := r.ExecContext(harness.Holding(t, 8), query)
			if passing := (interface{ Temporary() bool })(nil); errors.As(err, &passing) && passing.Temporary() {
				_, err = r.ExecContext(harness.Holding(t, 8), query) // the keys have changed, so it is sent again
			}
			if stale {
				harness.WantStale(t, err, 8, 9)
			} else if err != nil {
				t.Error(err)
			}
		}
		replace(sh.DB, false)
		sh.Exec(t, "DELETE FROM books WHERE id = 2")
		tx, err := sh.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(bypass, "CREATE UNIQUE INDEX one_price ON books (price) WHERE price > 60"); err != nil {
			t.Fatal(err)
		}
		_, err = tx.ExecContext(harness.Holding(t, 8), "REPLACE INTO books (id, price) VALUES (2, 70)")
		harness.WantError(t, err, sqlfence.ErrUnguardable)
		if _, err := tx.ExecContext(bypass, "DROP INDEX one_price"); err != nil {
			t.Fatal(err)
		}
		replace(tx, false)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		sh.Exec(t, "UPDATE books SET price = id WHERE id > 1")
		sh.Exec(t, "CREATE UNIQUE INDEX one_price ON books (price)")
		replace(sh.DB, true)
		sh.Exec(t, "DROP INDEX one_price")
		replace(sh.DB, false)
	})
}

// A pool's first REPLACE begins a transaction while another connection writes. It waits for the writer, as any write
// does, because reading the unique keys takes no earlier snapshot.
func TestFirstReplaceWaitsForAnotherWriter(t *testing.T) {
	eachSQLite(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b, fence)
		sh.Reset(t, 5)
		db, count := b.Counted(t, sh.Source, harness.Books(fence))
		other, err := sh.Plain.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		for _, query := range []string{"BEGIN IMMEDIATE", "UPDATE books SET price = 3 WHERE id = 3"} {
			if _, err := other.ExecContext(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
		replaced := harness.Go(func() error {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			_, err = tx.ExecContext(harness.Holding(t, 8), "REPLACE INTO books (id, price) VALUES (2, 70)")
			return errors.Join(err, tx.Commit())
		})
		harness.Eventually(t, "a statement that waits", func() bool {
			return slices.ContainsFunc(count.Texts(), func(text string) bool {
				return strings.HasPrefix(text, "REPLACE") || strings.Contains(text, "incremental_vacuum")
			})
		})
		if _, err := other.ExecContext(t.Context(), "COMMIT"); err != nil {
			t.Fatal(err)
		}
		if err := replaced.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// A REPLACE whose deleted rows can't be determined is refused without effect, with a reason. After the table is
// corrected, the same statement passes.
func TestReplaceIsRefused(t *testing.T) {
	const create = "id integer PRIMARY KEY, isbn text UNIQUE, price integer, fence_token bigint)"
	plain := "REPLACE INTO books (id, isbn) VALUES (1, 'i1')"
	var many strings.Builder
	many.WriteString("REPLACE INTO books (id) VALUES (1)")
	for range 100 {
		many.WriteString(", (1)")
	}
	eachSQLite(t, func(t *testing.T, b harness.Base) {
		for name, c := range map[string]struct {
			columns, make, query, says, mend string
		}{
			"partial":      {create, "CREATE UNIQUE INDEX u ON books (price) WHERE price > 1", plain, "partial", "DROP INDEX u"},
			"expression":   {create, "CREATE UNIQUE INDEX u ON books (price + 1)", plain, "expression", "DROP INDEX u"},
			"generated":    {"id integer PRIMARY KEY, isbn text, price AS (isbn || '') UNIQUE, fence_token bigint)", "", plain, "generated", ""},
			"real":         {"id integer PRIMARY KEY, isbn double UNIQUE, fence_token bigint)", "", plain, "double", ""},
			"real, no int": {"id integer PRIMARY KEY, isbn double poınt UNIQUE, fence_token bigint)", "", plain, "double", ""},
			"default":      {"id integer PRIMARY KEY, isbn text, at text UNIQUE DEFAULT CURRENT_TIMESTAMP, fence_token bigint)", "", plain, "CURRENT_TIMESTAMP", ""},
			"unique mark":  {"id integer PRIMARY KEY, isbn text, fence_token bigint UNIQUE)", "", plain, "fence column is unique", ""},
			"view": {create, "ALTER TABLE books RENAME TO b; CREATE VIEW books AS SELECT * FROM b; " +
				"CREATE TRIGGER i INSTEAD OF INSERT ON books BEGIN REPLACE INTO b VALUES (1, NEW.isbn, 1, 1)|END", plain, "view", ""},
			"trigger": {create, `CREATE TRIGGER IF NOT EXISTS "sqlfence_own" AFTER INSERT ON books BEGIN ` +
				"UPDATE books SET price = 1 WHERE id = NEW.id|END; " +
				"CREATE TRIGGER i AFTER INSERT ON books BEGIN UPDATE books SET price = 1 WHERE id = NEW.id|END",
				plain, "trigger", "DROP TRIGGER i"},
			"expression's": {create, "", "REPLACE INTO books (id, isbn) VALUES (1, lower('I1'))", "isbn", ""},
			"rowid":        {create, "", "REPLACE INTO books (rowid, isbn) VALUES (1, 'i1')", "rowid", ""},
			"query":        {create, "", "REPLACE INTO books (id, isbn) SELECT 1, 'i1'", "VALUES", ""},
			"no columns":   {create, "", "REPLACE INTO books VALUES (1, 'i1', 1, 1)", "list of columns", ""},
			"with":         {create, "", "WITH books AS (SELECT 1) REPLACE INTO books (id, isbn) VALUES (1, 'i1')", "WITH", ""},
			"upsert":       {create, "", plain + " ON CONFLICT (isbn) DO UPDATE SET price = 1", "ON CONFLICT", ""},
			"twice":        {create, "", "REPLACE INTO books (id, ID) VALUES (7, 1)", "twice", ""},
			"many":         {create, "", many.String(), "100", ""},
			"several":      {create, "", "SELECT 1; " + plain, "several", ""},
			"update":       {create, "", "UPDATE OR REPLACE books SET isbn = 'i1' WHERE id = 2", "REPLACE", ""},
			"temp":         {create, "", "REPLACE INTO temp.books (id) VALUES (1)", "temp", ""},
		} {
			t.Run(name, func(t *testing.T) {
				sh := harness.NewShop(t, b, fence)
				table(t, sh, c.columns)
				sh.Exec(t, "INSERT INTO books (id, isbn, fence_token) VALUES (1, 1, 9)")
				if c.make != "" {
					for create := range strings.SplitSeq(c.make, "; ") {
						sh.Exec(t, strings.ReplaceAll(create, "|", "; "))
					}
				}
				for range 2 {
					_, err := sh.DB.ExecContext(harness.Holding(t, 10), c.query)
					if harness.WantError(t, err, sqlfence.ErrUnguardable); err != nil && !strings.Contains(err.Error(), c.says) {
						t.Errorf("%v: want %q", err, c.says)
					}
				}
				var mark int
				if err := sh.Plain.QueryRow("SELECT max(fence_token) FROM books WHERE isbn = 1").Scan(&mark); err != nil || mark != 9 {
					t.Errorf("mark %d, %v", mark, err)
				}
				if c.mend != "" {
					sh.Exec(t, c.mend)
					if _, err := sh.DB.ExecContext(harness.Holding(t, 10), c.query); err != nil {
						t.Error(err)
					}
				}
			})
		}
	})
}

// A session creates a temporary table of the name of a table whose keys are known. sqlfence notices this.
func TestReplaceOfATemporaryTable(t *testing.T) {
	eachSQLite(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b, fence)
		sh.Reset(t, 5)
		conn, err := sh.DB.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		const query = "REPLACE INTO books (id, isbn) VALUES (1, 'i1')"
		if _, err := conn.ExecContext(harness.Holding(t, 5), query); err != nil {
			t.Fatal(err)
		}
		bypass := sqlfence.Bypass(t.Context(), "a test")
		for _, create := range []string{
			"CREATE TEMP TABLE books (id integer PRIMARY KEY, isbn text, price integer UNIQUE DEFAULT 1, fence_token bigint)",
			"INSERT INTO temp.books (id, isbn, fence_token) VALUES (7, 'i7', 9)",
		} {
			if _, err := conn.ExecContext(bypass, create); err != nil {
				t.Fatal(err)
			}
		}
		_, err = conn.ExecContext(harness.Holding(t, 6), query)
		harness.WantError(t, err, sqlfence.ErrUnguardable)
	})
}

// Under a pattern for all tables, and in an attached file, the unique keys are those of the written table.
func TestReplaceElsewhere(t *testing.T) {
	eachSQLite(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b)
		db := b.Fenced(t, sh.Source, sqlfence.WithTable("*", fence, sqlfence.Resource("books")))
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		bypass := sqlfence.Bypass(t.Context(), "a test")
		for _, query := range []string{
			"ATTACH ':memory:' AS other", "CREATE TABLE other.Caps (Name text, NR integer, fence_token bigint, UNIQUE (NAME COLLATE NOCASE))",
			"INSERT INTO other.caps VALUES ('a', 1, 9)", "CREATE TABLE caps (name text, nr integer UNIQUE, fence_token bigint)",
			"INSERT INTO main.caps VALUES ('a', 1, 9)",
		} {
			if _, err := conn.ExecContext(bypass, query); err != nil {
				t.Fatal(err)
			}
		}
		for query, stale := range map[string]bool{
			"REPLACE INTO other.caps (name, nr) VALUES ('A', 2)":     true,
			"REPLACE INTO other.Caps (`NAME`, nr) VALUES ('a', 3)":   true,
			"REPLACE INTO other.caps (name, nr) VALUES ('b', 1)":     false,
			"REPLACE INTO caps (name, nr) VALUES ('b', 1)":           true,
			"INSERT OR REPLACE INTO CAPS (name, nr) VALUES ('a', 2)": false,
		} {
			_, err := conn.ExecContext(harness.Holding(t, 8), query)
			if got := errors.Is(err, sqlfence.ErrStale); got != stale || err != nil && !got {
				t.Errorf("%s: %v, want stale: %v", query, err, stale)
			}
		}
		_, err = conn.ExecContext(harness.Holding(t, 8), "REPLACE INTO other.sqlite_schema (name) VALUES ('x')")
		harness.WantError(t, err, sqlfence.ErrUnguardable)
	})
}

// Observe mode sends a REPLACE that Enforce mode would refuse unchanged, and stores no token.
func TestReplaceObserved(t *testing.T) {
	eachSQLite(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b, fence)
		sh.Reset(t, 5)
		sh.Exec(t, "UPDATE books SET fence_token = 9 WHERE id = 1")
		var would int
		db := b.Fenced(t, sh.Source, harness.Books(fence), sqlfence.WithMode(sqlfence.Observe),
			sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) {
				if e.Kind == sqlfence.WouldRefuse && errors.Is(e.Err, sqlfence.ErrStale) {
					would++
				}
			}))
		for token, want := range map[int64]int64{8: 0, 11: 11} {
			if _, err := db.ExecContext(harness.Holding(t, token), "REPLACE INTO books (id, isbn) VALUES (7, 'i1')"); err != nil {
				t.Fatal(err)
			}
			var mark int64
			if err := sh.Plain.QueryRow("SELECT COALESCE(fence_token, 0) FROM books WHERE isbn = 'i1'").Scan(&mark); err != nil || mark != want {
				t.Errorf("mark %d, %v, want %d", mark, err, want)
			}
			if token == 8 && would != 1 {
				t.Errorf("%d events, want one", would)
			}
			sh.Exec(t, "UPDATE books SET fence_token = 9 WHERE id = 7")
		}
	})
}

// REPLACE statements of other programs, on their tables: a stale holder's is refused, and the newest holder's passes.
func TestReplaceOfPrograms(t *testing.T) {
	eachSQLite(t, func(t *testing.T, b harness.Base) {
		for _, c := range []struct {
			columns, index, first, query string
			args                         []any
		}{
			{"id integer PRIMARY KEY AUTOINCREMENT NOT NULL, username varchar(100) UNIQUE NOT NULL, method varchar(11) NOT NULL, fence_token bigint)",
				"", "INSERT INTO books (username, method, fence_token) VALUES ('john', 'totp', 9)",
				"REPLACE INTO books (username, method)\n\t\tVALUES (?, ?);", []any{"john", "webauthn"}},
			{"id integer PRIMARY KEY AUTOINCREMENT NOT NULL, username varchar(100) NOT NULL, description varchar(30) NOT NULL, kid varchar(512) NOT NULL, fence_token bigint)",
				"CREATE UNIQUE INDEX one_name ON books (username, description)",
				"INSERT INTO books (username, description, kid, fence_token) VALUES ('john', 'key', 'k', 9)",
				"REPLACE INTO books (username, description, kid) VALUES (?, ?, ?)", []any{"john", "key", "other"}},
			{"shard integer NOT NULL, space binary(16) NOT NULL, name varchar(255), data mediumblob, fence_token bigint, PRIMARY KEY (shard, space, name))",
				"", "INSERT INTO books VALUES (1, x'00', 'n', 'd', 9)",
				"REPLACE INTO books (shard, space, name, data) VALUES (?, ?, ?, ?)", []any{1, []byte{0}, "n", []byte("e")}},
			{"shard integer, tree binary(16), data mediumblob, fence_token bigint, PRIMARY KEY (shard, tree))",
				"", "INSERT INTO books VALUES (1, x'00', 'd', 9)",
				"REPLACE INTO books (shard, tree, data) VALUES (:shard, @tree, :data)",
				[]any{sql.Named("data", "e"), sql.Named("tree", []byte{0}), sql.Named("shard", 1)}},
			{"username varchar(100) NOT NULL PRIMARY KEY, href text, at text, fence_token bigint)",
				"", "INSERT INTO books VALUES ('john', 'a', 'now', 9)",
				"INSERT OR REPLACE INTO books (username, href, at) VALUES (?, ?, datetime('now'))", []any{"john", "b"}},
		} {
			sh := harness.NewShop(t, b, fence)
			table(t, sh, c.columns)
			if c.index != "" {
				sh.Exec(t, c.index)
			}
			sh.Exec(t, c.first)
			_, err := sh.DB.ExecContext(harness.Holding(t, 8), c.query, c.args...)
			harness.WantStale(t, err, 8, 9)
			n, err := harness.Affected(sh.DB.ExecContext(harness.Holding(t, 9), c.query, c.args...))
			if n != 1 || err != nil {
				t.Errorf("%s: %d rows, %v", c.query, n, err)
			}
		}
	})
}
