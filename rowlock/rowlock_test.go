package rowlock

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// unknown is a database of a driver that sqlfence doesn't know. Nothing may be
// sent to it.
func unknown(t *testing.T) *sql.DB {
	db := sql.OpenDB(fakedb.New(nil))
	t.Cleanup(func() { db.Close() })
	return db
}

func TestNewRefusesWhatContradicts(t *testing.T) {
	db, lite := unknown(t), WithDialect(sqlfence.SQLite)
	elsewhere, err := NewManager(unknown(t), lite)
	if err != nil {
		t.Fatal(err)
	}
	here, err := NewManager(db, lite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(db, "managed", lite, WithManager(here)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		db    *sql.DB
		table string
		opts  []Option
		want  string // part of the error; empty: none
	}{
		{"as it is", db, "invoice", []Option{lite}, ""},
		{"schema", db, "sales.invoice", []Option{lite}, ""},
		{"nil database", nil, "invoice", nil, "nil database"},
		{"unknown driver", db, "invoice", nil, "WithDialect"},
		{"two dialects", db, "invoice", []Option{lite, WithDialect(sqlfence.Postgres)}, "two dialects"},
		{"zero dialect", db, "invoice", []Option{WithDialect(0)}, "zero dialect"},
		{"no such dialect", db, "invoice", []Option{WithDialect(99)}, "not supported"},
		{"nil option", db, "invoice", []Option{lite, nil}, "nil option"},
		{"no table", db, "", []Option{lite}, "name"},
		{"no name", db, "invoice; DROP TABLE invoice", []Option{lite}, "name"},
		{"no column", db, "invoice", []Option{lite, WithSerial("a b")}, `WithSerial: name "a b"`},
		{"no key", db, "invoice", []Option{lite, WithKey()}, "WithKey without a column"},
		{"empty column", db, "invoice", []Option{lite, WithColumns("", "since", "expiry")}, `WithColumns: name ""`},
		{"one column twice", db, "invoice", []Option{lite, WithColumns("by", "at", "AT")}, `two columns of the name "at"`},
		{"key is the version", db, "invoice", []Option{lite, WithKey("serial")}, `two columns of the name "serial"`},
		{"key of an expression", db, "invoice", []Option{lite, WithKey("a", "b+1")}, `WithKey: name "b+1"`},
		{"no ttl", db, "invoice", []Option{lite, WithTTL(0)}, "less than 1ms"},
		{"negative ttl", db, "invoice", []Option{lite, WithTTL(-time.Second)}, "less than 1ms"},
		{"nobody is 0", db, "invoice", []Option{lite, WithNobody(0)}, ""},
		{"nobody is empty", db, "invoice", []Option{lite, WithNobody("")}, ""},
		{"nobody is someone", db, "invoice", []Option{lite, WithNobody(7)}, "want nil, 0 or an empty text"},
		{"nil manager", db, "invoice", []Option{lite, WithManager(nil)}, "the Manager is nil"},
		{"manager of another database", db, "invoice", []Option{lite, WithManager(elsewhere)}, "another database"},
		{"managed twice", db, "Managed", []Option{lite, WithManager(here)}, "has this table already"},
		{"all at once", db, "invoice", []Option{lite, nil, WithTTL(0)}, "nil option\nWithTTL: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			table, err := New(test.db, test.table, test.opts...)
			switch {
			case test.want == "" && (err != nil || table == nil):
				t.Errorf("New = %v, %v", table, err)
			case test.want != "" && (!errors.Is(err, sqlfence.ErrInvalid) || !strings.Contains(err.Error(), test.want) || table != nil):
				t.Errorf("New = %v, %v; want ErrInvalid with %q", table, err, test.want)
			}
		})
	}
}

// id is a user's id with a Value method.
type id string

func (i id) Value() (driver.Value, error) { return string(i), nil }

