package rewrite

import (
	"strings"
	"testing"
)

// The texts are those of real errors, in full.
func TestReadMarker(t *testing.T) {
	for _, tt := range []struct {
		name, message string
		want          Marker
	}{
		{"pgx", `ERROR: invalid input syntax for type bigint: "sqlfence:stale:0:9" (SQLSTATE 22P02)`, Marker{Kind: Stale, Current: 9}},
		{"lib/pq", `pq: invalid input syntax for type bigint: "sqlfence:stale:0:9"`, Marker{Kind: Stale, Current: 9}},
		{"lib/pq, new", `pq: invalid input syntax for type bigint: "sqlfence:stale:0:9" (22P02)`, Marker{Kind: Stale, Current: 9}},
		{"in another language", `FEHLER: ungültige Eingabesyntax für Typ bigint: »sqlfence:stale:0:9« (SQLSTATE 22P02)`, Marker{Kind: Stale, Current: 9}},
		{"mattn", `bad JSON path: 'sqlfence:stale:0:9'`, Marker{Kind: Stale, Current: 9}},
		{"modernc", `SQL logic error: bad JSON path: 'sqlfence:stale:0:9' (1)`, Marker{Kind: Stale, Current: 9}},
		{"old SQLite", `JSON path error near 'sqlfence:stale:0:9'`, Marker{Kind: Stale, Current: 9}},
		{"second token", `bad JSON path: 'sqlfence:stale:12:900000000000000'`, Marker{Kind: Stale, Token: 12, Current: 900000000000000}},
		{"mark of text", `bad JSON path: 'sqlfence:stale:0:000000000000042'`, Marker{Kind: Stale, Current: 42}},
		{"mark of a float", `bad JSON path: 'sqlfence:stale:0:42.0'`, Marker{Kind: Stale, Current: 42}},
		{"scope, pgx", `ERROR: invalid input syntax for type bigint: "sqlfence:scope:0:43" (SQLSTATE 22P02)`, Marker{Kind: OutOfScope, Key: "43"}},
		{"scope, modernc", `SQL logic error: bad JSON path: 'sqlfence:scope:0:43' (1)`, Marker{Kind: OutOfScope, Key: "43"}},
		{"scope, no key", `bad JSON path: 'sqlfence:scope:0:'`, Marker{Kind: OutOfScope}},
		{"scope, double quote in the key", `pq: invalid input syntax for type bigint: "sqlfence:scope:0:a"b"`, Marker{Kind: OutOfScope, Key: `a"b`}},
		{"scope, colons in the key", `bad JSON path: 'sqlfence:scope:0:a:b::c'`, Marker{Kind: OutOfScope, Key: "a:b::c"}},
		{"scope, a marker in the key", `bad JSON path: 'sqlfence:scope:0:sqlfence:stale:0:9'`, Marker{Kind: OutOfScope, Key: "sqlfence:stale:0:9"}},
		{"unknown", `ERROR: invalid input syntax for type bigint: "sqlfence:unknown:0:0" (SQLSTATE 22P02)`, Marker{Kind: UnknownName}},
		{"ledger, pgx", `ERROR: invalid input syntax for type bigint: "sqlfence:ledger:3:9" (SQLSTATE 22P02)`, Marker{Kind: NotNewest, Token: 3, Current: 9}},
		{"ledger, none yet", `bad JSON path: 'sqlfence:ledger:0:0'`, Marker{Kind: NotNewest}},
		{"ledger, negative", `SQL logic error: bad JSON path: 'sqlfence:ledger:0:-3' (1)`, Marker{Kind: NotNewest, Current: -3}},
		{"fence of another type", `ERROR: function pg_catalog.int8le(real, bigint) does not exist (SQLSTATE 42883)`, Marker{Kind: NotInteger}},
		{"ledger of another type", `pq: Funktion pg_catalog.int8eq(numeric, bigint) existiert nicht`, Marker{Kind: NotInteger}},
		{"conflict, pgx", `ERROR: invalid input syntax for type bigint: "sqlfence:conflict:2:7" (SQLSTATE 22P02)`, Marker{Kind: Conflict, Table: 2, Current: 7}},
		{"conflict, negative", `bad JSON path: 'sqlfence:conflict:0:-7'`, Marker{Kind: Conflict, Current: -7}},
		{"conflict, numeric", `pq: invalid input syntax for type bigint: "sqlfence:conflict:0:7.00"`, Marker{Kind: Conflict, Current: 7}},
		{"gone", `pq: invalid input syntax for type bigint: "sqlfence:gone:0:1" (22P02)`, Marker{Kind: Gone}},
		{"not a serial", `SQL logic error: bad JSON path: 'sqlfence:serial:1:it''s 7' (1)`, Marker{Kind: NotSerial, Table: 1, Found: "it's 7"}},
		{"locked, pgx", `ERROR: invalid input syntax for type bigint: "sqlfence:locked:1:1700000000123456:1700000001000000:ann" (SQLSTATE 22P02)`, Marker{Kind: Locked, Table: 1, Since: 1700000000123456, Expiry: 1700000001000000, By: "ann"}},
		{"locked, for ever", `bad JSON path: 'sqlfence:locked:0:1:9.22e+21:ann'`, Marker{Kind: Locked, Since: 1, By: "ann"}},
		{"locked, colons and quotes", `bad JSON path: 'sqlfence:locked:0:0:-5:o''neill:1'`, Marker{Kind: Locked, Expiry: -5, By: "o'neill:1"}},
		{"wrapped", `create order: ERROR: invalid input syntax for type bigint: "sqlfence:stale:1:9" (SQLSTATE 22P02)`, Marker{Kind: Stale, Token: 1, Current: 9}},
	} {
		if got, ok := ReadMarker(tt.message); !ok || got != tt.want {
			t.Errorf("%s: got %+v, %v, want %+v", tt.name, got, ok, tt.want)
		}
	}
}

