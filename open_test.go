package sqlfence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

var (
	sqlite = sqlfence.WithDialect(sqlfence.SQLite)
	fenced = sqlfence.RowFence("fence")

	editLock = sqlfence.EditLock("by", "since", "expiry")

	claimedJobs = sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt"))
)

// Each of the four functions that open a database checks all options together. The error says which options contradict
// each other, and the function changes none of the caller's values.
func TestOptionErrors(t *testing.T) {
	table := sqlfence.WithTable
	tests := []struct {
		name string
		opts []sqlfence.Option
		want string // in the error's text
	}{
		{"unknown driver", nil, "WithDialect"},
		{"unknown dialect", []sqlfence.Option{sqlfence.WithDialect(42)}, "unknown dialect"},
		{"no dialect", []sqlfence.Option{sqlfence.WithDialect(0)}, "unknown dialect"},
		{"two dialects", []sqlfence.Option{sqlite, sqlfence.WithDialect(sqlfence.Postgres)}, "two dialects"},
		{"unknown mode", []sqlfence.Option{sqlite, sqlfence.WithMode(9)}, "unknown mode"},
		{"nil option", []sqlfence.Option{sqlite, nil}, "nil option"},
		{"nil observer", []sqlfence.Option{sqlite, sqlfence.WithObserver(nil)}, "nil observer"},
		{"nil logger", []sqlfence.Option{sqlite, sqlfence.WithLogger(nil)}, "nil logger"},
		{"nil rule", []sqlfence.Option{sqlite, table("books", nil)}, "nil rule"},
		{"table twice", []sqlfence.Option{sqlite, table("books"), table("books")}, "books"},
		{"table twice, other rules", []sqlfence.Option{sqlite, table("books"), table("books", fenced)}, "books"},
		{"table twice, other case", []sqlfence.Option{sqlite, table("books"), table("BOOKS")}, "books"},
		{"table twice, quoted", []sqlfence.Option{sqlite, table("books"), table(`"books"`)}, "books"},
		{"with and without schema", []sqlfence.Option{sqlite, table("books"), table("shop.books")}, "schema"},
		{"without and with schema", []sqlfence.Option{sqlite, table("shop.books"), table("books")}, "schema"},
		{"RowFence twice", []sqlfence.Option{sqlite, table("books", fenced, sqlfence.RowFence("other"))}, "RowFence twice"},
		{"a key of two columns", []sqlfence.Option{sqlite, table("books", sqlfence.Key("id, isbn"))}, "add a generated column"},
		{"Key twice", []sqlfence.Option{sqlite, table("books", sqlfence.Key("id"), sqlfence.Key("isbn"))}, `Key twice, with "id" and "isbn"; for a key of several columns`},
		{"Resource twice", []sqlfence.Option{sqlite, table("books", sqlfence.Resource("a"), sqlfence.Resource("b"))}, "Resource twice"},
		{"SingleUse alone", []sqlfence.Option{sqlite, table("books", sqlfence.SingleUse())}, "SingleUse needs RowFence"},
		{"SingleUse with Ledger", []sqlfence.Option{sqlite, table("books", sqlfence.Ledger(), sqlfence.SingleUse())}, "SingleUse needs RowFence"},
		{"Key is the fence", []sqlfence.Option{sqlite, table("books", fenced, sqlfence.Key("fence"))}, "both"},
		{"Key is the fence, other case", []sqlfence.Option{sqlite, table("books", fenced, sqlfence.Key("FENCE"))}, "both"},
		{"Serial twice", []sqlfence.Option{sqlite, table("books", sqlfence.Serial("a"), sqlfence.Serial("b"))}, "Serial twice"},
		{"empty serial column", []sqlfence.Option{sqlite, table("books", sqlfence.Serial(""))}, "Serial"},
		{"a serial that is no name", []sqlfence.Option{sqlite, table("books", sqlfence.Serial("a.b"))}, "one column"},
		{"Serial is the fence", []sqlfence.Option{sqlite, table("books", fenced, sqlfence.Serial("FENCE"))}, "serial"},
		{"Serial is the key", []sqlfence.Option{sqlite, table("books", fenced, sqlfence.Key("id"), sqlfence.Serial("id"))}, "serial"},
		{"Serial with SingleUse", []sqlfence.Option{sqlite, table("books", sqlfence.Serial("a"), sqlfence.SingleUse())}, "SingleUse needs RowFence"},
		{"EditLock twice", []sqlfence.Option{sqlite, table("books", editLock, editLock)}, "EditLock twice"},
		{"EditLock without a column", []sqlfence.Option{sqlite, table("books", sqlfence.EditLock("by", "", "expiry"))}, "EditLock"},
		{"EditLock of one column", []sqlfence.Option{sqlite, table("books", sqlfence.EditLock("by", "by", "expiry"))}, "twice"},
		{"EditLock on the fence", []sqlfence.Option{sqlite, table("books", fenced, sqlfence.EditLock("by", "FENCE", "expiry"))}, "twice"},
		{"empty fence column", []sqlfence.Option{sqlite, table("books", sqlfence.RowFence(""))}, "RowFence"},
		{"empty key column", []sqlfence.Option{sqlite, table("books", sqlfence.Key(""))}, "Key"},
		{"empty resource", []sqlfence.Option{sqlite, table("books", sqlfence.Resource(""))}, "empty"},
		{"long resource", []sqlfence.Option{sqlite, table("books", sqlfence.Resource(strings.Repeat("r", 513)))}, "513"},
		{"resource with NUL", []sqlfence.Option{sqlite, table("books", sqlfence.Resource("a\x00b"))}, "NUL"},
		{"resource not UTF-8", []sqlfence.Option{sqlite, table("books", sqlfence.Resource("a\xff"))}, "UTF-8"},
		{"ClaimOf of no table", []sqlfence.Option{sqlite, table("results", sqlfence.ClaimOf("jobs"))}, "no table of this name is registered"},
		{"ClaimOf of a table without claims", []sqlfence.Option{sqlite, table("results", sqlfence.ClaimOf("jobs")), table("jobs", fenced)}, "no table of this name is registered"},
		{"ClaimOf of a table in a schema", []sqlfence.Option{sqlite, table("results", sqlfence.ClaimOf("jobs")), table("main.jobs", sqlfence.Key("id"), sqlfence.Claim("attempt"))}, "name it as WithTable does"},
		{"ClaimOf of a table that may be in another file", []sqlfence.Option{sqlite, table("results", sqlfence.ClaimOf("main.jobs")), table("main.jobs", sqlfence.Key("id"), sqlfence.Claim("attempt"), sqlfence.Resource("jobs"))}, "within one file"},
		{"ClaimOf of its own table", []sqlfence.Option{sqlite, table("jobs", sqlfence.ClaimOf("jobs"), sqlfence.Key("id"), sqlfence.Claim("attempt"))}, "a row either has a claim"},
		{"ClaimOf twice", []sqlfence.Option{sqlite, table("results", sqlfence.ClaimOf("jobs"), sqlfence.ClaimOf("tasks"))}, "ClaimOf twice"},
		{"ClaimOf without a name", []sqlfence.Option{sqlite, table("results", sqlfence.ClaimOf(""))}, "empty name"},
		{"ClaimOf of no name", []sqlfence.Option{sqlite, table("results", sqlfence.ClaimOf("jo bs"))}, "results"},
		{"ClaimOf with Ledger", []sqlfence.Option{sqlite, claimedJobs, table("results", sqlfence.ClaimOf("jobs"), sqlfence.Ledger())}, "ClaimOf excludes"},
		{"ClaimOf with RowFence", []sqlfence.Option{sqlite, claimedJobs, table("results", sqlfence.ClaimOf("jobs"), fenced)}, "ClaimOf excludes"},
		{"ClaimOf with SingleUse", []sqlfence.Option{sqlite, claimedJobs, table("results", sqlfence.ClaimOf("jobs"), sqlfence.SingleUse())}, "ClaimOf excludes"},
		{"ClaimOf with Sealed", []sqlfence.Option{sqlite, claimedJobs, table("results", sqlfence.ClaimOf("jobs"), sqlfence.Sealed())}, "Sealed"},
		{"ClaimOf with Resource", []sqlfence.Option{sqlite, claimedJobs, table("results", sqlfence.ClaimOf("jobs"), sqlfence.Resource("r"))}, "ClaimOf excludes"},
		{"several faults", []sqlfence.Option{nil, sqlfence.WithObserver(nil), sqlfence.WithMode(9)}, "nil observer"},
	}
	for _, name := range []string{"", " ", ".", "books.", ".books", "a.b.c.d", "bo oks", "books;", `"books`,
		"books'", "1books", "(books)", "books(id)", "bo\x00oks", "bo\xffoks", strings.Repeat("n", 1<<20) + "("} {
		tests = append(tests, struct {
			name string
			opts []sqlfence.Option
			want string
		}{"table " + name[:min(len(name), 12)], []sqlfence.Option{sqlite, table(name)}, "table"})
	}
	for _, name := range []string{"a.fence", "fen ce", "fence)", "fence = 1", `"fence`} {
		tests = append(tests, struct {
			name string
			opts []sqlfence.Option
			want string
		}{"column " + name, []sqlfence.Option{sqlite, table("books", sqlfence.RowFence(name))}, "name"})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for way, open := range waysToOpen {
				base := &fakedb.Recorder{}
				err := open(base, tt.opts...)
				if err == nil || !strings.HasPrefix(err.Error(), "sqlfence: ") || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s: error = %.200v, want one about %q", way, err, tt.want)
					continue
				}
				if len(err.Error()) > 1000 || strings.Count(err.Error(), "sqlfence: ") > 1 {
					t.Errorf("%s: the error of %d bytes is not fit to be read: %.2000v", way, len(err.Error()), err)
				}
				if got := is(err); !slices.Equal(got, []error{sqlfence.ErrInvalid}) {
					t.Errorf("%s: error is %v, want ErrInvalid", way, got)
				}
				base.WantSent(t)
				if base.Closed != 0 {
					t.Errorf("%s closed the caller's connector", way)
				}
			}
		})
	}
}

