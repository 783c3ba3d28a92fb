package database

import (
	"io/fs"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence/schema"
)

// Every database that package schema has files for can be reached.
func TestDatabasesAreThoseOfTheSchema(t *testing.T) {
	entries, err := fs.ReadDir(schema.Files, ".")
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, e := range entries {
		folders = append(folders, e.Name())
	}
	names := append(Names(), "issuers")
	slices.Sort(names)
	if !slices.Equal(names, folders) {
		t.Errorf("databases %v, package schema has %v", names, folders)
	}
}

// The data source names of sqlfence become those of the drivers.
func TestParseReturnsTheDriversDataSourceName(t *testing.T) {
	for _, test := range []struct{ dsn, want string }{
		{"postgres://ada:x@db1/shop?sslmode=disable", "postgres://ada:x@db1/shop?sslmode=disable"},
		{"postgresql://db1/shop", "postgresql://db1/shop"},
		{"mysql://ada:x%40y@db1/shop", "ada:x@y@tcp(db1:3306)/shop"},
		{"mysql://ada@[::1]:3307/shop?tls=true", "ada@tcp([::1]:3307)/shop?tls=true"},
		{"mysql://ada@/shop?socket=/run/mysqld.sock", "ada@unix(/run/mysqld.sock)/shop"},
		{"sqlite::memory:", "file::memory:?_pragma=busy_timeout%285000%29&mode=rw"},
		{"sqlite:database_test.go", "file:database_test.go?_pragma=busy_timeout%285000%29&mode=rw"},
		{"sqlite:///dev/null?mode=ro&_pragma=busy_timeout(1)", "file:/dev/null?_pragma=busy_timeout%281%29&mode=ro"},
	} {
		s, err := Parse(test.dsn, false)
		if err != nil || s.dsn != test.want {
			t.Errorf("Parse(%q) = %q, %v; want %q", test.dsn, s.dsn, err, test.want)
		}
	}
}

// A script has the form that the database's client accepts.
func TestScript(t *testing.T) {
	statements := []string{"SELECT 1;\n", "BEGIN SELECT 1; END"}
	for name, want := range map[string]string{
		"sqlite": "SELECT 1;\nBEGIN SELECT 1; END;\n",
		"mysql":  "SELECT 1;\nDELIMITER ;;\nBEGIN SELECT 1; END;;\nDELIMITER ;\n",
	} {
		d, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Script(statements); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
