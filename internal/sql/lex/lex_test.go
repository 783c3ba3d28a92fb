package lex

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// show writes tokens as kind and text, one letter a kind.
func show(r *Rules, sql string) string {
	toks, err := Scan(r, sql, EscapesUnknown, nil)
	if err != nil {
		return "error: " + err.Error()
	}
	var parts []string
	for _, t := range toks[:len(toks)-1] {
		parts = append(parts, string(" wqtnpcv"[t.Kind])+":"+sql[t.Start:t.End])
	}
	return strings.Join(parts, " ")
}

// The keys are texts, the values are their tokens. The letters are: w word, q quoted name, t text, n number, p
// placeholder, c punctuation, v variable.
var (
	postgresTexts = map[string]string{
		`a_1$ é _x`:               `w:a_1$ w:é w:_x`,
		`$1$2 $x$y$x$ $$z$$`:      `p:$1 p:$2 t:$x$y$x$ t:$$z$$`,
		`1.5 .5 1..2 1e5 0x1F`:    `n:1.5 n:.5 n:1 c:. n:.2 n:1 w:e5 n:0 w:x1F`,
		`E'\'' e'a''\\' N'b'`:     `t:E'\'' t:e'a''\\' t:N'b'`,
		`B'01' x'1F' U&'a' U&"b"`: `t:B'01' t:x'1F' t:U&'a' q:U&"b"`,
		`u & "b"`:                 `w:u c:& q:"b"`,
		`u&b a&"b"`:               `w:u c:& w:b w:a c:& q:"b"`,
		`ue'a' t'a'`:              `w:ue t:'a' w:t t:'a'`,
		"E'a'\n'\\''":             "t:E'a'\n'\\''",
		"E'a' -- b\n '\\''":       "t:E'a' -- b\n '\\''",
		"E'a' -":                  "t:E'a' c:-",
		"E'a' ":                   "t:E'a'",
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
		`'a\nb' 'a\\' 'a\\'' b'`:  `t:'a\nb' t:'a\\' t:'a\\'' b'`,
		"`a`":                     "c:` w:a c:`",

		`'\''`:                      "error: " + AmbiguousBackslash,
		`'é\\'''`:                   "error: its meaning depends on client_encoding; pass the value as an argument, or put a blank or quotes before this byte",
		`E'é\n' E'Menü\\x\''`:       `t:E'é\n' t:E'Menü\\x\''`,
		`E'é\'`:                     "error: its meaning depends on client_encoding; pass the value as an argument, or put a blank or quotes before this byte",
		`é(1) é,`:                   `w:é c:( n:1 c:) w:é c:,`,
		`é[1]`:                      "error: its meaning depends on client_encoding; pass the value as an argument, or put a blank or quotes before this byte",
		`$a`:                        `error: unexpected "$"`,
		`$a$ $A$`:                   `error: a dollar-quoted string is never closed`,
		`E'\`:                       `error: a string is never closed`,
		`"a`:                        `error: a quoted name is never closed`,
		`U&"!0062" UESCAPE '!'`:     `error: a name spelled with UESCAPE isn't supported; write it in double quotes`,
		`(]`:                        `error: a closing bracket has no opening one`,
		`)`:                         `error: a closing bracket has no opening one`,
		`((`:                        `error: a bracket is never closed`,
		`/*/`:                       `error: a comment is never closed`,
		"a\x00":                     `error: it contains a NUL byte, where drivers would cut the text`,
		"a\xc3":                     `error: it is not valid UTF-8`,
		"\u00a0a " + "\ufeff" + "b": "w:\u00a0a w:\ufeffb",
	}
	sqliteTexts = map[string]string{
		"[a]]":              "error: a closing bracket has no opening one",
		"[a(] `b``c` \"d\"": "q:[a(] q:`b``c` q:\"d\"",
		`? ?12 ?a`:          `p:? p:?12 p:? w:a`,
		`:a @b $c #d`:       `p::a p:@b p:$c p:#d`,
		`:a::b(c) $a::(d)`:  `p::a::b(c) p:$a::(d)`,
		`:1 $1 @1`:          `p::1 p:$1 p:@1`,
		`:a(b c)`:           `error: a placeholder's suffix is never closed`,
		`:(a)`:              `error: unexpected ':'`,
		`$`:                 `error: unexpected '$'`,
		"a\u00a0":           "error: the blank U+00A0 is outside of quotes, where drivers may cut it off a name; write a plain blank, or put the name in quotes",
		":é\u2003":          "error: the blank U+2003 is outside of quotes, where drivers may cut it off a name; write a plain blank, or put the name in quotes",
		`x'1F' X'' b'01'`:   `t:x'1F' t:X'' w:b t:'01'`,
		`e'a' u&'b'`:        `w:e t:'a' w:u c:& t:'b'`,
		`'\' 'a''b'`:        `t:'\' t:'a''b'`,
		"\ufeffa\ufeffb":    "w:a\ufeffb",
		"a \ufeff b":        "w:a w:b",
		"1 \ufeff2\n":       "n:1 n:2",
		"a = .5\ufeff":      "error: SQLite takes a byte order mark right behind a number for a part of it; put a blank between them",
		"--a\rb\nc":         "w:c",
		"/*/**/a":           "w:a",
		"/* /* */ a":        "w:a",
		"a /* b":            "w:a",
		"a /*/ b":           "w:a",
		"a->>'$.b'":         "w:a c:- c:> c:> t:'$.b'",
		"$$":                "p:$$",
	}
	mysqlTexts = map[string]string{
		"`a``b` `` `a\\`":            "q:`a``b` q:`` q:`a\\`",
		`'a''b' "c""d" "e'f" 'g"'`:   `t:'a''b' t:"c""d" t:"e'f" t:'g"'`,
		`'a\\' "b\\" 'c\"' "d\'"`:    `t:'a\\' t:"b\\" t:'c\"' t:"d\'"`,
		`'a\n' 'b\\c' '\\\\'`:        `t:'a\n' t:'b\\c' t:'\\\\'`,
		`'é\n' 'Menü\\x' "é\\é"`:     `t:'é\n' t:'Menü\\x' t:"é\\é"`,
		`x'1F' X'' b'01' B'1'`:       `t:x'1F' t:X'' t:b'01' t:B'1'`,
		`n'a' N'b\\' _utf8'c'`:       `t:n'a' t:N'b\\' w:_utf8 t:'c'`,
		`n"a" x"1"`:                  `w:n t:"a" w:x t:"1"`,
		`'a' 'b'`:                    `t:'a' t:'b'`,
		`1 1.5 .5 1. 1e5 1.5E-3`:     `n:1 n:1.5 n:.5 n:1. n:1e5 n:1.5E-3`,
		`0x1F 0b01 0b2 0X1F 0x 0xg`:  `n:0x1F n:0b01 w:0b2 w:0X1F w:0x w:0xg`,
		`0x1Fg 0b01_ 1e5`:            `w:0x1Fg w:0b01_ n:1e5`,
		`1a 1ea 1e 1e+ 2_x 3é 1$`:    `w:1a w:1ea w:1e w:1e c:+ w:2_x w:3é w:1$`,
		`1..2 1.2.3 5'a'`:            `n:1. n:.2 n:1.2 n:.3 n:5 t:'a'`,
		`a.1b a.5 a.1e5 a.b.0x1`:     `w:a c:. w:1b w:a c:. w:5 w:a c:. w:1e5 w:a c:. w:b c:. w:0x1`,
		`a .5 a. 5 (.5)`:             `w:a n:.5 w:a c:. n:5 c:( n:.5 c:)`,
		"`a`.b .c":                   "q:`a` c:. w:b c:. w:c",
		`? ?,?`:                      `p:? p:? c:, p:?`,
		`@a @a.b_$1 @'a b' @"c"`:     `v:@a v:@a.b_$1 v:@'a b' v:@"c"`,
		"@`a b` @@a @@`b` @@a.b":     "v:@`a b` v:@@a v:@@`b` v:@@a c:. w:b",
		`@a:=1`:                      `v:@a c:: c:= n:1`,
		`u@localhost 'a'@'b'`:        `w:u v:@localhost t:'a' v:@'b'`,
		`a$b é _x`:                   `w:a$b w:é w:_x`,
		`a->>'$.b' <=> ^ !a {d 'x'}`: `w:a c:- c:> c:> t:'$.b' c:< c:= c:> c:^ c:! w:a c:{ w:d t:'x' c:}`,
		"a -- b\nc":                  "w:a w:c",
		"a --\nb":                    "w:a w:b",
		"a --\tb":                    "w:a",
		"a --\x7fb":                  "w:a",
		"a --":                       "w:a",
		"a--b":                       "w:a c:- c:- w:b",
		"a---- b":                    "w:a c:- c:-",
		"a --\rb\nc":                 "w:a w:c",
		"a # b\rc\nd":                "w:a w:d",
		"a#":                         "w:a",
		"a/* /* */b":                 "w:a w:b",
		"a /*+ b(c) */ d":            "w:a w:d",
		"a /* ! M! */ b":             "w:a w:b",
		"\u00e9\u00e1":               "w:\u00e9\u00e1",
		"\ufeffa":                    "w:\ufeffa",

		`'a\''`:           "error: " + AmbiguousQuote,
		`"a\""`:           "error: " + AmbiguousQuote,
		`'\\\''`:          "error: " + AmbiguousQuote,
		`N'\''`:           "error: " + AmbiguousQuote,
		`'é\'`:            "error: its meaning depends on character_set_client; pass the value as an argument, or put a blank or quotes before this byte",
		`'é\\' 'a'`:       "error: its meaning depends on character_set_client; pass the value as an argument, or put a blank or quotes before this byte",
		"a--é":            "error: its meaning depends on character_set_client; pass the value as an argument, or put a blank or quotes before this byte",
		"aà":              "error: its meaning depends on character_set_client; pass the value as an argument, or put a blank or quotes before this byte",
		"a /*! b */":      "error: " + executable,
		"a /*!50000 b */": "error: " + executable,
		"a /*M! b */":     "error: " + executable,
		"a /*T! b */":     "error: " + executable,
		"a /*t![x] b */":  "error: " + executable,
		"a /*m!99 b */":   "error: " + executable,
		"/*+ a(`*/`) */":  "error: " + quotesInHint,
		"/*+ a('b') */":   "error: " + quotesInHint,

		"/*vt+ A=1 */ a": "error: " + inDirective,
		"a /*vt+*/":      "error: " + inDirective,

		"/*+ SET_VAR(tidb_dml_type=bulk) */": "error: " + tidbInHint,
		"/*+ a":                              "error: a comment is never closed",
		"/* a":                               "error: a comment is never closed",
		"$a":                                 "error: " + strangeByte,
		"$$ a $$":                            "error: " + strangeByte,
		"[a]":                                "error: " + strangeByte,
		`\N`:                                 "error: " + strangeByte,
		"`a`.5":                              "error: " + dotAfterQuotes,
		`"a".5b`:                             "error: " + dotAfterQuotes,
		"@a.`b`.5":                           "error: " + dotAfterQuotes,
		"@ a":                                "error: " + strangeVariable,
		"@é":                                 "error: " + strangeVariable,
		"@aé":                                "error: " + strangeVariable,
		"@@'a'":                              "error: " + strangeVariable,
		"@`a":                                "error: a quoted name is never closed",
		"@'a":                                "error: a string is never closed",
		`@'a\''`:                             "error: " + AmbiguousQuote,
		"?1":                                 `error: unexpected "?"`,
		"?a":                                 `error: unexpected "?"`,
		"`a":                                 "error: a quoted name is never closed",
		`"a`:                                 "error: a string is never closed",
		"(a":                                 "error: a bracket is never closed",
		"a)":                                 "error: a closing bracket has no opening one",
	}
)

