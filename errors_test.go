package sqlfence_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

var sentinels = []error{
	sqlfence.ErrStale, sqlfence.ErrNotIssued, sqlfence.ErrNoFence, sqlfence.ErrOutOfScope, sqlfence.ErrUnguardable, sqlfence.ErrUnknownName,
	sqlfence.ErrConflict, sqlfence.ErrGone, sqlfence.ErrNoSerial, sqlfence.ErrLocked, sqlfence.ErrTokenLimit, sqlfence.ErrInvalid, sqlfence.ErrStandby,
}

// is lists the sentinels that errors.Is finds in err.
func is(err error) []error {
	return slices.DeleteFunc(slices.Clone(sentinels), func(s error) bool { return !errors.Is(err, s) })
}

func TestErrorTypes(t *testing.T) {
	books := token("books", 7)
	tests := []struct {
		err       error
		is        error
		temporary bool
		text      string
	}{
		{&sqlfence.StaleError{Table: "books", Token: books, Current: 9}, sqlfence.ErrStale, false,
			`sqlfence: stale fencing token: table "books": another holder has taken over "books" (its token is 9, this write's is 7); stop working, don't retry`},
		{&sqlfence.StaleError{Table: "books", Token: books, Current: 7}, sqlfence.ErrStale, false,
			`sqlfence: stale fencing token: table "books": token books:000000000000007 has written here before, and is for a single use; take a new token for each write`},
		{&sqlfence.NotIssuedError{Table: "books", Token: books, Current: 5}, sqlfence.ErrNotIssued, false,
			`sqlfence: fencing token was not issued here: table "books": token books:000000000000007, but the newest is 5; issue one, or adopt another service's (tokens.Store.Issue, Adopt); if the ledger has lost tokens, as by a restore, raise it (Repair)`},
		{&sqlfence.ConflictError{Table: "books", Current: 4, Assigned: true}, sqlfence.ErrConflict, false,
			`sqlfence: serial conflict: table "books": the statement assigned a serial that doesn't raise the row's, which is 4; leave the column out, it rises by itself`},
		{&sqlfence.ConflictError{Table: "books", Expected: 3, Current: 4}, sqlfence.ErrConflict, true,
			`sqlfence: serial conflict: table "books": expected serial 3, but it is 4`},
		{&sqlfence.LockedError{Table: "books", By: "ann", Since: time.Unix(60, 0), Expiry: time.Unix(120, 0)}, sqlfence.ErrLocked, false,
			`sqlfence: row is locked: table "books": by "ann" since 1970-01-01T00:01:00Z until 1970-01-01T00:02:00Z`},
		{&sqlfence.LockedError{Table: "books", By: "ann"}, sqlfence.ErrLocked, false,
			`sqlfence: row is locked: table "books": by "ann"`},
		{&sqlfence.UnguardableError{Table: "books", Reason: "why", Offset: 12}, sqlfence.ErrUnguardable, false,
			`sqlfence: statement can't be guarded: table "books", at byte 12: why`},
		{&sqlfence.UnguardableError{Reason: "why"}, sqlfence.ErrUnguardable, false,
			`sqlfence: statement can't be guarded: at byte 0: why`},
		{&sqlfence.UnguardableError{Table: "books", Reason: "why", Offset: -1}, sqlfence.ErrUnguardable, false,
			`sqlfence: statement can't be guarded: table "books": why`},
		{&sqlfence.UnguardableError{Reason: "why", Offset: -1}, sqlfence.ErrUnguardable, false,
			`sqlfence: statement can't be guarded: why`},
		{&sqlfence.UnguardableError{Table: "books", Column: "version", Reason: "why", Offset: -1}, sqlfence.ErrUnguardable, false,
			`sqlfence: statement can't be guarded: table "books": why`},
	}
	for _, tt := range tests {
		for _, err := range []error{tt.err, fmt.Errorf("saving: %w", tt.err), errors.Join(errors.New("other"), tt.err)} {
			if got := is(err); !slices.Equal(got, []error{tt.is}) {
				t.Errorf("%v is %v, want only %v", err, got, tt.is)
			}
			var temporary interface{ Temporary() bool }
			if !errors.As(err, &temporary) || temporary.Temporary() != tt.temporary {
				t.Errorf("%v: Temporary isn't %v", err, tt.temporary)
			}
		}
		if tt.err.Error() != tt.text {
			t.Errorf("text = %q\nwant   %q", tt.err.Error(), tt.text)
		}
	}
}

func TestSentinelsDiffer(t *testing.T) {
	for _, s := range sentinels {
		if got := is(s); !slices.Equal(got, []error{s}) {
			t.Errorf("%v is %v", s, got)
		}
	}
}

