package core_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

var keyed = sqlfence.WithTable("books", fenced, sqlfence.Key("id"))

// Each row of an INSERT is compared with the row's token, and stores the token.
func TestKeysOfInsertedRows(t *testing.T) {
	const insert = "INSERT INTO books (id, price) VALUES (?, 10), ('b', 20)"
	two := sqlfence.WithFence(t.Context(), token("books/b", 8), token("books/7", 7))
	for _, tt := range []struct {
		name string
		ctx  context.Context
		args []any
		is   error
		want []driver.Value // nil: nothing is sent
	}{
		{"both", two, []any{7}, nil, []driver.Value{int64(7), int64(7), int64(8)}},
		{"a text", two, []any{"7"}, nil, []driver.Value{"7", int64(7), int64(8)}},
		{"another key", two, []any{9}, sqlfence.ErrOutOfScope, nil},
		{"one token", sqlfence.WithFence(t.Context(), token("books/7", 7)), []any{7}, sqlfence.ErrOutOfScope, nil},
		{"no token", t.Context(), []any{7}, sqlfence.ErrNoFence, nil},
		{"another spelling", two, []any{"07"}, sqlfence.ErrUnguardable, nil},
		{"no key", two, []any{7.5}, sqlfence.ErrUnguardable, nil},
		{"not in form C", two, []any{"e\u0301"}, sqlfence.ErrUnguardable, nil},
	} {
		base := new(fakedb.Recorder)
		_, err := open(t, base, keyed).ExecContext(tt.ctx, insert, tt.args...)
		if !errors.Is(err, tt.is) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.is)
		}
		if got := base.Values(); !slices.Equal(got, tt.want) || (err == nil) != (len(base.Sent) == 1) {
			t.Errorf("%s: sent %q with %v, want %v", tt.name, base.Sent, got, tt.want)
		}
	}
}

// A key may be assigned only if the row stays in its token's scope.
func TestKeysAreKept(t *testing.T) {
	const update = "UPDATE books SET id = ?, price = 1"
	one := sqlfence.WithFence(t.Context(), token("books/7", 7))
	for _, tt := range []struct {
		name string
		ctx  context.Context
		key  any
		is   error
		text string
	}{
		{"the same", one, 7, nil, ""},
		{"another", one, 8, sqlfence.ErrOutOfScope, `the context carries no token called "books/8"`},
		{"of two tokens", sqlfence.WithFence(one, token("books/8", 8)), 7, sqlfence.ErrUnguardable,
			"it assigns the key column while the context carries several tokens for this table; leave the column out, or update one row per call"},
	} {
		base := new(fakedb.Recorder)
		_, err := open(t, base, keyed).ExecContext(tt.ctx, update, tt.key)
		if !errors.Is(err, tt.is) || (err == nil) != (len(base.Sent) == 1) || err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want %v; sent %q", tt.name, err, tt.is, base.Sent)
		}
	}
}

// The argument of a key may have a name, if each argument has a unique name.
func TestKeysByName(t *testing.T) {
	const insert = "INSERT INTO books (id, price) VALUES (:id, :price)"
	ctx := sqlfence.WithFence(t.Context(), token("books/7", 7))
	for _, tt := range []struct {
		name string
		args []any
		want error
	}{
		{"named", []any{sql.Named("price", 10), sql.Named("id", 7)}, nil},
		{"another row", []any{sql.Named("price", 7), sql.Named("id", 8)}, sqlfence.ErrOutOfScope},
		{"mixed", []any{sql.Named("id", 7), 10}, sqlfence.ErrUnguardable},
		{"given twice", []any{sql.Named("id", 7), sql.Named("id", 8)}, sqlfence.ErrUnguardable},
		{"not given", []any{sql.Named("price", 7)}, sqlfence.ErrUnguardable},
	} {
		base := new(fakedb.Recorder)
		if _, err := open(t, base, keyed).ExecContext(ctx, insert, tt.args...); !errors.Is(err, tt.want) || (err == nil) != (len(base.Sent) == 1) {
			t.Errorf("%s: %v, want %v; sent %q", tt.name, err, tt.want, base.Sent)
		}
	}
}

// A keyValuer returns a different key at each call.
type keyValuer struct{ asked *int }

func (k keyValuer) Value() (driver.Value, error) {
	*k.asked++
	return int64(6 + *k.asked), nil
}

// checker passes arguments to the driver unchanged.
type checker struct{ *fakedb.RecorderConn }

func (checker) CheckNamedValue(*driver.NamedValue) error { return nil }

// The compared value is sent, and the application's arguments stay unchanged.
func TestKeysAreReadOnce(t *testing.T) {
	asked := 0
	base := &fakedb.Recorder{Form: func(c *fakedb.RecorderConn) driver.Conn { return checker{c} }}
	db := open(t, base, keyed)
	args := []any{keyValuer{&asked}, 10}
	ctx := sqlfence.WithFence(t.Context(), token("books/7", 5))
	if _, err := db.ExecContext(ctx, "INSERT INTO books (id, price) VALUES (?, ?)", args...); err != nil {
		t.Fatal(err)
	}
	if got, want := base.Values(), []driver.Value{int64(7), 10, int64(5)}; !slices.Equal(got, want) || asked != 1 {
		t.Errorf("sent %v after %d questions, want %v after one", got, asked, want)
	}
	if _, same := args[0].(keyValuer); !same {
		t.Errorf("the application's argument has become %v", args[0])
	}
}