func TestScan(t *testing.T) {
	for rules, texts := range map[*Rules]map[string]string{Postgres: postgresTexts, SQLite: sqliteTexts, MySQL: mysqlTexts} {
		for in, want := range texts {
			if got := show(rules, in); got != want {
				t.Errorf("%q: got %s, want %s", in, got, want)
			}
		}
	}
}

// TestLabelsMayBeKeywords: any word is a name after a dot or AS, also the word AS.
func TestLabelsMayBeKeywords(t *testing.T) {
	const sql = `a.where AS set b as as as "x" c`
	toks, err := Scan(Postgres, sql, EscapesUnknown, nil)
	if err != nil {
		t.Fatal(err)
	}
	var labels []string
	for _, tok := range toks {
		if tok.Label {
			labels = append(labels, sql[tok.Start:tok.End])
		}
	}
	if got := strings.Join(labels, " "); got != "where set as" {
		t.Errorf("got %s", got)
	}
}

// TestScanAppends shows that Scan appends tokens to the tokens in a reused buffer.
func TestScanAppends(t *testing.T) {
	buf := make([]Token, 0, 8)
	toks, err := Scan(SQLite, "a b", EscapesUnknown, buf)
	if err != nil || len(toks) != 3 || &toks[0] != &buf[:1][0] {
		t.Errorf("got %v, %v", toks, err)
	}
}