// The error lists the invalid arguments of all options and all tables, so that users can mend them in one step.
func TestOptionErrorsAreReportedTogether(t *testing.T) {
	_, err := sqlfence.OpenDB(&fakedb.Recorder{},
		nil,
		sqlfence.WithMode(7),
		sqlfence.WithTable("books", nil, sqlfence.RowFence(""), sqlfence.Key("a b"), sqlfence.Resource("")),
		sqlfence.WithTable("pens", sqlfence.SingleUse(), sqlfence.Serial("x y"), sqlfence.EditLock("by", "", "expiry")),
		sqlfence.WithObserver(nil),
		sqlfence.WithDialect(sqlfence.SQLite),
		sqlfence.WithTable("a.b.c.d"),
		sqlfence.WithTable("shelves", sqlfence.RowFence("x"), sqlfence.Key("x")),
		sqlfence.WithTable("inks", fenced), sqlfence.WithTable("INKS", fenced),
	)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"nil option", "unknown mode 7", "nil observer",
		`table "books": nil rule`, `table "books": RowFence of an empty name`, `table "books": Resource: a token's name is empty`, `table "books": name "a b"`,
		`table "pens": SingleUse needs RowFence`, `table "pens": name "x y"`, `table "pens": EditLock of an empty name`,
		`table "a.b.c.d": `, `table "shelves": the column "x" can't be both fence and key`, `table "inks" is registered twice`,
	} {
		if strings.Count(err.Error(), want) != 1 {
			t.Errorf("%v\ntells %d times %q, want once", err, strings.Count(err.Error(), want), want)
		}
	}
	if n := len(strings.Split(err.Error(), "\n")); n != 13 {
		t.Errorf("%d faults in\n%v", n, err)
	}
	// Also where the database isn't known.
	_, err = sqlfence.OpenDB(&fakedb.Recorder{}, sqlfence.WithTable("books", sqlfence.RowFence("")), sqlfence.WithMode(7))
	for _, want := range []string{"unknown driver", "unknown mode", "RowFence of an empty name"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

// waysToOpen are the ways that share their options. Open is left out: it needs
// a registered driver, see TestOpen.
var waysToOpen = map[string]func(*fakedb.Recorder, ...sqlfence.Option) error{
	"OpenDB": func(base *fakedb.Recorder, opts ...sqlfence.Option) error {
		db, err := sqlfence.OpenDB(base, opts...)
		if db != nil {
			_ = db.Close()
		}
		return err
	},
	"WrapDriver": func(base *fakedb.Recorder, opts ...sqlfence.Option) error {
		_, err := sqlfence.WrapDriver(base, opts...)
		return err
	},
	"Register": func(base *fakedb.Recorder, opts ...sqlfence.Option) error {
		const name = "sqlfence-test-never"
		err := sqlfence.Register(name, base, opts...)
		if slices.Contains(sql.Drivers(), name) {
			return errors.New("it was registered")
		}
		return err
	},
}

func TestOptionsAllowed(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts []sqlfence.Option
	}{
		{"no table", nil},
		{"MySQL without tables", []sqlfence.Option{}},
		{"RowFence and Ledger", []sqlfence.Option{sqlfence.WithTable("books", fenced, sqlfence.Ledger())}},
		{"all rules", []sqlfence.Option{sqlfence.WithTable("books", fenced, sqlfence.Ledger(), sqlfence.Resource("r"),
			sqlfence.Key("id"), sqlfence.SingleUse(), sqlfence.Optional())}},
		{"one rule twice", []sqlfence.Option{sqlfence.WithTable("books", fenced, fenced)}},
		{"one dialect twice", []sqlfence.Option{sqlite, sqlite}},
		{"two schemas", []sqlfence.Option{sqlfence.WithTable("a.books"), sqlfence.WithTable("b.books")}},
		{"quoted name", []sqlfence.Option{sqlfence.WithTable(`"the ""books"""`)}},
	} {
		dialect := sqlite
		if strings.HasPrefix(tt.name, "MySQL") {
			dialect = sqlfence.WithDialect(sqlfence.MySQL)
		}
		db, err := sqlfence.OpenDB(&fakedb.Recorder{}, append(tt.opts, dialect)...)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if _, err := db.Exec("UPDATE others SET price = 1"); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		_ = db.Close()
	}
}

