package verify_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/verify"
)

// codes returns the findings as "severity code table".
func codes(found []verify.Finding) []string {
	list := make([]string, len(found))
	for i, f := range found {
		list[i] = fmt.Sprintf("%v %s %s", f.Level, f.Code, f.Table)
	}
	return list
}

// Names in findings and their SQL are the database's: quoted, of mixed case, with any characters.
func TestNames(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		quote := func(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
		create := quote
		if w.Dialect == sqlfence.MySQL {
			create = func(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
		}
		for _, name := range []string{"Mixed", "order", "it's", `sa"id`, "a%sb%d", "with space", "täble", `back\slash`} {
			column := name + " Column"
			w.exec(t, "CREATE TABLE "+create(name)+" (id integer PRIMARY KEY, "+create(column)+" bigint NOT NULL DEFAULT 0)")
			written := quote(name)
			if w.Dialect == sqlfence.MySQL {
				written = create(name)
			}
			register := func(column string) sqlfence.Option {
				rule := sqlfence.RowFence(quote(column))
				if w.Dialect == sqlfence.MySQL {
					rule = sqlfence.RowFence(create(column))
				}
				return sqlfence.WithTable(written, rule, sqlfence.Resource("x"))
			}
			if found := w.news(t, register(column)); len(found) > 0 {
				t.Errorf("%s: found %v", name, found)
			}
			missing := w.news(t, register("other's"))
			if len(missing) != 1 || missing[0].Code != "missing-column" {
				t.Errorf("%s: found %v, want that a column is missing", name, missing)
				continue
			}
			w.exec(t, missing[0].SQL)
			if found := w.news(t, register("other's")); len(found) > 0 {
				t.Errorf("%s, after %s: found %v", name, missing[0].SQL, found)
			}
		}
	})
}

// A name without a schema stands for the table that the session finds. With a schema it stands for the table in this
// schema.
func TestSchemasOfPostgres(t *testing.T) {
	w := newWorld(t, harness.Bases[1])
	w.exec(t, "CREATE SCHEMA shop", "CREATE TABLE shop.books (id integer)", "CREATE SCHEMA archive", "CREATE TABLE archive.papers (id integer)", "CREATE TABLE shop.papers (id integer)")
	fenced := func(name string) sqlfence.Option { return sqlfence.WithTable(name, sqlfence.RowFence("fence_token")) }
	for name, want := range map[string][]string{
		"books":        {},
		"public.books": {},
		"shop.books":   {"ERROR missing-column shop.books"},
		"papers":       {"ERROR missing-column papers", "ERROR missing-column papers"}, // the session finds none, so statements have to name a schema
	} {
		if got := codes(w.news(t, fenced(name))); !slices.Equal(got, want) {
			t.Errorf("%s: found %v, want %v", name, got, want)
		}
	}
	other := w.dsn + "&search_path=shop,public"
	found := withCode(checked(t, w.Fenced(t, other, fenced("books"))), "missing-column")
	if len(found) != 1 || !strings.Contains(found[0].SQL, `"books"`) {
		t.Errorf("by the search path: found %v", found)
	}
	w.exec(t, "CREATE ROLE sqlfence_verify_blind")
	defer w.exec(t, "DROP OWNED BY sqlfence_verify_blind", "DROP ROLE sqlfence_verify_blind")
	if found := checked(t, w.Fenced(t, w.dsn+"&role=sqlfence_verify_blind", fenced("shop.books"))); len(found) == 0 {
		t.Error("a schema that the role may not use: nothing is found")
	}
}

// SQLite's schemas are the connection's attached databases. Each has its own ledger.
func TestAttachedDatabases(t *testing.T) {
	for _, b := range bases[2:4] {
		t.Run(b.Name, func(t *testing.T) {
			w := newWorld(t, b)
			db := w.Fenced(t, w.dsn, sqlfence.WithTable("shop.papers", both...), sqlfence.WithTable("papers2", both...))
			db.SetMaxOpenConns(1)
			harness.MustExec(t, db, "ATTACH DATABASE ':memory:' AS shop")
			harness.MustExec(t, db, "CREATE TABLE shop.papers (id integer PRIMARY KEY, fence_token integer DEFAULT 0 NOT NULL)")
			harness.MustExec(t, db, "CREATE TABLE shop.papers2 (id integer PRIMARY KEY, fence_token integer DEFAULT 0 NOT NULL)")
			if got, want := codes(checked(t, db)), []string{"ERROR missing-ledger shop.papers", "ERROR missing-ledger papers2"}; !slices.Equal(got, want) {
				t.Errorf("found %v, want %v", got, want)
			}
			migrate := sqlfence.Bypass(t.Context(), "a ledger of its own")
			if _, err := db.ExecContext(migrate, "CREATE TABLE shop.fencing_tokens (name text PRIMARY KEY, token bigint NOT NULL)"); err != nil {
				t.Fatal(err)
			}
			found := checked(t, db) // Setup creates triggers only in the main file
			if got, want := codes(found), []string{"WARN wrong-ledger shop.papers"}; !slices.Equal(got, want) || !strings.Contains(found[0].Remedy, "Open that file by itself") {
				t.Errorf("with a ledger of its own: found %v, want %v", found, want)
			}
		})
	}
}

// A ledger in another database doesn't count as the session's ledger.
func TestLedgerOfAnotherDatabase(t *testing.T) {
	w := newWorld(t, harness.MySQL)
	newWorld(t, harness.MySQL) // this world has a ledger
	w.exec(t, "DROP TABLE fencing_tokens")
	wantOne(t, w.news(t, harness.Books(both...)), slog.LevelError, "missing-ledger")
	p := newWorld(t, harness.Bases[1])
	p.exec(t, "CREATE SCHEMA other", "ALTER TABLE fencing_tokens SET SCHEMA other")
	wantOne(t, p.news(t, harness.Books(both...)), slog.LevelError, "missing-ledger")
}

