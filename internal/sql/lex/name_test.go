package lex

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestParseName(t *testing.T) {
	long := strings.Repeat("b", 70)
	for _, tt := range []struct {
		r            *Rules
		in           string
		schema, name string
	}{
		{Postgres, `books`, "", "books"},
		{Postgres, ` Shop.BOOKS `, "shop", "books"},
		{Postgres, `"Books"`, "", "Books"},
		{Postgres, `shop."a""b"`, "shop", `a"b`},
		{Postgres, `db.shop.books`, "shop", "books"},
		{Postgres, `U&"\0062ooks"`, "", "books"},
		{Postgres, `u&"\+000062o\\oks"`, "", `bo\oks`},
		{Postgres, `U&"\d83d\de00\zz00"`, "", "\U0001F600"},
		{Postgres, `été`, "", "été"},
		{Postgres, `"ÉTÉ"`, "", "ÉTÉ"},
		{Postgres, `/* the */ books -- table`, "", "books"},
		{Postgres, long, "", long[:63]},
		{Postgres, `"` + long + `"`, "", long[:63]},
		{Postgres, strings.Repeat("é", 40), "", strings.Repeat("é", 31)}, // not half a letter
		{SQLite, `Books`, "", "books"},
		{SQLite, `"Main".[Books]`, "main", "books"},
		{SQLite, "`a``b`", "", "a`b"},
		{SQLite, `'bo''oks'`, "", "bo'oks"},
		{SQLite, `[a"b]`, "", `a"b`},
		{SQLite, `ÉTÉ`, "", "ÉtÉ"}, // folds ASCII only
		{SQLite, long, "", long},
		{MySQL, "Books", "", "books"},
		{MySQL, "`Shop`.`Bo``oks`", "shop", "bo`oks"},
		{MySQL, `"Books"`, "", "books"},
		{MySQL, `shop . 1books`, "shop", "1books"},
		{MySQL, "`été`", "", "été"},
		{MySQL, long, "", long},
	} {
		schema, name, err := tt.r.ParseName(tt.in)
		if err != nil || schema != tt.schema || name != tt.name {
			t.Errorf("%s: got %q, %q, %v, want %q, %q", tt.in, schema, name, err, tt.schema, tt.name)
		}
	}
}

func TestParseNameRefuses(t *testing.T) {
	for _, tt := range []struct {
		r  *Rules
		in string
	}{
		{Postgres, ""}, {Postgres, " "}, {Postgres, "."}, {Postgres, "a."}, {Postgres, ".a"}, {Postgres, "a..b"},
		{Postgres, "a.b.c.d"}, {Postgres, "a b"}, {Postgres, "a;"}, {Postgres, `""`}, {Postgres, `"a`}, {Postgres, "'books'"},
		{Postgres, "1a"}, {Postgres, "[a]"}, {Postgres, "`a`"}, {Postgres, "a\x00"}, {Postgres, "ÉTÉ"}, {Postgres, `a."b".İ`}, {Postgres, "\xff"}, {Postgres, "$1"},
		{SQLite, ""}, {SQLite, "a-b"}, {SQLite, "[a"}, {SQLite, "x'00'"}, {SQLite, "?"}, {SQLite, "''"}, {SQLite, "books b"}, {SQLite, "a.b.c"},
		{MySQL, ""}, {MySQL, "a.b.c"}, {MySQL, "'books'"}, {MySQL, "``"}, {MySQL, "ÉTÉ"}, {MySQL, "12"}, {MySQL, "@a"}, {MySQL, "a.`b"}, {MySQL, "$a"},
		{MySQL, "`bo?ks`"}, {MySQL, "`sh?p`.books"},
	} {
		if schema, name, err := tt.r.ParseName(tt.in); err == nil {
			t.Errorf("%q: got %q, %q", tt.in, schema, name)
		}
	}
	if _, _, err := Postgres.ParseName(strings.Repeat("x ", 1e5)); err == nil || len(err.Error()) > 300 {
		t.Errorf("the error repeats all of a long name: %.400v", err)
	}
}

func TestParseColumn(t *testing.T) {
	if name, err := Postgres.ParseColumn(`"Fence Token"`); err != nil || name != "Fence Token" {
		t.Errorf("got %q, %v", name, err)
	}
	for _, in := range []string{"books.fence", "", "a,b", "sum(a)"} {
		if name, err := SQLite.ParseColumn(in); err == nil {
			t.Errorf("%q: got %q", in, name)
		}
	}
}

