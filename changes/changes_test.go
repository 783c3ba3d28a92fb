package changes_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/changes"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

func TestNewRefusesWhatContradicts(t *testing.T) {
	db := sql.OpenDB(new(fakedb.DB))
	defer db.Close()
	for _, test := range []struct {
		name string
		db   *sql.DB
		opts []changes.Option
		want string // part of the error; empty: none
	}{
		{"nil database", nil, nil, "nil database"},
		{"unknown driver", db, nil, "WithDialect"},
		{"unknown driver, dialect given", db, []changes.Option{changes.WithDialect(sqlfence.Postgres)}, ""},
		{"nil option", db, []changes.Option{nil}, "nil option"},
	} {
		counter, err := changes.New(test.db, test.opts...)
		switch {
		case test.want == "" && (err != nil || counter == nil):
			t.Errorf("%s: New = %v, %v", test.name, counter, err)
		case test.want != "" && (!errors.Is(err, sqlfence.ErrInvalid) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: New = %v, want an error with %q", test.name, err, test.want)
		}
	}
}

// Where several servers write, two connections would count in the same row.
func TestSetupOnCluster(t *testing.T) {
	for variable, value := range map[string]string{
		"wsrep_provider": "/usr/lib/libgalera_smm.so", "group_replication_single_primary_mode": "OFF",
	} {
		db := sql.OpenDB(fakedb.New(func(_ context.Context, c fakedb.Call) (fakedb.Response, error) {
			if !strings.HasPrefix(c.Query, "SHOW GLOBAL VARIABLES") {
				return fakedb.Response{}, errors.New("something else was sent: " + c.Query)
			}
			return fakedb.Response{Rows: [][]any{{variable, value}}}, nil
		}))
		defer db.Close()
		counter, err := changes.New(db, changes.WithDialect(sqlfence.MySQL))
		if err != nil {
			t.Fatal(err)
		}
		if err := counter.Setup(t.Context(), "books"); err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s: err = %v, want that it isn't for clusters", variable, err)
		}
	}
}