// A database's refusal is recognised in each call that may return it. The error has the message's facts, and wraps the
// driver's error.
func TestRefusalsByTheDatabase(t *testing.T) {
	rowFence := sqlfence.WithTable("books", fenced)
	ledger := sqlfence.WithTable("books")
	keyed := sqlfence.WithTable("books", fenced, sqlfence.Key("id"))
	const write = "UPDATE books SET price = 1"
	tests := []struct {
		name, message string
		opt           sqlfence.Option
		token         sqlfence.Token
		is            error // nil: no error of sqlfence
		text          string
	}{
		{"row fence", "bad JSON path: 'sqlfence:nonce:stale:0:9'", rowFence, token("books", 7), sqlfence.ErrStale,
			`sqlfence: stale fencing token: table "books": another holder has taken over "books" (its token is 9, this write's is 7); stop working, don't retry`},
		{"highest", "bad JSON path: 'sqlfence:nonce:stale:0:900000000000000'", rowFence, token("books", 7), sqlfence.ErrStale,
			`sqlfence: stale fencing token: table "books": another holder has taken over "books" (its token is 900000000000000, this write's is 7); stop working, don't retry`},
		{"ledger", "bad JSON path: 'sqlfence:nonce:stale:0:9'", ledger, token("books", 7), sqlfence.ErrStale,
			`sqlfence: stale fencing token: table "books": another holder has taken over "books" (its token is 9, this write's is 7); stop working, don't retry`},
		{"unknown name", "bad JSON path: 'sqlfence:nonce:unknown:0:0'", ledger, token("books", 7), sqlfence.ErrUnknownName,
			`sqlfence: name unknown to the ledger: table "books": token name "books"; add it to the ledger (tokens.Store.Ensure, Issue or Adopt)`},
		{"out of scope", "bad JSON path: 'sqlfence:nonce:scope:0:it is 43'", keyed, token("books/42", 7), sqlfence.ErrOutOfScope,
			`sqlfence: row out of the token's scope: table "books": the context carries no token called "books/it is 43"; add one with WithFence`},
		{"empty key", "bad JSON path: 'sqlfence:nonce:scope:0:'", keyed, token("books/42", 7), sqlfence.ErrOutOfScope,
			`sqlfence: row out of the token's scope: table "books": the context carries no token called "books/"; add one with WithFence`},
		{"a key like a marker", "bad JSON path: 'sqlfence:nonce:scope:0:sqlfence:nonce:stale:0:9'", keyed, token("books/42", 7), sqlfence.ErrOutOfScope,
			`sqlfence: row out of the token's scope: table "books": the context carries no token called "books/sqlfence:nonce:stale:0:9"; add one with WithFence`},
		{"unrelated", "disk I/O error", rowFence, token("books", 7), nil, ""},
		{"no such kind", "bad JSON path: 'sqlfence:nonce:other:0:9'", rowFence, token("books", 7), nil, ""},
		{"no such token", "bad JSON path: 'sqlfence:nonce:stale:1:9'", rowFence, token("books", 7), nil, ""},
		{"a negative token", "bad JSON path: 'sqlfence:nonce:stale:-1:9'", rowFence, token("books", 7), nil, ""},
		{"cut off", "bad JSON path: 'sqlfence:nonce:stale:0", rowFence, token("books", 7), nil, ""},
		{"no number", "bad JSON path: 'sqlfence:nonce:stale:0:x'", rowFence, token("books", 7), nil, ""},
		{"too large a number", "bad JSON path: 'sqlfence:nonce:stale:0:99999999999999999999'", rowFence, token("books", 7), nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			baseErr := &baseError{tt.message}
			base := &fakedb.Recorder{Fails: func(query string) error { return baseErr }}
			ctx := sqlfence.WithFence(t.Context(), tt.token)
			db := open(t, base, tt.opt)
			_, err := db.ExecContext(ctx, write)
			checkRefusal(t, err, baseErr, tt.is, tt.text)

			// The refusal arrives with the first row.
			base = &fakedb.Recorder{FailsNext: baseErr}
			db = open(t, base, tt.opt)
			var n int
			err = db.QueryRowContext(ctx, write+" RETURNING id").Scan(&n)
			checkRefusal(t, err, baseErr, tt.is, tt.text)
		})
	}
}

type baseError struct{ text string }

func (e *baseError) Error() string { return e.text }

func checkRefusal(t *testing.T, err error, base *baseError, want error, text string) {
	t.Helper()
	if want == nil {
		if err != error(base) {
			t.Errorf("error = %#v, want the base driver's own, untouched", err)
		}
		return
	}
	if got := is(err); !slices.Equal(got, []error{want}) {
		t.Fatalf("error = %v, which is %v; want %v", err, got, want)
	}
	if err.Error() != text {
		t.Errorf("text = %q\nwant   %q", err.Error(), text)
	}
	var found *baseError
	if !errors.As(err, &found) || found != base {
		t.Errorf("errors.As doesn't find the base driver's error in %v", err)
	}
}