// checkTokens checks what holds for the tokens of every text.
func checkTokens(t testing.TB, sql string, toks []Token) {
	t.Helper()
	last := int32(0)
	for i, tok := range toks {
		switch {
		case i == len(toks)-1:
			if tok.Kind != End || int(tok.Start) != len(sql) || int(tok.End) != len(sql) {
				t.Fatalf("%q: the last token is %+v", sql, tok)
			}
		case tok.Start < last || tok.End <= tok.Start || tok.Kind == End:
			t.Fatalf("%q: token %d is %+v, after offset %d", sql, i, tok, last)
		}
		if tok.Is('(') || tok.Is('[') {
			if m := toks[tok.Mate]; int(tok.Mate) <= i || int(m.Mate) != i || strings.IndexByte(")]", m.Char) < 0 {
				t.Fatalf("%q: the partner of token %d is %+v", sql, i, m)
			}
		}
		// Between tokens are blanks and comments.
		gap := sql[last:tok.Start]
		if s := strings.TrimLeft(gap, " \t\n\v\f\r\ufeff"); s != "" && !strings.HasPrefix(s, "--") && !strings.HasPrefix(s, "/*") && !strings.HasPrefix(s, "#") {
			t.Fatalf("%q: %q is in no token", sql, gap)
		}
		last = tok.End
	}
}