// TestIsName shows that IsName agrees with Name for every token.
func TestIsName(t *testing.T) {
	const sql = "a \"b\" 'c' x'00' 1 (1)"
	for _, r := range []*Rules{Postgres, SQLite, MySQL} {
		toks, err := Scan(r, sql, EscapesUnknown, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tok := range toks {
			if _, ok := r.Name(sql, &tok); ok != r.IsName(sql, &tok) {
				t.Errorf("%s: %v", sql[tok.Start:tok.End], ok)
			}
		}
	}
}

func TestFoldedByLocale(t *testing.T) {
	if _, ok := Postgres.FoldedByLocale("books", &Token{Kind: Word, End: 5}); ok {
		t.Error("ASCII is folded alike everywhere")
	}
	for _, tt := range []struct {
		word, known string
		want        bool
	}{
		{"BÜCHER", "bücher", true}, {"bÜcher", "bücher", true}, {"bücher", "bücher", false}, {"BÜCHEREI", "bücher", false},
		{"BÜCHE", "bücher", false}, {`"BÜCHER"`, "bücher", false}, {"BUCHER", "bücher", false}, {"İSSUES", "issues", true},
		{"FENCİNG_TOKENS", "fencing_tokens", true}, {"BÜCHER", "", false},
	} {
		for r, want := range map[*Rules]bool{Postgres: tt.want, SQLite: false} {
			toks, err := Scan(r, tt.word, EscapesUnknown, nil)
			if err != nil {
				t.Fatal(err)
			}
			name, ok := r.FoldedByLocale(tt.word, &toks[0])
			got := ok && name != tt.known && strings.Map(FoldRune, name) == strings.Map(FoldRune, tt.known)
			if got != want {
				t.Errorf("%s, %s: %v", tt.word, tt.known, got)
			}
		}
	}
}

// In a dialect that folds quoted names, too, the locale may fold a quoted name with letters beyond ASCII.
func TestQuotedIsFoldedByLocale(t *testing.T) {
	for word, want := range map[string]bool{"`BÜCHER`": true, `"BÜCHER"`: true, "bÜCHER": true, "`books`": false, "'BÜCHER'": false} {
		toks, err := Scan(MySQL, word, EscapesUnknown, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := MySQL.FoldedByLocale(word, &toks[0]); ok != want {
			t.Errorf("%s: %v", word, ok)
		}
	}
}

func TestHasPrefixFold(t *testing.T) {
	for _, tt := range []struct {
		s, name string
		want    bool
	}{
		{"Books b", "books", true}, {"book", "books", false}, {"brooks", "books", false}, {"BÜCHER x", "bücher", true},
		{"İSSUES", "issues", true}, {"bü", "bücher", false}, {"", "a", false}, {"a", "", true}, {"bo", "books", false}, {"ü", "üb", false},
	} {
		if got := HasPrefixFold(tt.s, tt.name); got != tt.want {
			t.Errorf("%q, %q: %v", tt.s, tt.name, got)
		}
	}
}

func TestFirstBytes(t *testing.T) {
	for name, want := range map[string]string{"books": "bB", "issues": "iI\xc4", "über": "\xc3\xc3", "_a": "_", "key": "kK\xe2"} {
		got := FirstBytes(name)
		slices.Sort(got)
		sorted := []byte(want)
		slices.Sort(sorted)
		if string(got) != string(sorted) {
			t.Errorf("%s: %q, want %q", name, got, sorted)
		}
	}
}

// TestFirstBytesOfAllLetters shows that FirstBytes includes the first byte of each letter that some locale folds to the
// first letter of a name.
func TestFirstBytesOfAllLetters(t *testing.T) {
	alike := map[rune][]rune{} // the letters that fold to another one, which is the key
	for c := rune(1); c <= unicode.MaxRune; c++ {
		if !utf8.ValidRune(c) {
			continue
		}
		if folded := FoldRune(c); folded != c {
			alike[folded] = append(alike[folded], c)
		}
		if s := string(c); !slices.Contains(FirstBytes(s), s[0]) {
			t.Errorf("%c begins with %x", c, s[0])
		}
	}
	for folded, letters := range alike {
		if FoldRune(folded) == folded {
			letters = append(letters, folded)
		}
		for _, c := range letters {
			first := FirstBytes(string(c))
			for _, other := range letters {
				if !slices.Contains(first, string(other)[0]) {
					t.Errorf("%c may be spelled %c, which begins with %x", c, other, string(other)[0])
				}
			}
		}
	}
}

func TestFold(t *testing.T) {
	for in, want := range map[string]string{"": "", "books": "books", "bOOKs1": "books1", "ÉTÉ": "ÉtÉ"} {
		if got := Fold(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
	if n := testing.AllocsPerRun(10, func() { Fold("books") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
