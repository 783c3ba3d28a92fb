package rewrite

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/test/random"
	"github.com/sqlfence/sqlfence/rewrite/internal/advise"
	"github.com/sqlfence/sqlfence/rewrite/internal/render"
)

// everyByte is the control of the search: at each byte of a text it tries each name, also inside of other words.
type everyByte struct {
	starts, words []string
	whole         []string // the names that the starts stand for
	code          bool
	d             databases.Dialect
}

func newEveryByte(d databases.Dialect, tables []Table) *everyByte {
	e := &everyByte{starts: append(slices.Clone(render.OwnTables), sqltext.OwnPrefix), whole: slices.Clone(render.OwnTables[:]), d: d}
	for i := range tables {
		e.starts = append(e.starts, start(tables[i].Name))
		e.whole = append(e.whole, tables[i].Name)
	}
	if d == databases.Postgres {
		e.starts = append(e.starts, `u&"`)
	}
	if len(tables) == 0 {
		return e
	}
	if d == databases.Postgres {
		e.starts = append(e.starts, says(d).Guard.DefiningTables...)
		e.starts, e.words, e.code = append(e.starts, "client_encoding", sqltext.TriggerSetting), append(slices.Clone(says(d).Guard.Setters), "names", "schema", "owned", "plpgsql"), true
		e.whole = append(e.whole, "client_encoding", sqltext.TriggerSetting)
	} else {
		e.whole = append(e.whole, says(d).Guard.DefiningTables...)
		e.starts = append(e.starts, "sqlite_")
	}
	return e
}

func (e *everyByte) finds(text string) bool {
	for i := range len(text) {
		if e.code && (i == 0 || text[i-1] == ';') && e.runsCode(text, i) {
			return true
		}
		for _, s := range e.starts {
			if lex.HasPrefixFold(text[i:], s) {
				return true
			}
		}
		for _, w := range e.words {
			if lex.HasPrefixFold(text[i:], w) && isWhole(text, i, i+len(w)) {
				return true
			}
		}
	}
	return false
}

// runsCode reports whether a DO begins at i, where a statement may begin. After a long comment it reports true.
func (e *everyByte) runsCode(text string, i int) bool {
	const maxSkipped = 512
	for i < len(text) && lex.IsSpace(text[i]) {
		i++
	}
	if i < len(text) && (text[i] == '-' || text[i] == '/') {
		n, ok := says(e.d).Grammar.Lex.SkipBlank(text[i:min(len(text), i+maxSkipped)])
		if !ok || n == maxSkipped {
			return true
		}
		i += n
	}
	return i < len(text) && lex.HasPrefixFold(text[i:], "do") && isWhole(text, i, i+len("do"))
}

// isWhole reports whether s[i:j] is a whole name: no part of a name precedes i or follows at j.
func isWhole(s string, i, j int) bool {
	return (i == 0 || !lex.IsNamePart(s[i-1])) && (j == len(s) || !lex.IsNamePart(s[j]))
}

// start returns the part of a name that every spelling of the name contains.
func start(name string) string {
	if i := strings.IndexAny(name, "\"`'"); i >= 0 {
		return name[:i+1]
	}
	return name
}

