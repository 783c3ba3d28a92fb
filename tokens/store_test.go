package tokens

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
)

// unknownDriver is a driver that sqlfence doesn't know. Open fails.
type unknownDriver struct{}

func (unknownDriver) Open(string) (driver.Conn, error) { return nil, errors.New("no database") }

func init() { sql.Register("unknown", unknownDriver{}) }

func TestNewRefusesWhatContradicts(t *testing.T) {
	db, err := sql.Open("unknown", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, test := range []struct {
		name string
		db   *sql.DB
		opts []Option
		want string // part of the error; empty: none
	}{
		{"nil database", nil, nil, "nil database"},
		{"unknown driver", db, nil, "WithDialect"},
		{"unknown driver, dialect given", db, []Option{WithDialect(sqlfence.Postgres)}, ""},
		{"same dialect twice", db, []Option{WithDialect(sqlfence.SQLite), WithDialect(sqlfence.SQLite)}, ""},
		{"two dialects", db, []Option{WithDialect(sqlfence.SQLite), WithDialect(sqlfence.Postgres)}, "two dialects, SQLite and PostgreSQL"},
		{"zero dialect", db, []Option{WithDialect(0)}, "zero dialect"},
		{"MySQL", db, []Option{WithDialect(sqlfence.MySQL)}, ""},
		{"no such dialect", db, []Option{WithDialect(99)}, "not supported"},
		{"nil logger", db, []Option{WithDialect(sqlfence.SQLite), WithLogger(nil)}, "nil logger"},
		{"logger", db, []Option{WithDialect(sqlfence.SQLite), WithLogger(slog.New(slog.DiscardHandler))}, ""},
		{"nil option", db, []Option{nil}, "nil option"},
		{"all at once", nil, []Option{nil, WithLogger(nil), WithDialect(0)}, "tokens: nil option\nnil logger\nWithDialect was given the zero dialect\nnil database"},
	} {
		t.Run(test.name, func(t *testing.T) {
			store, err := New(test.db, test.opts...)
			switch {
			case test.want == "" && (err != nil || store == nil):
				t.Errorf("New = %v, %v", store, err)
			case test.want != "" && (!errors.Is(err, sqlfence.ErrInvalid) || !strings.Contains(err.Error(), test.want) || store != nil):
				t.Errorf("New = %v, %v; want an error with %q", store, err, test.want)
			}
		})
	}
}

func TestUsable(t *testing.T) {
	name, token := column{"name", "text", true}, column{"token", "bigint", true}
	for _, test := range []struct {
		name    string
		columns []column
		want    string // part of the error; empty: none
	}{
		{"ours", []column{name, token}, ""},
		{"blog", []column{{"id", "integer", false}, name, {"token", "integer", false}}, ""},
		{"no column", nil, "the server shows no column of it"},
		{"no token", []column{name}, "it has the columns name, want name and token"},
		{"no name", []column{token}, "it has the columns token, want name and token"},
		{"text token", []column{name, {"token", "text", false}}, "type text, want bigint"},
		{"small token", []column{name, {"token", "smallint", false}}, "type smallint, want bigint"},
		{"more", []column{name, token, {"owner", "text", true}}, "column owner needs a value"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := usable(test.columns)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("usable = %v, want %q", err, test.want)
			}
		})
	}
}