func TestNilDriverAndConnector(t *testing.T) {
	if db, err := sqlfence.OpenDB(nil, sqlite); db != nil || err == nil || !errors.Is(err, sqlfence.ErrInvalid) || !strings.Contains(err.Error(), "nil connector") {
		t.Errorf("OpenDB(nil) = %v, %v", db, err)
	}
	if _, err := sqlfence.WrapDriver(nil, sqlite); err == nil || !strings.Contains(err.Error(), "nil driver") {
		t.Errorf("WrapDriver(nil): %v", err)
	}
	if err := sqlfence.Register("sqlfence-test-nil", nil, sqlite); err == nil || !strings.Contains(err.Error(), "nil driver") {
		t.Errorf("Register(nil) = %v", err)
	}
}

func TestOpen(t *testing.T) {
	if db, err := sqlfence.Open("sqlfence-test-unheard-of", "", sqlite); db != nil || err == nil || !strings.Contains(err.Error(), "unknown driver") {
		t.Errorf("an unknown name: %v, %v", db, err)
	}
	const name = "sqlfence-test-base"
	if !slices.Contains(sql.Drivers(), name) { // registered already in -count=2
		sql.Register(name, &fakedb.Recorder{})
	}
	if db, err := sqlfence.Open(name, "", sqlfence.WithTable("books")); db != nil || err == nil || !strings.Contains(err.Error(), "WithDialect") {
		t.Errorf("no dialect: %v, %v", db, err)
	}
	db, err := sqlfence.Open(name, "", sqlite, sqlfence.WithTable("books", fenced))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("DELETE FROM books"); !errors.Is(err, sqlfence.ErrNoFence) {
		t.Errorf("a write without a token: %v", err)
	}
}