func TestReadMarkerRefuses(t *testing.T) {
	for _, message := range []string{
		"",
		"sqlfence",
		"sqlfence:",
		"sqlfence:stale",
		"sqlfence:stale:",
		"sqlfence:stale:0",
		"sqlfence:stale:0:",
		"sqlfence:stale:0:x",
		"sqlfence:stale::9",
		"sqlfence:stale:x:9",
		"sqlfence:stale: 0:9",
		"sqlfence:stale:99999999999999999999:9",
		"sqlfence:stale:0:99999999999999999999",
		"sqlfence:stale:0:-9",
		"sqlfence:ledger:0:",
		"sqlfence:ledger:0:x",
		"function pg_catalog.int8mul(real, bigint) does not exist",
		"sqlfence:conflict:0:",
		"sqlfence:conflict:0:--7",
		"sqlfence:conflict:0:x",
		"sqlfence:conflict:x:7",
		"sqlfence:gone:x:7",
		"sqlfence:locked:0:",
		"sqlfence:locked:0:1:ann",
		"sqlfence:fresh:0:9",
		"sqlfence:STALE:0:9",
		"SQLFENCE:stale:0:9",
		`ERROR: duplicate key value violates unique constraint "books_pkey" (SQLSTATE 23505)`,
		`UNIQUE constraint failed: books.id`,
	} {
		if got, ok := ReadMarker(message); ok {
			t.Errorf("%q: got %+v", message, got)
		}
	}
}

// TestMarkersAreRead shows that what the guards raise is what is read back.
func TestMarkersAreRead(t *testing.T) {
	for _, d := range guardedDialects(t) {
		for kind, want := range map[string]MarkerKind{markerStale: Stale, markerLedger: NotNewest, markerScope: OutOfScope, markerUnknown: UnknownName,
			markerConflict: Conflict, markerGone: Gone, markerNotSerial: NotSerial} {
			w := newWriter(&source{dialect: dialects[d].says, plan: new(Plan)})
			defer w.release()
			w.raise(kind, 3, "x")
			_, marker, _ := strings.Cut(w.b.String(), "'sqlfence:")
			marker, _, _ = strings.Cut(marker, "'")
			if m, ok := ReadMarker("error: 'sqlfence:" + marker + "17'"); !ok || m.Kind != want || m.Token+m.Table != 3 {
				t.Errorf("%v, %s: got %+v, %v", d, kind, m, ok)
			}
		}
	}
}

// MySQL's servers quote nothing in what they show, and the guard pads it.
func TestMarkerOfMySQLWithQuotes(t *testing.T) {
	const text = "Identifier name 'sqlfence:locked:0:1:2:o'neill's '' ......................................' is too long"
	if m, ok := ReadMarker(text); !ok || m.By != "o'neill's ''" {
		t.Errorf("by %q, %t", m.By, ok)
	}
}