// Stored code resolves tables in its database, unless the code names another database.
func TestCodeOfAnotherDatabase(t *testing.T) {
	w, other := newWorld(t, harness.MySQL), newWorld(t, harness.MySQL)
	var name string
	if err := w.plain.QueryRow("SELECT DATABASE()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	other.exec(t, "CREATE TRIGGER its AFTER INSERT ON pens FOR EACH ROW UPDATE books SET price = 1",
		"CREATE PROCEDURE its_too() DELETE books FROM books JOIN pens ON pens.id = books.id")
	if found := w.news(t, harness.Books(both...)); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	other.exec(t, "CREATE TRIGGER ours AFTER DELETE ON pens FOR EACH ROW UPDATE `"+name+"`.books SET price = 1")
	wantOne(t, w.news(t, harness.Books(both...)), slog.LevelWarn, "side-effect")
	other.exec(t, "DROP TRIGGER ours", "CREATE PROCEDURE ours() DELETE b FROM "+name+".books AS b JOIN pens ON pens.id = b.id")
	wantOne(t, w.news(t, harness.Books(both...)), slog.LevelWarn, "side-effect")
}

// A table that is registered with its schema gets a second name if its file is attached twice.
func TestAttachedTwice(t *testing.T) {
	for _, b := range bases[2:4] {
		t.Run(b.Name, func(t *testing.T) {
			w := newWorld(t, b)
			file, _, _ := strings.Cut(strings.TrimPrefix(w.dsn, "file:"), "?")
			for name, want := range map[string]int{"main.books": 1, "books": 0} {
				db := w.Fenced(t, w.dsn, sqlfence.WithTable(name, both...), sqlfence.WithoutGuards("attach it twice"))
				db.SetMaxOpenConns(1)
				harness.MustExec(t, db, "ATTACH DATABASE '"+file+"' AS again")
				if found := withCode(checked(t, db), "other-name"); len(found) != want {
					t.Errorf("%s: found %v", name, found)
				}
			}
		})
	}
}

// The number of queries doesn't depend on the number of tables, except for one more query for each hundred tables with
// fence columns.
func TestHundredsOfTables(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		var opts []sqlfence.Option
		count := func(tables int) int {
			t.Helper()
			db, counter := w.Counted(t, w.dsn, opts[:tables]...)
			if found := checked(t, db); slices.ContainsFunc(found, func(f verify.Finding) bool { return f.Level > slog.LevelInfo }) {
				t.Errorf("%d tables: found %v", tables, found)
			}
			for _, text := range counter.Texts() {
				if verb, _, _ := strings.Cut(strings.TrimSpace(text), " "); verb != "SELECT" && verb != "SHOW" && verb != "WITH" {
					t.Errorf("verify.Check sent %s", text)
				}
			}
			sent := 0
			for _, call := range counter.Calls() {
				if call.Kind != "prepare" {
					sent++
				}
			}
			return sent
		}
		tables := 250
		if w.Dialect == sqlfence.MySQL || testing.Short() { // MySQL's catalogue is slow
			tables = 120
		}
		for i := range tables {
			name := fmt.Sprintf("table_%d", i)
			w.exec(t, "CREATE TABLE "+name+" (id integer PRIMARY KEY, fence_token bigint NOT NULL DEFAULT 0)")
			opts = append(opts, sqlfence.WithTable(name, both...))
		}
		one, all := count(1), count(tables)
		t.Logf("%d queries for 1 table, %d for %d", one, all, tables)
		if chunks := (tables + 99) / 100; all > one+2*(chunks-1) || one > 30 {
			t.Errorf("%d queries for 1 table, %d for %d", one, all, tables)
		}
	})
}

// Verify checks the tables that match a pattern, except tables with a separate registration.
func TestPatterns(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		fence := sqlfence.RowFence("fence_token")
		about := func(opts ...sqlfence.Option) (lines []string) {
			for _, f := range w.news(t, opts...) {
				lines = append(lines, f.Table+" "+f.Code)
			}
			return lines
		}
		all := sqlfence.WithTable("*", fence)
		if _, err := newWorld(t, w.Base).plain.Exec("CREATE TABLE another (id integer PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
		if got := about(all); !slices.Equal(got, []string{"pens missing-column"}) {
			t.Errorf("%q", got)
		}
		if got := about(all, sqlfence.WithTable("pens", sqlfence.Exempt())); len(got) > 0 {
			t.Errorf("pens are exempt: %q", got)
		}
		if got := about(all, sqlfence.WithTable("pens", sqlfence.Serial("id"))); slices.Contains(got, "pens missing-column") {
			t.Errorf("pens have rules of their own: %q", got)
		}
		if got := about(all, sqlfence.WithTable("elsewhere.pens", sqlfence.Exempt())); !slices.Contains(got, "pens missing-column") {
			t.Errorf("pens of another schema are exempt: %q", got)
		}
		if got := about(all, sqlfence.WithTable("elsewhere.pens", fence)); !slices.Contains(got, "pens missing-column") {
			t.Errorf("pens of another schema have rules of their own: %q", got)
		}
		if got := about(sqlfence.WithTable("elsewhere.*", fence)); len(got) > 0 {
			t.Errorf("of a schema that isn't there: %q", got)
		}
	})
}
