package core_test

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

var editLock = sqlfence.EditLock("by", "since", "expiry")

// An application's named integer type, and a type that converts itself to a text.
type (
	userID   int32
	userName struct{ name string }
)

func (u userName) Value() (driver.Value, error) { return u.name, nil }

func TestEditLockSendsTheEditor(t *testing.T) {
	const update = "UPDATE books SET price = ?"
	name := "ann"
	for _, tt := range []struct {
		user any
		want any // nil: refused
	}{
		{42, "42"}, {int64(-7), "-7"}, {userID(8), "8"}, {"ann", "ann"}, {[]byte("ann"), "ann"}, {userName{"ann"}, "ann"}, {&name, "ann"},
		{nil, ""}, {0, nil}, {uint8(0), nil}, {"", nil}, {"0", nil}, {userName{}, nil}, {4.2, nil}, {time.Time{}, nil}, {[]int{1}, nil},
	} {
		base := new(fakedb.Recorder)
		db := open(t, base, sqlfence.WithTable("books", editLock))
		_, err := db.ExecContext(sqlfence.WithEditor(t.Context(), tt.user), update, 1)
		if tt.want == nil {
			if !slices.Equal(is(err), []error{sqlfence.ErrInvalid}) || len(base.Sent) > 0 {
				t.Errorf("%#v: sent %q, %v", tt.user, base.Sent, err)
			}
			continue
		}
		if err != nil || len(base.Args) != 2 || base.Args[1].Value != tt.want {
			t.Errorf("%#v: sent %v, %v, want %q", tt.user, base.Args, err, tt.want)
		}
	}
}

// An inner context's editor replaces the outer editor, even with nil.
func TestWithEditorReplaces(t *testing.T) {
	base := new(fakedb.Recorder)
	db := open(t, base, sqlfence.WithTable("books", editLock))
	for _, tt := range []struct {
		ctx  context.Context
		want string
	}{
		{sqlfence.WithEditor(sqlfence.WithEditor(t.Context(), "ann"), "bob's"), "= 'bob''s' OR"},
		{sqlfence.WithEditor(sqlfence.WithEditor(t.Context(), "ann"), nil), "= '' OR"},
	} {
		base.Sent = nil
		if _, err := db.ExecContext(tt.ctx, "DELETE FROM books"); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(base.Sent[0], tt.want) {
			t.Errorf("sent %q, want %q", base.Sent, tt.want)
		}
	}
}

func TestEditLockRefusalByTheDatabase(t *testing.T) {
	baseErr := &baseError{"bad JSON path: 'sqlfence:nonce:locked:0:60000000:120000000:o''neill:x'"}
	db := open(t, &fakedb.Recorder{Fails: func(string) error { return baseErr }}, sqlfence.WithTable("books", editLock))
	_, err := db.ExecContext(t.Context(), "DELETE FROM books")
	checkRefusal(t, err, baseErr, sqlfence.ErrLocked,
		`sqlfence: row is locked: table "books": by "o'neill:x" since 1970-01-01T00:01:00Z until 1970-01-01T00:02:00Z; the context doesn't say who writes: add WithEditor if it is the holder`)
	_, err = db.ExecContext(sqlfence.WithEditor(t.Context(), "ada"), "DELETE FROM books")
	checkRefusal(t, err, baseErr, sqlfence.ErrLocked,
		`sqlfence: row is locked: table "books": by "o'neill:x" since 1970-01-01T00:01:00Z until 1970-01-01T00:02:00Z`)
}
