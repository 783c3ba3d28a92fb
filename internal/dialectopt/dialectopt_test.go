package dialectopt

import (
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

type config struct{ Options }

type option func(*config)

func withDialect(d sqlfence.Dialect) option { return func(c *config) { c.NameDialect(d) } }

// known returns a driver whose dialect is known.
func known(t *testing.T, d sqlfence.Dialect) driver.Driver {
	t.Helper()
	fenced, err := sqlfence.WrapDriver(unknown{}, sqlfence.WithDialect(d))
	if err != nil {
		t.Fatal(err)
	}
	return fenced
}

// unknown is a driver that sqlfence doesn't know.
type unknown struct{ fakedb.Driver }

func TestFind(t *testing.T) {
	type dialects = []sqlfence.Dialect
	for _, test := range []struct {
		name  string
		d     driver.Driver
		named dialects
		want  string // the part
		err   string // the errors' texts, joined
	}{
		{"known", known(t, sqlfence.Postgres), nil, "p", ""},
		{"known and named", known(t, sqlfence.SQLite), dialects{sqlfence.SQLite, sqlfence.SQLite}, "s", ""},
		{"named", unknown{}, dialects{sqlfence.SQLite}, "s", ""},
		{"unknown", unknown{}, nil, "", "unknown driver dialectopt.unknown; name its dialect with WithDialect"},
		{"another", known(t, sqlfence.Postgres), dialects{sqlfence.SQLite}, "", "WithDialect says SQLite, but the driver"},
		{"not guarded", known(t, sqlfence.MySQL), nil, "m", ""},
		{"unsupported by name", unknown{}, dialects{99}, "", "unknown dialect is not supported, only PostgreSQL, SQLite and MySQL are"},
		{"two", unknown{}, dialects{sqlfence.Postgres, sqlfence.SQLite}, "", "two dialects, PostgreSQL and SQLite"},
		{"zero", unknown{}, dialects{0}, "", "WithDialect was given the zero dialect"},
	} {
		var c config
		for _, d := range test.named {
			withDialect(d)(&c)
		}
		part, dialect := For("p", "s", "m").Find(&c.Options, test.d)
		err := c.Err("pkg")
		if part != test.want || (dialect == 0) != (err != nil) || (test.err == "") != (err == nil) {
			t.Errorf("%s: %q, %v, %v", test.name, part, dialect, err)
		}
		if err != nil && (!strings.HasPrefix(err.Error(), "pkg: "+test.err) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %s and nothing else", test.name, err, test.err)
		}
	}
}

func TestAllThatIsWrongIsTold(t *testing.T) {
	var c config
	Apply(&c, []option{nil, withDialect(99), nil})
	For(1, 2, 3).Find(&c.Options, unknown{})
	want := "pkg: nil option\nnil option\nunknown dialect is not supported, only PostgreSQL, SQLite and MySQL are"
	if err := c.Err("pkg"); !errors.Is(err, sqlfence.ErrInvalid) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestFaultsAreFound(t *testing.T) {
	var c config
	fault := errors.New("odd")
	c.Fail(fault)
	if err := c.Err("pkg"); !errors.Is(err, fault) || errors.Is(err, sqlfence.ErrTokenLimit) {
		t.Errorf("%v", err)
	}
}

func TestPartsOfAllDialects(t *testing.T) {
	if got := For("p", "s", "m").All(); len(got) != 3 || got[0] != "p" || got[1] != "s" || got[2] != "m" {
		t.Error(got)
	}
}

// Where tables are guarded, all packages have their part.
func TestPartsAreForTheGuardedDialects(t *testing.T) {
	parts := For("p", "s", "m")
	if len(parts.dialects) != len(parts.All()) {
		t.Errorf("%d parts for %v", len(parts.All()), parts.dialects)
	}
	for d := sqlfence.Dialect(1); d.String() != sqlfence.Dialect(0).String(); d++ {
		_, err := sqlfence.WrapDriver(unknown{}, sqlfence.WithDialect(d), sqlfence.WithTable("books"))
		if has := slices.Contains(parts.dialects, d); err == nil && !has {
			t.Errorf("%v: has a part: %t, but a table is registered with %v", d, has, err)
		}
	}
}
