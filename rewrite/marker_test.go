package rewrite

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/nonce"
)

const testNonce = "nonce"

func init() { nonce.Fix(testNonce) }

// reader returns a rewriter to read markers with.
func reader(t *testing.T, d databases.Dialect) *Rewriter {
	t.Helper()
	r, err := New(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The texts are complete texts of real errors.
func TestReadMarker(t *testing.T) {
	values := &Values{Tables: []TableValues{
		{Tokens: []Token{{Key: "7"}}},
		{Tokens: []Token{{Key: "o'neill:1"}, {Key: "42"}, {Key: strings.Repeat("k", 200)}}},
	}}
	for _, tt := range []struct {
		name, message string
		want          guard.Marker
	}{
		{"pgx", `ERROR: invalid input syntax for type bigint: "sqlfence:nonce:stale:0:9" (SQLSTATE 22P02)`, guard.Marker{Kind: guard.Stale, Current: 9}},
		{"lib/pq", `pq: invalid input syntax for type bigint: "sqlfence:nonce:stale:0:9"`, guard.Marker{Kind: guard.Stale, Current: 9}},
		{"lib/pq, new", `pq: invalid input syntax for type bigint: "sqlfence:nonce:stale:0:9" (22P02)`, guard.Marker{Kind: guard.Stale, Current: 9}},
		{"in another language", `FEHLER: ungültige Eingabesyntax für Typ bigint: »sqlfence:nonce:stale:0:9« (SQLSTATE 22P02)`, guard.Marker{Kind: guard.Stale, Current: 9}},
		{"mattn", `bad JSON path: 'sqlfence:nonce:stale:0:9'`, guard.Marker{Kind: guard.Stale, Current: 9}},
		{"modernc", `SQL logic error: bad JSON path: 'sqlfence:nonce:stale:0:9' (1)`, guard.Marker{Kind: guard.Stale, Current: 9}},
		{"old SQLite", `JSON path error near 'sqlfence:nonce:stale:0:9'`, guard.Marker{Kind: guard.Stale, Current: 9}},
		{"negative mark", `bad JSON path: 'sqlfence:nonce:stale:0:-9'`, guard.Marker{Kind: guard.Stale, Current: 9}},
		{"lowest mark", `bad JSON path: 'sqlfence:nonce:stale:0:-9223372036854775808'`, guard.Marker{Kind: guard.Stale, Current: 9223372036854775807}},
		{"second token", `bad JSON path: 'sqlfence:nonce:stale:12:900000000000000'`, guard.Marker{Kind: guard.Stale, Token: 12, Current: 900000000000000}},
		{"mark of text", `bad JSON path: 'sqlfence:nonce:stale:0:000000000000042'`, guard.Marker{Kind: guard.Stale, Current: 42}},
		{"mark of a float", `bad JSON path: 'sqlfence:nonce:stale:0:42.0'`, guard.Marker{Kind: guard.Stale, Current: 42}},
		{"scope, pgx", `ERROR: invalid input syntax for type bigint: "sqlfence:nonce:scope:0:43" (SQLSTATE 22P02)`, guard.Marker{Kind: guard.OutOfScope, Key: "43"}},
		{"scope, modernc", `SQL logic error: bad JSON path: 'sqlfence:nonce:scope:0:43' (1)`, guard.Marker{Kind: guard.OutOfScope, Key: "43"}},
		{"scope, no key", `bad JSON path: 'sqlfence:nonce:scope:0:'`, guard.Marker{Kind: guard.OutOfScope}},
		{"scope, double quote in the key", `pq: invalid input syntax for type bigint: "sqlfence:nonce:scope:0:a"b"`, guard.Marker{Kind: guard.OutOfScope, Key: `a"b`}},
		{"scope, colons in the key", `bad JSON path: 'sqlfence:nonce:scope:0:a:b::c'`, guard.Marker{Kind: guard.OutOfScope, Key: "a:b::c"}},
		{"scope, a marker in the key", `bad JSON path: 'sqlfence:nonce:scope:0:sqlfence:nonce:stale:0:9'`, guard.Marker{Kind: guard.OutOfScope, Key: "sqlfence:nonce:stale:0:9"}},
		{"claim, pgx", `ERROR: invalid input syntax for type bigint: "sqlfence:nonce:claim:0:12:3" (SQLSTATE 22P02)`, guard.Marker{Kind: guard.Stale, Token: 12, Current: 3}},
		{"claim, negative", `bad JSON path: 'sqlfence:nonce:claim:0:0:-3'`, guard.Marker{Kind: guard.Stale, Current: -3}},
		{"claim, gone", `bad JSON path: 'sqlfence:nonce:claim:0:12:gone'`, guard.Marker{Kind: guard.Stale, Token: 12, RowGone: true}},
		{"taken, pgx", `ERROR: invalid input syntax for type bigint: "sqlfence:nonce:taken:1:3:=42" (SQLSTATE 22P02)`, guard.Marker{Kind: guard.NotNewest, Token: 2, Current: 3}},
		{"unproven, pgx", `ERROR: invalid input syntax for type bigint: "sqlfence:nonce:unproven:1:3:=42" (SQLSTATE 22P02)`, guard.Marker{Kind: guard.Stale, Token: 2, Current: 3}},
		{"unproven, negative", `bad JSON path: 'sqlfence:nonce:unproven:1:-3:=o''neill:1'`, guard.Marker{Kind: guard.Stale, Token: 1, Current: -3}},
		{"unproven, another key", `SQL logic error: bad JSON path: 'sqlfence:nonce:unproven:1:3:=o''neill:2' (1)`, guard.Marker{Kind: guard.OutOfScope, Token: 1, Key: "o'neill:2"}},
		{"unproven, another table's key", `bad JSON path: 'sqlfence:nonce:unproven:1:3:=7'`, guard.Marker{Kind: guard.OutOfScope, Token: 1, Key: "7"}},
		{"unproven, a key that is cut off", `bad JSON path: 'sqlfence:nonce:unproven:1:3:=` + strings.Repeat("k", 100) + `'`, guard.Marker{Kind: guard.Stale, Token: 3, Current: 3}},
		{"unproven, NULL", `bad JSON path: 'sqlfence:nonce:unproven:1:3:'`, guard.Marker{Kind: guard.OutOfScope, Token: 1}},
		{"unproven, a short key that others begin with", `bad JSON path: 'sqlfence:nonce:unproven:1:3:=k'`, guard.Marker{Kind: guard.OutOfScope, Token: 1, Key: "k"}},
		{"unknown", `ERROR: invalid input syntax for type bigint: "sqlfence:nonce:unknown:0:0" (SQLSTATE 22P02)`, guard.Marker{Kind: guard.UnknownName}},
		{"ledger, pgx", `ERROR: invalid input syntax for type bigint: "sqlfence:nonce:ledger:3:9" (SQLSTATE 22P02)`, guard.Marker{Kind: guard.NotNewest, Token: 3, Current: 9}},
		{"ledger, none yet", `bad JSON path: 'sqlfence:nonce:ledger:0:0'`, guard.Marker{Kind: guard.NotNewest}},
		{"ledger, negative", `SQL logic error: bad JSON path: 'sqlfence:nonce:ledger:0:-3' (1)`, guard.Marker{Kind: guard.NotNewest, Current: -3}},
		{"conflict, pgx", `ERROR: invalid input syntax for type bigint: "sqlfence:nonce:conflict:2:7" (SQLSTATE 22P02)`, guard.Marker{Kind: guard.Conflict, Table: 2, Current: 7}},
		{"conflict, negative", `bad JSON path: 'sqlfence:nonce:conflict:0:-7'`, guard.Marker{Kind: guard.Conflict, Current: -7}},
		{"conflict, numeric", `pq: invalid input syntax for type bigint: "sqlfence:nonce:conflict:0:7.00"`, guard.Marker{Kind: guard.Conflict, Current: 7}},
		{"gone", `pq: invalid input syntax for type bigint: "sqlfence:nonce:gone:0:1" (22P02)`, guard.Marker{Kind: guard.Gone}},
		{"not a serial", `SQL logic error: bad JSON path: 'sqlfence:nonce:serial:1:it''s 7' (1)`, guard.Marker{Kind: guard.NotSerial, Table: 1, Found: "it's 7"}},
		{"locked, pgx", `ERROR: invalid input syntax for type bigint: "sqlfence:nonce:locked:1:1700000000123456:1700000001000000:ann" (SQLSTATE 22P02)`, guard.Marker{Kind: guard.Locked, Table: 1, Since: 1700000000123456, Expiry: 1700000001000000, By: "ann"}},
		{"locked, for ever", `bad JSON path: 'sqlfence:nonce:locked:0:1:9.22e+21:ann'`, guard.Marker{Kind: guard.Locked, Since: 1, By: "ann"}},
		{"locked, colons and quotes", `bad JSON path: 'sqlfence:nonce:locked:0:0:-5:o''neill:1'`, guard.Marker{Kind: guard.Locked, Expiry: -5, By: "o'neill:1"}},
		{"wrapped", `create order: ERROR: invalid input syntax for type bigint: "sqlfence:nonce:stale:1:9" (SQLSTATE 22P02)`, guard.Marker{Kind: guard.Stale, Token: 1, Current: 9}},
	} {
		values := func() *Values { return values }
		if got, ok := reader(t, databases.SQLite).ReadMarker(errors.New(tt.message), values); !ok || got != tt.want {
			t.Errorf("%s: got %+v, %v, want %+v", tt.name, got, ok, tt.want)
		}
	}
}

func TestReadMarkerRefuses(t *testing.T) {
	for _, message := range []string{
		"",
		"sqlfence",
		"sqlfence:",
		"sqlfence:nonce:stale",
		"sqlfence:nonce:claim:0:x:1",
		"sqlfence:nonce:claim:0:0",
		"sqlfence:nonce:unproven:0:x:1",
		"sqlfence:nonce:unproven:0",
		"sqlfence:nonce:stale:",
		"sqlfence:nonce:stale:0",
		"sqlfence:nonce:stale:0:",
		"sqlfence:nonce:stale:0:x",
		"sqlfence:nonce:stale::9",
		"sqlfence:nonce:stale:x:9",
		"sqlfence:nonce:stale: 0:9",
		"sqlfence:nonce:stale:99999999999999999999:9",
		"sqlfence:nonce:stale:0:99999999999999999999",
		"sqlfence:nonce:stale:0:--9",
		"sqlfence:nonce:ledger:0:",
		"sqlfence:nonce:ledger:0:x",
		"function pg_catalog.int8le(real, bigint) does not exist",
		"sqlfence:nonce:conflict:0:",
		"sqlfence:nonce:conflict:0:--7",
		"sqlfence:nonce:conflict:0:x",
		"sqlfence:nonce:conflict:x:7",
		"sqlfence:nonce:gone:x:7",
		"sqlfence:nonce:locked:0:",
		"sqlfence:nonce:locked:0:1:ann",
		"sqlfence:nonce:fresh:0:9",
		"sqlfence:nonce:STALE:0:9",
		"SQLFENCE:nonce:stale:0:9",
		"sqlfence:stale:0:9",
		"sqlfence:other:stale:0:9",
		"sqlfence:nonce2:stale:0:9",
		"sqlfence:NONCE:stale:0:9",
		`ERROR: duplicate key value violates unique constraint "books_pkey" (SQLSTATE 23505)`,
		`UNIQUE constraint failed: books.id`,
	} {
		if got, ok := reader(t, databases.Postgres).ReadMarker(errors.New(message), nil); ok {
			t.Errorf("%q: got %+v", message, got)
		}
	}
}

// MySQL servers don't escape quotes in the values that they show, and the guard pads the value.
func TestMarkerOfMySQLWithQuotes(t *testing.T) {
	const text = "Identifier name 'sqlfence:nonce:locked:0:1:2:o'neill's '' ......................................' is too long"
	if m, ok := reader(t, databases.MySQL).ReadMarker(errors.New(text), nil); !ok || m.By != "o'neill's ''" {
		t.Errorf("by %q, %t", m.By, ok)
	}
}

type (
	postgresError struct{ state, text string }
	sqliteError   struct {
		code int
		text string
	}
	mysqlError struct {
		Number  uint16
		Message string
	}
)

func (e postgresError) Error() string    { return e.text }
func (e postgresError) SQLState() string { return e.state }
func (e sqliteError) Error() string      { return e.text }
func (e sqliteError) Code() int          { return e.code }
func (e *mysqlError) Error() string      { return e.Message }

// TestMarkerNeedsItsCode: an error with another code may quote a value or the statement, so it has no marker.
func TestMarkerNeedsItsCode(t *testing.T) {
	const text = `error: "sqlfence:nonce:stale:0:9"`
	for _, tt := range []struct {
		d    databases.Dialect
		err  error
		want bool
	}{
		{databases.Postgres, postgresError{"22P02", text}, true},
		{databases.Postgres, postgresError{"23505", text}, false},
		{databases.Postgres, postgresError{"42883", text}, false},
		{databases.Postgres, postgresError{"P0001", text}, false},
		{databases.SQLite, sqliteError{1, text}, true},
		{databases.SQLite, sqliteError{1 | 3<<8, text}, true},
		{databases.SQLite, sqliteError{2067, text}, false},
		{databases.SQLite, sqliteError{19, text}, false},
		{databases.MySQL, &mysqlError{1059, text}, true},
		{databases.MySQL, &mysqlError{3057, text}, true},
		{databases.MySQL, &mysqlError{4163, text}, true},
		{databases.MySQL, &mysqlError{1062, text}, false},
		{databases.MySQL, &mysqlError{1366, text}, false},
		{databases.MySQL, &mysqlError{1690, text}, false},
	} {
		wrapped := fmt.Errorf("wrapped: %w", errors.Join(errors.New("before"), tt.err))
		for _, err := range []error{tt.err, wrapped} {
			m, ok := reader(t, tt.d).ReadMarker(err, nil)
			if ok != tt.want || ok && (m != guard.Marker{Kind: guard.Stale, Current: 9}) {
				t.Errorf("%v, %#v: %+v, %t", tt.d, err, m, ok)
			}
		}
		// Text that a wrapper writes before the error, such as the statement, isn't read.
		stated := fmt.Errorf("sqlfence:nonce:stale:0:', %w", tt.err)
		if m, ok := reader(t, tt.d).ReadMarker(stated, nil); ok != tt.want || ok && m.Current != 9 {
			t.Errorf("%v, %v: %+v, %t", tt.d, stated, m, ok)
		}
		if m, ok := reader(t, tt.d).ReadMarker(fmt.Errorf("%s: %w", text, errors.New("of no driver that is known")), nil); !ok || m.Current != 9 {
			t.Errorf("%v, without a code: %+v, %t", tt.d, m, ok)
		}
	}
}

// TestColumnOfAnotherType: an application's failed cast to regprocedure has the same code, so the reader compares the
// text, too.
func TestColumnOfAnotherType(t *testing.T) {
	for text, want := range map[string]bool{
		`ERROR: function pg_catalog.int8le(real, bigint) does not exist (SQLSTATE 42883)`:   true,
		`pq: Funktion pg_catalog.int8eq(numeric, bigint) existiert nicht`:                   true,
		`pq: function pg_catalog.int8abs(numeric) does not exist (42883)`:                   true,
		`ОШИБКА: функция pg_catalog.int8lt(real, bigint) не существует (SQLSTATE 42883)`:    true,
		`ERROR: function pg_catalog.int8mul(real, bigint) does not exist (SQLSTATE 42883)`:  false,
		`ERROR: function "pg_catalog.int8le(real, bigint)" does not exist (SQLSTATE 42883)`: false,
		`ERROR: function "" pg_catalog.int8le(" (text)" does not exist (SQLSTATE 42883)`:    false,
		`FEHLER: Funktion »x pg_catalog.int8le(« (text) existiert nicht (SQLSTATE 42883)`:   false,
		`ERROR: function books.int8le(real, bigint) does not exist (SQLSTATE 42883)`:        false,
	} {
		if m, ok := reader(t, databases.Postgres).ReadMarker(fmt.Errorf("wrapped: %w", postgresError{"42883", text}), nil); ok != want || ok && m.Kind != guard.NotInteger {
			t.Errorf("%s: %+v, %t", text, m, ok)
		}
		if m, ok := reader(t, databases.Postgres).ReadMarker(postgresError{"22P02", text}, nil); ok {
			t.Errorf("%s with another code: %+v", text, m)
		}
		for _, d := range []databases.Dialect{databases.SQLite, databases.MySQL} {
			if m, ok := reader(t, d).ReadMarker(errors.New(text), nil); ok {
				t.Errorf("%v, %s: %+v", d, text, m)
			}
		}
	}
}

// TestNonceOfARewriter shows that each rewriter has a separate nonce, and that the rewriter with the ledger's function
// keeps the nonce of its original.
func TestNonceOfARewriter(t *testing.T) {
	defer nonce.Fix(testNonce)
	var texts []string
	for i := range 2 {
		nonce.Fix(fmt.Sprint("N", i))
		r, err := New(databases.Postgres, []Table{{Name: "books", FenceColumn: "fence_token", Ledger: true}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*Rewriter{r, r.WithLedgerFunction("public")} {
			text := standard(t, r.Plan("UPDATE books SET price = 1"))
			marker := fmt.Sprintf("sqlfence:N%d:stale:0:", i)
			if !strings.Contains(text, marker) || strings.Contains(text, fmt.Sprint("N", 1-i)) {
				t.Errorf("%s", text)
			}
			if m, ok := r.ReadMarker(errors.New(marker+"9"), nil); !ok || m.Current != 9 {
				t.Errorf("%+v, %t", m, ok)
			}
			if !r.Marks(text) || r.Marks("UPDATE books SET owner = 'sqlfence:stale:0:9'") {
				t.Error("what has the nonce")
			}
			texts = append(texts, text)
		}
	}
	if strings.ReplaceAll(texts[1], "N0", "N1") != texts[3] || !strings.Contains(texts[1], "'N0'::pg_catalog.text") {
		t.Errorf("with the function:\n%s\n%s", texts[1], texts[3])
	}
}
