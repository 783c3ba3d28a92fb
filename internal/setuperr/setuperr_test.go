package setuperr

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	lite "github.com/sqlfence/sqlfence/internal/dialect/sqlite"
)

type stateError struct{ state, text string }

func (e stateError) Error() string    { return e.text }
func (e stateError) SQLState() string { return e.state }

func TestFind(t *testing.T) {
	tables := []Table{
		{Name: "books", SQL: `shop."books"`, Privileges: "SELECT (fence)", Columns: []Column{{"fence", "fence", "bigint"}}},
		{Name: "fencing_tokens", SQL: "fencing_tokens", Create: "CREATE TABLE fencing_tokens", Privileges: "SELECT, UPDATE"},
	}
	const (
		column = `ALTER TABLE shop."books" ADD COLUMN fence bigint`
		ledger = "CREATE TABLE fencing_tokens"
		grant  = "GRANT SELECT, UPDATE ON TABLE fencing_tokens TO <role>"
	)
	for _, test := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("broken"), ""},
		{stateError{"42703", `column "fence" of relation "books" does not exist`}, column},
		{stateError{"42703", `Spalte »fence« von Relation »books« existiert nicht`}, column},
		{stateError{"42703", `column books.fence does not exist`}, column},
		{stateError{"42703", `column "fence_2" does not exist`}, ""},
		{stateError{"42703", `column "price" of relation "books" does not exist`}, ""},
		{stateError{"42703", "Unknown column 'fence' in 'field list' (errno 1054) (sqlstate 42S22): Sql: \"update books"}, column},
		{stateError{"42703", "Unknown column 'Inf' in 'field list' (errno 1054) (sqlstate 42S22): Sql: \"update books set fence = 1"}, ""},
		{stateError{"42P01", "Table 'vt.pens' doesn't exist (errno 1146) (sqlstate 42S02): Sql: \"select token from fencing_tokens"}, ""},
		{stateError{"42501", "SELECT command denied for table 'pens' (errno 1142) (sqlstate 42000): Sql: \"update books"}, ""},
		{stateError{"42P01", `relation "fencing_tokens" does not exist`}, ledger},
		{stateError{"42P01", `relation "old_fencing_tokens" does not exist`}, ""},
		{stateError{"42P01", `relation "shop.fencing_tokens" does not exist`}, ledger},
		{stateError{"42P01", `Relation »fencing_tokens« existiert nicht`}, ledger},
		{stateError{"42P01", "la relation «\u00a0fencing_tokens\u00a0» n'existe pas"}, ledger},
		{stateError{"42P01", `relation "'fencing_tokens:" does not exist`}, ""}, // a value as regclass
		{stateError{"42P01", `relation "„fencing_tokens“" does not exist`}, ""},
		{stateError{"42P01", `fencing_tokens`}, ""},
		{stateError{"42P01", `"fencing_tokens`}, ""},
		{stateError{"42P01", `relation "books" does not exist`}, ""}, // the application's
		{stateError{"42501", `permission denied for table fencing_tokens`}, grant},
		{stateError{"42501", `permission denied for table books`}, `GRANT SELECT (fence) ON TABLE shop."books" TO <role>`},
		{stateError{"42501", `permission denied for table shelves`}, ""},
		{stateError{"42501", `new row violates row-level security policy for table "books"`}, ""},
		{stateError{"22P02", `relation "fencing_tokens" does not exist`}, ""},
		{errors.New("no such table: fencing_tokens"), ledger},
		{errors.New("SQL logic error: no such table: main.fencing_tokens (1)"), ledger},
		{errors.New("no such table: tokens"), ""},
		{errors.New("bad JSON path: 'no such table: fencing_tokens '"), ""}, // a value
		{errors.New("no such column: fence"), column},
		{errors.New("SQL logic error: no such column: books.fence (1)"), column},
		{errors.New("no such column: fence_2"), ""},
		{errors.New("table books has no column named fence"), column},
		{errors.New("table books has no column named price"), ""},
	} {
		if test.err != nil {
			test.err = fmt.Errorf("wrapped: %w", test.err)
		}
		got, ok := Find(test.err, nil, tables...)
		if got.SQL != test.want || ok != (test.want != "") {
			t.Errorf("Find(%v) = %q, %v, want %q", test.err, got.SQL, ok, test.want)
		}
	}
}

// Two tables may have columns of the same name, and one column is missing.
func TestFindNamesTheTable(t *testing.T) {
	tables := []Table{
		{Name: "books", SQL: "books", Columns: []Column{{"fence", "fence", "bigint"}}},
		{Name: "shelves", SQL: "shelves", Columns: []Column{{"fence", "fence", "bigint"}}},
	}
	for _, text := range []string{`column "fence" of relation "shelves" does not exist`, "column shelves.fence does not exist"} {
		if got, ok := Find(stateError{"42703", text}, nil, tables...); !ok || got.Name != "column fence of table shelves" {
			t.Errorf("Find(%s) = %v, %v", text, got, ok)
		}
	}
}

// If another schema has the missing table, the error advises to use that schema. If the schemas can't be queried, the
// error advises to look for it first.
func TestAnotherSchemaIsLookedFor(t *testing.T) {
	gone := stateError{"42P01", `relation "fencing_tokens" does not exist`}
	for _, test := range []struct {
		name    string
		ask     Asker
		has     []string // parts of the remedy; none for an empty remedy
		without string
	}{
		{"none", func(string) ([]string, error) { return nil, nil }, nil, ""},
		{"one", func(string) ([]string, error) { return []string{"shop"}, nil }, []string{"shop", "WithSchema"}, "CREATE"},
		{"many", func(string) ([]string, error) { return []string{"a", "b", "c", "d", "e", "f"}, nil }, []string{"e and others"}, "CREATE"},
		{"in a transaction that is over", func(string) ([]string, error) { return nil, stateError{"25P02", "aborted"} }, []string{"look whether", "CREATE"}, ""},
	} {
		got, ok := Find(gone, test.ask, Ledger(pg.Text, "", "SELECT"))
		if !ok || got.SQL == "" || (got.Remedy == "") != (len(test.has) == 0) || test.without != "" && strings.Contains(got.Remedy, test.without) {
			t.Errorf("%s: %+v, %v", test.name, got, ok)
		}
		for _, part := range test.has {
			if !strings.Contains(got.Remedy, part) {
				t.Errorf("%s: %q hasn't %q", test.name, got.Remedy, part)
			}
		}
	}
	never := func(query string) ([]string, error) { t.Errorf("asked %s", query); return nil, nil }
	if got, ok := Find(errors.New("no such table: fencing_tokens"), never, Ledger(lite.Text, "", "SELECT")); !ok || got.Remedy != "" {
		t.Errorf("on SQLite: %+v, %v", got, ok)
	}
	if got, _ := Find(gone, never, Table{Name: "fencing_tokens", Privileges: "SELECT"}); got.SQL != "" {
		t.Errorf("of a table of the application's: %+v", got)
	}
	if got, _ := Find(gone, func(string) ([]string, error) { return nil, nil }, Ledger(pg.Text, "ten", "SELECT")); got.Name != `table "ten".fencing_tokens` || !strings.Contains(got.SQL, `"ten".fencing_tokens`) {
		t.Errorf("in a schema: %+v", got)
	}
}
