package setuperr

import (
	"errors"
	"fmt"
	"testing"
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
		{stateError{"42P01", `relation "fencing_tokens" does not exist`}, ledger},
		{stateError{"42P01", `relation "old_fencing_tokens" does not exist`}, ""},
		{stateError{"42P01", `relation "books" does not exist`}, ""}, // the application's
		{stateError{"42501", `permission denied for table fencing_tokens`}, grant},
		{stateError{"42501", `permission denied for table books`}, `GRANT SELECT (fence) ON TABLE shop."books" TO <role>`},
		{stateError{"42501", `permission denied for table shelves`}, ""},
		{stateError{"42501", `new row violates row-level security policy for table "books"`}, ""},
		{stateError{"22P02", `relation "fencing_tokens" does not exist`}, ""},
		{errors.New("no such table: fencing_tokens"), ledger},
		{errors.New("SQL logic error: no such table: main.fencing_tokens (1)"), ledger},
		{errors.New("no such table: tokens"), ""},
		{errors.New("no such column: fence"), column},
		{errors.New("SQL logic error: no such column: books.fence (1)"), column},
		{errors.New("no such column: fence_2"), ""},
		{errors.New("table books has no column named fence"), column},
		{errors.New("table books has no column named price"), ""},
	} {
		if test.err != nil {
			test.err = fmt.Errorf("wrapped: %w", test.err)
		}
		got, ok := Find(test.err, tables...)
		if got.SQL != test.want || ok != (test.want != "") {
			t.Errorf("Find(%v) = %q, %v, want %q", test.err, got.SQL, ok, test.want)
		}
	}
}

// Two tables may have a column of the same name, of which one is missing.
func TestFindNamesTheTable(t *testing.T) {
	tables := []Table{
		{Name: "books", SQL: "books", Columns: []Column{{"fence", "fence", "bigint"}}},
		{Name: "shelves", SQL: "shelves", Columns: []Column{{"fence", "fence", "bigint"}}},
	}
	for _, text := range []string{`column "fence" of relation "shelves" does not exist`, "column shelves.fence does not exist"} {
		if got, ok := Find(stateError{"42703", text}, tables...); !ok || got.Name != "column fence of table shelves" {
			t.Errorf("Find(%s) = %v, %v", text, got, ok)
		}
	}
}