// hasWords reports whether the text contains a name, and each word of the name as a word.
func (e *everyByte) hasWords(text string) bool {
	at := func(s string, whole bool) bool {
		for i := range len(text) {
			if lex.HasPrefixFold(text[i:], s) && (!whole || isWhole(text, i, min(i+len(s), len(text)))) {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(e.whole, func(name string) bool {
		words := strings.FieldsFunc(name, func(c rune) bool { return c < utf8.RuneSelf && !lex.IsNamePart(byte(c)) })
		return at(start(name), false) && !slices.ContainsFunc(words, func(w string) bool { return !at(w, true) })
	})
}

// unread reports whether a text is refused although it names no table: because it can't be parsed, or because of the
// encoding, which matters only with tables.
func unread(tables []Table, p *Plan) bool {
	return p.Refusal.Table < 0 && p.Refusal.Name == "" &&
		(strings.HasPrefix(p.Refusal.Reason, "it can't be read") || p.Refusal.Reason == string(advise.TooDeep) || p.Refusal.Reason == string(advise.ExpectedAlias) ||
			len(tables) == 0 && strings.Contains(p.Refusal.Reason, "client_encoding"))
}

// sameVerdict fails if the search leaves out a text that must not pass, or finds a text that is refused only because
// the search found it. An unreadable text may contain a name as part of a word: a server that reads the text sees the
// word.
func sameVerdict(t testing.TB, d databases.Dialect, r *Rewriter, tables []Table, text string) {
	t.Helper()
	plain := newEveryByte(d, tables)
	want, got := plain.finds(text), r.rules.Finds(text)
	if want == got {
		return
	}
	p := r.rules.Read(text, 0)
	switch {
	case p.Verdict == guard.Pass:
	case got:
		t.Fatalf("%v, tables %q: %q is found: %v, %+v", d, namesOf(tables), text, p.Verdict, p.Refusal)
	case unread(tables, p) && !plain.hasWords(text):
	default:
		t.Fatalf("%v, tables %q: %q isn't found: %v, %+v", d, namesOf(tables), text, p.Verdict, p.Refusal)
	}
}

func namesOf(tables []Table) (names []string) {
	for _, t := range tables {
		names = append(names, t.Name)
	}
	return names
}

// hardNames are names with many spellings.
var hardNames = []string{
	"books", "Books", "book", "order", "order item", "kiosks", "issues", "bücher", "ÄRGER", "été", "İzmir", "straße", "یک",
	"a", "t", "7", "2024", "9lives", "1e5", "a$b", "$x", "$1", "$", "_", "__", "a b", "a.b", "my-books", "-", "--", "''", `"`, `""`, `a"b`,
	`"books`, `books"`, "bo`oks", "bo'oks", "a]b", "[a", ";", "é é", " books", "books ", "- books -", "\ufeffx", "x\u00a0y", "\u00a0", "do", "call", "names", "u", "select list",
	"fencing_x", "client_encodin", strings.Repeat("b", 63), strings.Repeat("b", 62) + "x", strings.Repeat("é", 31), "-" + strings.Repeat("b", 62),
	strings.Repeat("a", 40) + "-" + strings.Repeat("b", 22), strings.Repeat("-", 62) + "b", strings.Repeat("-", 63), strings.Repeat("7", 63), "b" + strings.Repeat("-", 60) + "é",
	strings.Repeat("a", 31) + "$" + strings.Repeat("b", 31), "tenant_00001_books", "abcdefgh", "abcdefghi", "abcdefghijklmnop", "abcdefghijklmnopq",
}

// glue are pieces that stand before, after and inside of names.
var glue = []string{
	"1", "0x1", "$1", "1e5", "1.5", ".", "..", "x'00'", "E'\\n'", "'", "''", `"`, "`", "[", "]", "$$", "$a$", "$é$", "?", "?1", ":", "::", ":a", "@", "#", "$",
	"_", "x", "X", "é", "\ufeff", "\u00a0", "\x81", "\xff", "\x00", "\\", "\\'", "--", "--\n", "/*", "*/", "/**/", "-", "+", "&", "u&", `u&"`, "U&'", ";", "; ", "(", ")", ",", " ", "\n", "=",
	"0", "9", "a1", "_1", "K", "ſ", "ı", "İ", "{", "}", "|", "N", "n", "e", "B", "p1", "books",
}

// frames are statements around a name.
var frames = []string{
	"UPDATE %s SET a = 1", "DELETE FROM %s", "INSERT INTO %s VALUES (1)", "INSERT INTO %s (a) SELECT * FROM %s", "SELECT * FROM %s", "TRUNCATE %s", "DROP TABLE x, %s", "%s",
	"SELECT 1; UPDATE %s SET a = 1", "WITH x AS (DELETE FROM %s RETURNING *) SELECT * FROM x", "DO $$ BEGIN DELETE FROM %s; END $$", "DO 'x%sy'", "CALL p('%s')", "CALL p('x%sy', $1)",
	"SELECT 1 INTO %s", "CREATE TABLE %s PARTITION OF %s FOR VALUES IN (1)", "COPY %s FROM STDIN", "PREPARE p AS DELETE FROM %s", "EXPLAIN ANALYZE UPDATE %s SET a = 1", "SET NAMES '%s'",
	"SET client_encoding = %s", "SELECT set_config('client_encoding', '%s', false)", "UPDATE s.%s SET a = 1", "ALTER TABLE %s ADD x int", "REPLACE INTO %s VALUES (1)", "SELECT '%s'", "SELECT 1 AS %s",
	"UPDATE sqlite_%s SET a = 1", "UPDATE sqlite_master SET sql = '%s'", "UPDATE fencing_tokens SET token = %s", "DELETE FROM fencing_leases WHERE a = %s", "MERGE INTO %s USING x ON true WHEN MATCHED THEN DELETE",
	"UPDATE x SET a = %s", "((((SELECT %s))))", "SELECT 1LIMIT 1UPDATE %s SET a = 1", "SELECT $a$%s$a$%s", "/* %s */ DO $$%s$$", "UPDATE x SET a = 'it\\'s %s'",
}

// inAnySpelling writes a name in one of the ways in which a text may have it.
func inAnySpelling(rnd *rand.Rand, name string) string {
	s := []rune(name)
	for i, c := range s {
		switch rnd.IntN(8) {
		case 0, 1:
			s[i] = unicode.ToUpper(c)
		case 2:
			s[i] = unicode.SimpleFold(c)
		case 3:
			if c == 'i' {
				s[i] = []rune("İı")[rnd.IntN(2)]
			}
		}
	}
	if rnd.IntN(3) > 0 {
		s = []rune(name)
	}
	switch text := string(s); rnd.IntN(9) {
	case 0, 1, 2:
		return text
	case 3, 4:
		return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	case 5:
		return "`" + strings.ReplaceAll(text, "`", "``") + "`"
	case 6:
		return "[" + text + "]"
	case 7:
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	default:
		var b strings.Builder
		for _, c := range text {
			fmt.Fprintf(&b, `\+%06x`, c)
		}
		return `U&"` + b.String() + `"`
	}
}

// hardText makes a text about one of the names, or none.
func hardText(rnd *rand.Rand, names, statements []string) string {
	pick := func(from []string) string { return from[rnd.IntN(len(from))] }
	name := inAnySpelling(rnd, pick(names))
	if rnd.IntN(4) == 0 {
		name += strings.Repeat(pick(glue), 1+rnd.IntN(40))
	}
	for rnd.IntN(2) == 0 {
		switch n := rnd.IntN(len(name) + 1); rnd.IntN(4) {
		case 0:
			name = name[:n] + pick(glue) + name[n:]
		case 1:
			name += pick(glue)
		default:
			name = pick(glue) + name
		}
	}
	var text string
	if frame := pick(frames); rnd.IntN(3) > 0 {
		text = strings.ReplaceAll(frame, "%s", name)
	} else {
		text = strings.ReplaceAll(pick(statements), "books", name)
	}
	for rnd.IntN(3) == 0 {
		n := rnd.IntN(len(text) + 1)
		text = text[:n] + pick(glue) + text[n:]
	}
	if rnd.IntN(4) == 0 {
		text = strings.Repeat(pick([]string{" ", "x", "7", "_x ", "é"}), rnd.IntN(70)) + text
	}
	return text
}

// searched searches many texts for a few names.
func searched(t testing.TB, seed uint64, texts int) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	for _, d := range []databases.Dialect{databases.Postgres, databases.SQLite} {
		var names []string
		var tables []Table
		for range rnd.IntN(4) {
			if name := hardNames[rnd.IntN(len(hardNames))]; !slices.Contains(names, name) {
				names, tables = append(names, name), append(tables, Table{Name: name, FenceColumn: "f"})
			}
		}
		r, err := New(d, tables)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, render.OwnTables[:]...)
		for range texts {
			sameVerdict(t, d, r, tables, hardText(rnd, names, statementsOf[d]))
		}
	}
}

// statementsOf are the statements of the golden files.
var statementsOf = map[databases.Dialect][]string{}

func loadStatements(t testing.TB) {
	for _, d := range []databases.Dialect{databases.Postgres, databases.SQLite} {
		if statementsOf[d] == nil {
			for _, s := range corpus(t, d) {
				statementsOf[d] = append(statementsOf[d], s.sql)
			}
		}
	}
}

// TestSearchFindsAll: a text without a hit of the search would pass if it were parsed, or can't be parsed and has a
// name only as a part of a word.
func TestSearchFindsAll(t *testing.T) {
	oneGoroutine(t)
	loadStatements(t)
	for seed := range random.Rounds(t, 2000) {
		searched(t, uint64(seed), 20)
	}
}

// FuzzSearchFindsAll is TestSearchFindsAll with the fuzzer's texts.
func FuzzSearchFindsAll(f *testing.F) {
	oneGoroutine(f)
	loadStatements(f)
	for i, name := range hardNames {
		f.Add(uint64(i), name, "UPDATE "+name+" SET a = 1")
		f.Add(uint64(i), "books", "UPDATE "+name+" SET books = 1")
	}
	f.Fuzz(func(t *testing.T, seed uint64, name, text string) {
		searched(t, seed, 20)
		if !utf8.ValidString(name) || name == "" || strings.ContainsRune(name, 0) || render.IsOwnTable(name) {
			return
		}
		for _, d := range []databases.Dialect{databases.Postgres, databases.SQLite} {
			tables := []Table{{Name: name, Ledger: true}}
			r, err := New(d, tables)
			if err != nil {
				t.Fatal(err)
			}
			sameVerdict(t, d, r, tables, text)
		}
	})
}

// TestShortTexts: a text of a few bytes is searched like a longer one.
func TestShortTexts(t *testing.T) {
	for _, d := range []databases.Dialect{databases.Postgres, databases.SQLite} {
		for _, name := range []string{"a", "bo", "books", "b-c", "é", "7", "--"} {
			r, err := New(d, []Table{{Name: name, Ledger: true}})
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{name, "x" + name, name + "x", "1" + name, "é" + name, " " + name, name + `"`, "x" + name + `"`, "'" + name, ""} {
				short, long := r.rules.Finds(text), r.rules.Finds(text+"\n\n\n\n\n\n\n\n")
				if short != long {
					t.Errorf("%v, table %q: %q is found: %v, with blanks behind: %v", d, name, text, short, long)
				}
			}
		}
	}
}

// TestNothingIsFoundForNoDialect: without a guarded dialect every text passes.
func TestNothingIsFoundForNoDialect(t *testing.T) {
	r, err := New(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"", "SELECT 1", "UPDATE fencing_tokens SET token = 1", "CALL p('books')"} {
		if p := r.Plan(sql); p.Verdict != guard.Pass {
			t.Errorf("%s: %v", sql, p.Verdict)
		}
	}
}
