package rewrite

import (
	"strings"
	"testing"
)

// show writes tokens as kind and text, one letter a kind.
func show(d Dialect, sql string) string {
	toks, err := lex(d, sql, nil)
	if err != nil {
		return "error: " + err.reason
	}
	var parts []string
	for _, t := range toks[:len(toks)-1] {
		parts = append(parts, string(" wqtnpc"[t.kind])+":"+sql[t.start:t.end])
	}
	return strings.Join(parts, " ")
}

// The letters are: w word, q quoted name, t text, n number, p placeholder, c
// punctuation.
func TestLexPostgres(t *testing.T) {
	for in, want := range map[string]string{
		`a_1$ é _x`:               `w:a_1$ w:é w:_x`,
		`$1$2 $x$y$x$ $$z$$`:      `p:$1 p:$2 t:$x$y$x$ t:$$z$$`,
		`1.5 .5 1..2 1e5 0x1F`:    `n:1.5 n:.5 n:1 c:. n:.2 n:1 w:e5 n:0 w:x1F`,
		`E'\'' e'a''\\' N'b'`:     `t:E'\'' t:e'a''\\' t:N'b'`,
		`B'01' x'1F' U&'a' U&"b"`: `t:B'01' t:x'1F' t:U&'a' q:U&"b"`,
		`u & "b"`:                 `w:u c:& q:"b"`,
		`ue'a'`:                   `w:ue t:'a'`,
		"E'a'\n'\\''":             "t:E'a'\n'\\''",
		"E'a' -- b\n '\\''":       "t:E'a' -- b\n '\\''",
		"x'0'\n'\\' b''--\n'\\'":  "t:x'0'\n'\\' t:b''--\n'\\'",
		"U&'a'\n'\\'":             "t:U&'a'\n'\\'",
		`a<--b`:                   `w:a c:<`,
		`a+/*b*/c`:                `w:a c:+ w:c`,
		`a*/*/*x*/*/b`:            `w:a c:* w:b`,
		`/*/*x*/*/`:               ``,
		"--a\rb":                  `w:b`,
		`"a""b"`:                  `q:"a""b"`,
		`a[1]::text`:              `w:a c:[ n:1 c:] c:: c:: w:text`,
		`x ? y ?| z @> :a`:        `w:x c:? w:y c:? c:| w:z c:@ c:> c:: w:a`,
		`'a\nb'`:                  `t:'a\nb'`,
		`'\''`:                    `error: a backslash before a quote reads in two ways, by standard_conforming_strings; pass the value as an argument or write E'...'`,
		`$a`:                      `error: "$" has no meaning here`,
		`$a$ $A$`:                 `error: a dollar-quoted string is never closed`,
		`E'\`:                     `error: a string is never closed`,
		`(]`:                      `error: a bracket closes what was never opened`,
		`)`:                       `error: a bracket closes what was never opened`,
		`((`:                      `error: a bracket is never closed`,
		`/*/`:                     `error: a comment is never closed`,
		"a\x00":                   `error: it holds a NUL byte; drivers cut the text there`,
		"a\xc3":                   `error: it is not valid UTF-8`,
	} {
		if got := show(Postgres, in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestLexSQLite(t *testing.T) {
	for in, want := range map[string]string{
		"[a]]":              "error: a bracket closes what was never opened",
		"[a(] `b``c` \"d\"": "q:[a(] q:`b``c` q:\"d\"",
		`? ?12 ?a`:          `p:? p:?12 p:? w:a`,
		`:a @b $c #d`:       `p::a p:@b p:$c p:#d`,
		`:a::b(c) $a::(d)`:  `p::a::b(c) p:$a::(d)`,
		`:1 $1 @1`:          `p::1 p:$1 p:@1`,
		`:a(b c)`:           `error: a placeholder's suffix is never closed`,
		`:(a)`:              `error: ':' has no meaning here`,
		`$`:                 `error: '$' has no meaning here`,
		`x'1F' X'' b'01'`:   `t:x'1F' t:X'' w:b t:'01'`,
		`'\' 'a''b'`:        `t:'\' t:'a''b'`,
		"\ufeffa\ufeffb":    "w:a\ufeffb",
		"a \ufeff b":        "w:a w:b",
		"--a\rb\nc":         "w:c",
		"/*/**/a":           "w:a",
		"/* /* */ a":        "w:a",
		"a /* b":            "w:a",
		"a /*/ b":           "w:a",
		"a->>'$.b'":         "w:a c:- c:> c:> t:'$.b'",
		"$$":                "p:$$",
	} {
		if got := show(SQLite, in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

// checkTokens checks what holds for the tokens of every text.
func checkTokens(t testing.TB, sql string, toks []token) {
	t.Helper()
	last := int32(0)
	for i, tok := range toks {
		switch {
		case i == len(toks)-1:
			if tok.kind != end || int(tok.start) != len(sql) || int(tok.end) != len(sql) {
				t.Fatalf("%q: the last token is %+v", sql, tok)
			}
		case tok.start < last || tok.end <= tok.start || tok.kind == end:
			t.Fatalf("%q: token %d is %+v, after offset %d", sql, i, tok, last)
		}
		if tok.kind == punct && strings.IndexByte("([", tok.char) >= 0 {
			if m := toks[tok.mate]; int(tok.mate) <= i || int(m.mate) != i || strings.IndexByte(")]", m.char) < 0 {
				t.Fatalf("%q: the partner of token %d is %+v", sql, i, m)
			}
		}
		// Between tokens are blanks and comments.
		gap := sql[last:tok.start]
		if s := strings.TrimLeft(gap, " \t\n\v\f\r\ufeff"); s != "" && !strings.HasPrefix(s, "--") && !strings.HasPrefix(s, "/*") {
			t.Fatalf("%q: %q is in no token", sql, gap)
		}
		last = tok.end
	}
}

func TestTokensCoverTheText(t *testing.T) {
	eachSample(t, func(t *testing.T, d Dialect, s *sample, _ string) {
		if toks, err := lex(d, s.sql, nil); err == nil {
			checkTokens(t, s.sql, toks)
		} else if err.offset < 0 || err.offset > len(s.sql) || err.reason == "" {
			t.Errorf("got %+v", err)
		}
	})
}

// What PostgreSQL might run with standard_conforming_strings off must not be
// taken for what it refuses then.
func TestRejectedEscaping(t *testing.T) {
	for in, want := range map[string]bool{
		`SELECT 'C:\'`:                          true,
		`SELECT 'a\' ; SELECT '`:                false,
		`SELECT 'a\', U&'b'`:                    true,
		`SELECT 'a\' \ '`:                       false,
		`SELECT 'a\' ' \ '`:                     true,
		"SELECT '\\'', x'0'\n'\\'":              false, // the continuation of x'0' has no escapes
		"SELECT '\\'', b'0' -- c\n'\\' -- ' \\": false,
		"SELECT '\\'', x'0' '\\'":               true,
		"SELECT '\\'', 'a'\n'\\'":               true,
		"SELECT '\\'', N'a'\n'\\'":              true,
	} {
		if got := rejectedEscaping(in); got != want {
			t.Errorf("%s: got %v, want %v", in, got, want)
		}
	}
}