func FuzzScan(f *testing.F) {
	for _, texts := range []map[string]string{postgresTexts, sqliteTexts, mysqlTexts} {
		for sql := range texts {
			f.Add(sql)
		}
	}
	f.Fuzz(func(t *testing.T, sql string) {
		for _, rules := range []*Rules{Postgres, SQLite, MySQL} {
			for _, escapes := range []Escapes{EscapesUnknown, EscapesNone, EscapesAll} {
				if toks, err := Scan(rules, sql, escapes, nil); err == nil {
					checkTokens(t, sql, toks)
				} else if err.Offset < 0 || err.Offset > len(sql) || err.Reason == "" {
					t.Errorf("%q: got %+v", sql, err)
				}
			}
		}
	})
}

func TestErrorOffset(t *testing.T) {
	for in, want := range map[string]int{
		"a \x00": 2, "ab\xff": 2, "\ufffd\xff": 3, `a '\''`: 3, "a (b": 2, "a /*": 2, "x 'a": 2, `a b)`: 3,
	} {
		if _, err := Scan(Postgres, in, EscapesUnknown, nil); err == nil || err.Offset != want {
			t.Errorf("%q: got %+v, want %d", in, err, want)
		}
	}
}

// A text that PostgreSQL might run with standard_conforming_strings off must not count as a text that PostgreSQL then
// refuses.
func TestNeedsSCSOn(t *testing.T) {
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
		if got := Postgres.NeedsSCSOn(in); got != want {
			t.Errorf("%s: got %v, want %v", in, got, want)
		}
	}
}