// badDSN is a driver that parses the DSN in OpenConnector.
type badDSN struct{ *fakedb.Recorder }

var errBadDSN = errors.New("bad dsn")

func (badDSN) OpenConnector(string) (driver.Connector, error) { return nil, errBadDSN }

func TestBadDSNComesThrough(t *testing.T) {
	d, err := sqlfence.WrapDriver(badDSN{&fakedb.Recorder{}}, sqlite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.(driver.DriverContext).OpenConnector("x"); !errors.Is(err, errBadDSN) {
		t.Errorf("OpenConnector: %v", err)
	}
}

func TestRegister(t *testing.T) {
	const name = "sqlfence-test-registered"
	base := &fakedb.Recorder{}
	if !slices.Contains(sql.Drivers(), name) {
		if err := sqlfence.Register(name, base, sqlite, sqlfence.WithTable("books", fenced)); err != nil {
			t.Fatal(err)
		}
	}
	if err := sqlfence.Register(name, base, sqlite); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("a taken name: %v", err)
	}
	db, err := sql.Open(name, "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("DELETE FROM books"); !errors.Is(err, sqlfence.ErrNoFence) {
		t.Errorf("a write without a token: %v", err)
	}
	// Its driver, found in the DB, is known to be fenced.
	if d, known := core.DialectOf(db.Driver()); !known || d != sqlfence.SQLite {
		t.Errorf("DialectOf = %v, %v", d, known)
	}
}

// Two fences would each add their guard, the outer one to what the inner sends.
func TestFencedTwice(t *testing.T) {
	d, err := sqlfence.WrapDriver(&fakedb.Recorder{}, sqlite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sqlfence.WrapDriver(d, sqlite); err == nil || !strings.Contains(err.Error(), "fenced already") {
		t.Errorf("WrapDriver of a fenced driver: %v", err)
	}
	c, err := d.(driver.DriverContext).OpenConnector("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sqlfence.OpenDB(c, sqlite); err == nil || !strings.Contains(err.Error(), "fenced already") {
		t.Errorf("OpenDB of a fenced connector: %v", err)
	}
	if err := sqlfence.Register("sqlfence-test-twice", d, sqlite); err == nil {
		t.Error("Register of a fenced driver succeeded")
	}
}

func TestConnectErrorComesThrough(t *testing.T) {
	refused := errors.New("connection refused")
	db, err := sqlfence.OpenDB(failingConnector{refused}, sqlite)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.PingContext(t.Context()); err != refused { // the very same
		t.Errorf("Ping: %v, want %v", err, refused)
	}
}

type failingConnector struct{ err error }

func (c failingConnector) Connect(context.Context) (driver.Conn, error) { return nil, c.err }
func (c failingConnector) Driver() driver.Driver                        { return &fakedb.Recorder{} }
