package rowlock_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
)

// change returns a catalogue in which a column is of another type, or may be
// NULL, or may not.
func change(name, typ string, notNull bool) func(*desk) {
	return func(d *desk) {
		for i, c := range d.catalogue {
			if c[0] == name {
				d.catalogue[i] = []any{name, typ, notNull}
			}
		}
	}
}

// without returns a catalogue that lacks columns.
func without(names ...string) func(*desk) {
	return func(d *desk) {
		d.catalogue = slices.DeleteFunc(d.catalogue, func(c []any) bool { return slices.Contains(names, c[0].(string)) })
	}
}

// faults are defects of a table, with parts of Check's error.
var faults = []struct {
	name    string
	change  func(*desk)
	pg, sql []string // parts of the error, of PostgreSQL and of SQLite; none: no error
}{
	{"as documented", func(*desk) {}, nil, nil},
	{"no table", func(d *desk) { d.catalogue = nil }, []string{`there is no table "invoice"`}, []string{`there is no table "invoice"`}},
	{"no columns", without("id", "serial", "editedby", "editedsince", "editedexpiry"),
		[]string{`no column "id"`, `no column "serial"`, `no column "editedby"`, `no column "editedsince"`, `no column "editedexpiry"`},
		[]string{"no column `id`", "no column `serial`", "no column `editedby`", "no column `editedsince`", "no column `editedexpiry`"}},
	{"a version of texts", change("serial", "text", true), []string{`"serial" is of type text, want bigint`}, []string{"`serial` is of type text, want bigint"}},
	{"a version that may be NULL", change("serial", "integer", false), []string{`"serial" may be NULL`}, []string{"`serial` may be NULL"}},
	{"no way to say nobody", change("editedby", "text", true), []string{"with WithNobody"}, []string{"with WithNobody"}},
	{"an expiry that can't end", func(d *desk) {
		for i, c := range d.catalogue {
			if c[0] == "editedexpiry" {
				d.catalogue[i] = []any{c[0], c[1], true}
			}
		}
	}, []string{`"editedexpiry" is NOT NULL`}, []string{"`editedexpiry` is NOT NULL"}},
	{"times of another type", change("editedsince", "timestamp without time zone", false), []string{"want timestamptz"}, []string{"want integer, for milliseconds"}},
	{"times of an interval", change("editedexpiry", "interval", false), []string{"want timestamptz"}, []string{"want integer, for milliseconds"}},
	{"integers for times", change("editedexpiry", "bigint", false), []string{"want timestamptz"}, nil},
	{"a key that isn't unique", func(d *desk) { d.unique = false }, []string{`its key "id" has no unique index of its own`}, []string{"its key `id` has no unique index of its own"}},
}

func TestCheck(t *testing.T) {
	for _, test := range faults {
		t.Run(test.name, func(t *testing.T) {
			eachDialect(t, func(t *testing.T, d *desk) {
				test.change(d)
				want := test.pg
				if d.dialect == sqlfence.SQLite {
					want = test.sql
				}
				err := d.table(t).Check(t.Context())
				if (err == nil) != (want == nil) || err != nil && !strings.HasPrefix(err.Error(), "rowlock: ") {
					t.Errorf("Check = %v, want %q", err, want)
				}
				for _, part := range want {
					if err != nil && !strings.Contains(err.Error(), part) {
						t.Errorf("Check = %v, want %q", err, part)
					}
				}
			})
		})
	}
	// With a value that means no holder, the holder's column may be NOT NULL.
	eachDialect(t, func(t *testing.T, d *desk) {
		change("editedby", "text", true)(d)
		if err := d.table(t, rowlock.WithNobody("")).Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
	// If the catalogue can't be read, Check returns the database's error, not one about the table.
	eachDialect(t, func(t *testing.T, d *desk) {
		d.catalogue[0] = []any{"id", nil, true}
		if err := d.table(t).Check(t.Context()); err == nil || errors.Unwrap(err) == nil || !strings.Contains(err.Error(), "converting NULL to string") {
			t.Errorf("Check = %v", err)
		}
	})
}

// Check looks for a table with a schema in this schema.
func TestCheckOfASchema(t *testing.T) {
	for dialect, want := range map[sqlfence.Dialect]string{
		sqlfence.Postgres: "\"\\\"sales\\\".\\\"invoice\\\"\"",
		sqlfence.SQLite:   "\"invoice\", \"sales\"",
	} {
		d := newDesk(dialect)
		defer d.db.Close()
		table, err := rowlock.New(d.db, "sales.invoice", rowlock.WithDialect(dialect))
		if err != nil {
			t.Fatal(err)
		}
		if err := table.Check(t.Context()); err != nil {
			t.Error(err)
		}
		for _, text := range texts(d.Sent()) {
			if _, args, _ := strings.Cut(text, " -- "); !strings.Contains(args, want) {
				t.Errorf("%v: sent %s, want the arguments %s", dialect, text, want)
			}
		}
	}
}