func TestSCSOn(t *testing.T) {
	const sql = `SELECT 'C:\', 'a'`
	toks, err := Scan(Postgres, sql, EscapesNone, nil)
	if err != nil || len(toks) != 5 {
		t.Errorf("got %v, %v", toks, err)
	}
	if _, err = Scan(Postgres, sql, EscapesUnknown, nil); err == nil || err.Kind != Ambiguous {
		t.Errorf("got %+v", err)
	}
}

func TestSkipBlank(t *testing.T) {
	for _, tt := range []struct {
		r    *Rules
		in   string
		want int
		ok   bool
	}{
		{Postgres, "", 0, true}, {Postgres, " \t\n", 3, true}, {Postgres, "-- a", 4, true}, {Postgres, "--a\rb", 4, true},
		{Postgres, "/*/* */*/ a", 10, true}, {Postgres, "/* a", 4, false}, {Postgres, "a /* a", 0, true},
		{SQLite, "--a\rb", 5, true}, {SQLite, "/*/* */*/ a", 7, true}, {SQLite, "/* a", 4, true}, {SQLite, "\ufeffa", 3, true},
		{MySQL, "# a\n--b", 4, true}, {MySQL, "-- a", 4, true}, {MySQL, "/*! a */", 0, false},
	} {
		if n, ok := tt.r.SkipBlank(tt.in); n != tt.want || ok != tt.ok {
			t.Errorf("%q: got %d, %v", tt.in, n, ok)
		}
	}
}

// sameByMembers compares the tokens of a text with those of the same text with a tab after each comma. The tab makes
// the scanner leave its fast path for lists.
func sameByMembers(t *testing.T, r *Rules, text string) {
	t.Helper()
	text = strings.ReplaceAll(text, ",", ", ")
	got, err := Scan(r, text, EscapesUnknown, make([]Token, 0, 64))
	want, wantErr := Scan(r, strings.ReplaceAll(text, ", ", ",\t"), EscapesUnknown, make([]Token, 0, 64))
	if !reflect.DeepEqual(err, wantErr) {
		t.Fatalf("%q: %v, with tabs %v", text, err, wantErr)
	}
	for i := range got {
		if tok := &got[i]; tok.Kind == Param && tok.Mate > 0 {
			if n, err := strconv.Atoi(text[tok.Start+1 : tok.End]); err != nil || n != int(tok.Mate) {
				t.Fatalf("%q: %s has the number %d", text, text[tok.Start:tok.End], tok.Mate)
			}
			tok.Mate = 0
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%q:\n%+v\nwith tabs\n%+v", text, got, want)
	}
}

// TestMembersOfListsAreScannedAlike checks that the fast path for lists finds the same tokens.
func TestMembersOfListsAreScannedAlike(t *testing.T) {
	pieces := strings.Split("1|0|22|999999999|9999999999|$1|$0|$2147483648|$|?|?7|?a|:a|@a|1.5|.5|1.|1e5|0x1|1a|'a'|'a|a|(|)|[|]|,|,|,|,| | |-|--|/*|;|é", "|")
	r := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		text := ""
		for range r.IntN(10) {
			text += pieces[r.IntN(len(pieces))]
		}
		for _, d := range []*Rules{Postgres, SQLite, MySQL} {
			sameByMembers(t, d, text)
		}
	}
}

// FuzzMembers is TestMembersOfListsAreScannedAlike for any text.
func FuzzMembers(f *testing.F) {
	f.Add("SELECT $1, $2, 3, ?, ?4, 'a'")
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range []*Rules{Postgres, SQLite, MySQL} {
			sameByMembers(t, d, text)
		}
	})
}