func TestEditIsChecked(t *testing.T) {
	db := unknown(t)
	single, err := New(db, "invoice", WithDialect(sqlfence.SQLite))
	if err != nil {
		t.Fatal(err)
	}
	double, err := New(db, "invoice", WithDialect(sqlfence.Postgres), WithKey("region", "number"))
	if err != nil {
		t.Fatal(err)
	}
	ada, empty := id("ada"), id("")
	for _, test := range []struct {
		name  string
		table *Table
		edit  Edit
		want  string // part of the error; empty: none
	}{
		{"text", single, Edit{ID: 7, User: "ada"}, ""},
		{"integer", single, Edit{ID: "x", User: 12}, ""},
		{"small integer", single, Edit{ID: 7, User: uint8(12)}, ""},
		{"valuer", single, Edit{ID: 7, User: &ada}, ""},
		{"composite", double, Edit{ID: CompositeKey{"eu", 7}, User: "ada"}, ""},
		{"nil", single, Edit{ID: 7}, "means nobody"},
		{"nil valuer", single, Edit{ID: 7, User: (*id)(nil)}, "means nobody"},
		{"NULL", single, Edit{ID: 7, User: sql.NullString{}}, "means nobody"},
		{"zero", single, Edit{ID: 7, User: 0}, "means nobody"},
		{"zero as text", single, Edit{ID: 7, User: "0"}, "means nobody"},
		{"zero with a sign", single, Edit{ID: 7, User: "-0"}, "means nobody"},
		{"zero after a space", single, Edit{ID: 7, User: " 0"}, "means nobody"},
		{"zero as a float", single, Edit{ID: 7, User: "0.0"}, "means nobody"},
		{"empty", single, Edit{ID: 7, User: ""}, "means nobody"},
		{"empty valuer", single, Edit{ID: 7, User: &empty}, "means nobody"},
		{"float", single, Edit{ID: 7, User: 1.5}, "unsupported user ID float64: want an integer or a text"},
		{"time", single, Edit{ID: 7, User: time.Now()}, "want an integer or a text"},
		{"struct", single, Edit{ID: 7, User: struct{}{}}, "unsupported user ID struct {}: "},
		{"negative ttl", single, Edit{ID: 7, User: "ada", TTL: -time.Second}, "less than 1ms"},
		{"tiny ttl", single, Edit{ID: 7, User: "ada", TTL: time.Microsecond}, "less than 1ms"},
		{"NULL key", single, Edit{User: "ada"}, "the key is NULL"},
		{"NULL in key", double, Edit{ID: CompositeKey{"eu", nil}, User: "ada"}, "the key is NULL"},
		{"short key", double, Edit{ID: 7, User: "ada"}, "number of key values: got 1, want 2"},
		{"long key", single, Edit{ID: CompositeKey{1, 2}, User: "ada"}, "number of key values: got 2, want 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := test.table.check(test.edit)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("check = %v, want %q", err, test.want)
			}
			if test.want == "" {
				return
			}
			if !errors.Is(err, sqlfence.ErrInvalid) {
				t.Errorf("check = %v, want ErrInvalid", err)
			}
			// A refused request sends nothing; the fake database would return an error.
			if _, err := test.table.Request(t.Context(), test.edit); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Request = %v, want %q", err, test.want)
			}
		})
	}
}

// broken is an ID whose Value method fails.
type broken struct{}

var errBroken = errors.New("broken")

func (broken) Value() (driver.Value, error) { return nil, errBroken }

func TestUserIDsOwnError(t *testing.T) {
	if _, err := userID(broken{}); !errors.Is(err, errBroken) || !errors.Is(err, sqlfence.ErrInvalid) {
		t.Errorf("err = %v", err)
	}
}

// Each dialect has all statements, and the statements use only defined pieces.
func TestDialectsAreWhole(t *testing.T) {
	for i, of := range dialects.All() {
		d := of()
		table := &Table{dialect: d, table: "invoice", schema: "sales", quoted: d.Quote("invoice"), keys: []string{"a", "b"}, keyNames: []string{"a", "b"},
			columns: columns{"serial", "by", "since", "expiry"}}
		table.fragments = table.newFragments()
		for name, text := range map[string]string{
			"version": d.version, "versioned": d.versioned, "keyText": d.keyText, "keyComma": d.keyComma, "create": d.create, "upsert": d.upsert,
			"listColumns": d.listColumns, "hasUniqueKey": d.hasUniqueKey,
		} {
			if rendered, _ := table.render(text, nil, nil); rendered == "" {
				t.Errorf("dialect %d: %s is empty", i, name)
			}
		}
		table.render(d.lockRow, []any{1, 2}, nil)
		if d.wantsTime == "" || !d.isTime("bigint") && !d.isTime("timestamp with time zone") {
			t.Errorf("dialect %d takes no type of a time's column, not even its own", i)
		}
	}
}

func TestKeysAreReadBack(t *testing.T) {
	for _, test := range []struct{ row, pg, lite string }{
		{`[7]`, `[7]`, `[7]`},
		{`["a&b <c>",-9007199254740993]`, `["a&b <c>", -9007199254740993]`, `["a&b <c>",-9007199254740993]`},
		{` [ "x" , 1 ] `, `["x", 1]`, `["x",1]`},
		{`7`, "", ""}, {`[]`, "", ""}, {`[1.5]`, "", ""}, {``, "", ""}, {`{"a":1}`, "", ""},
	} {
		key, err := parseKey(test.row)
		if test.pg == "" {
			if !errors.Is(err, sqlfence.ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", test.row, err)
			}
			continue
		}
		for comma, want := range map[string]string{", ": test.pg, ",": test.lite} {
			if got, err := keyText(key, comma); got != want || err != nil {
				t.Errorf("%s is %s, %v; want %s", test.row, got, err, want)
			}
		}
	}
}

// The files of package schema create the table that Setup creates.
func TestFilesOfSchemaCreateTheTable(t *testing.T) {
	var files, want []string
	paths, err := filepath.Glob("../schema/*/00003_rowlocks.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, string(text))
	}
	for _, d := range dialects.All() {
		want = append(want, "-- +goose Up\n"+d().create+";\n")
	}
	slices.Sort(files)
	slices.Sort(want)
	if !slices.Equal(files, want) {
		t.Errorf("the files have\n%s\nSetup sends\n%s", strings.Join(files, "\n"), strings.Join(want, "\n"))
	}
}
