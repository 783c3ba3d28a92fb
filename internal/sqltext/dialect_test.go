package sqltext

import (
	"strings"
	"testing"
	"time"
)

func TestDialectsSpell(t *testing.T) {
	for _, test := range []struct {
		what                    string
		of                      func(d Dialect) string
		postgres, sqlite, mysql string
	}{
		{"a name", func(d Dialect) string { return d.Quote("a\"b`c") }, "\"a\"\"b`c\"", "`a\"b``c`", "`a\"b``c`"},
		{"a text", func(d Dialect) string { return d.Text("it's") }, "'it''s'", "'it''s'", "_utf8mb4 X'69742773'"},
		{"a backslash", func(d Dialect) string { return d.Text(`a\'`) }, `E'a\\'''`, `'a\'''`, `_utf8mb4 X'615c27'`},
		{"a plain text", func(d Dialect) string { return d.Text("a b") }, "'a b'", "'a b'", "_utf8mb4'a b'"},
		{"true", func(d Dialect) string { return d.Bool(true) }, "true", "1", "TRUE"},
		{"false", func(d Dialect) string { return d.Bool(false) }, "false", "0", "FALSE"},
		{"a placeholder", func(d Dialect) string { return placeholder(d, 12, Untyped) }, "$12", "?12", "?"},
		{"a placeholder of a text", func(d Dialect) string { return placeholder(d, 1, Text) }, "$1::pg_catalog.text", "?1", "?"},
		{"a placeholder of an integer", func(d Dialect) string { return placeholder(d, 2, Bigint) }, "$2::bigint", "?2", "?"},
		{"an integer", func(d Dialect) string { return d.Convert("a", Bigint) }, "CAST(a AS bigint)", "CAST(a AS bigint)", "CAST(a AS SIGNED)"},
		{"a text of it", func(d Dialect) string { return d.Convert("a", Text) }, "CAST(a AS pg_catalog.text)", "CAST(a AS text)", "CAST(a AS CHAR CHARACTER SET utf8mb4)"},
		{"as it is", func(d Dialect) string { return d.Convert("a", Untyped) }, "a", "a", "a"},
		{"a time to come", func(d Dialect) string { return d.After("5") },
			"pg_catalog.timestamptz_pl_interval(pg_catalog.clock_timestamp(), pg_catalog.mul_d_interval(5, interval '1 microsecond'))",
			"(CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) + 5)",
			"(CASE WHEN TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)) BETWEEN 0 AND 10000000 THEN " +
				"TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) ELSE CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED) END + 5)"},
		{"microseconds", func(d Dialect) string { return d.Micros("a - b") },
			"CASE WHEN pg_catalog.isfinite(a - b) THEN LEAST(extract(epoch FROM a - b) OPERATOR(pg_catalog.*) 1000000, 9223372036854774784) END::bigint",
			"CAST((a - b) * 1000 AS INTEGER)", "(a - b)"},
		{"a raise", func(d Dialect) string { return Throw(d, "'x:'", "t.a") },
			"pg_catalog.int8in(pg_catalog.textout(pg_catalog.concat('x:', t.a)))", "json_extract('{}', 'x:' || t.a)",
			"(18446744073709551615 + GREATEST(1, IS_FREE_LOCK(RPAD(COALESCE(CONVERT(CONCAT('x:', t.a, ' ') USING utf8mb4), _utf8mb4'-'), 200, _utf8mb4'.'))))"},
		{"a turn", func(d Dialect) string { return d.AdvisoryLock("$1", false) },
			"pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(pg_catalog.concat('sqlfence:', $1), 0))", "", ""},
		{"a shared turn", func(d Dialect) string { return d.AdvisoryLock("$1", true) },
			"pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended(pg_catalog.concat('sqlfence:', $1), 0))", "", ""},
	} {
		if got := test.of(Postgres); got != test.postgres {
			t.Errorf("%s in PostgreSQL:\n%s\nwant\n%s", test.what, got, test.postgres)
		}
		if got := test.of(SQLite); got != test.sqlite {
			t.Errorf("%s in SQLite:\n%s\nwant\n%s", test.what, got, test.sqlite)
		}
		if got := test.of(MySQL); got != test.mysql {
			t.Errorf("%s in MySQL:\n%s\nwant\n%s", test.what, got, test.mysql)
		}
	}
}

func TestTicksAreNeverShorter(t *testing.T) {
	for _, test := range []struct {
		d                time.Duration
		postgres, sqlite int64
	}{
		{0, 0, 0},
		{time.Nanosecond, 1, 1},
		{time.Millisecond, 1000, 1},
		{1500 * time.Microsecond, 1500, 2},
		{-1500 * time.Microsecond, -1500, -2},
		{-time.Nanosecond, -1, -1},
	} {
		if p, s := Postgres.Ticks(test.d), SQLite.Ticks(test.d); p != test.postgres || s != test.sqlite {
			t.Errorf("%v: %d and %d, want %d and %d", test.d, p, s, test.postgres, test.sqlite)
		}
	}
}

// Every dialect has the whole vocabulary, and nothing in it is empty.
func TestDialectsKnowTheSamePieces(t *testing.T) {
	for _, d := range All() {
		for _, name := range []string{"ledger", "now", "after x", "micros x", "text x", "bigint x", "start", "floor"} {
			if text, _ := Render(d, "{"+name+"}"); text == "" || strings.Contains(text, "{") {
				t.Errorf("%T: {%s} is %q", d, name, text)
			}
		}
	}
}

func placeholder(d Dialect, n int, t Type) string {
	b := Builder{Dialect: d}
	b.Placeholder(n, t)
	return b.String()
}

func TestFloorsHaveAStart(t *testing.T) {
	for _, d := range All() {
		if !strings.Contains(LowerBound(d), start(d)) {
			t.Errorf("%T: the floor is %s", d, LowerBound(d))
		}
	}
}
