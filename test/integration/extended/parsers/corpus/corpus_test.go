package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestModule collects the statements of the module in testdata.
func TestModule(t *testing.T) {
	t.Parallel()
	sum := newSummary()
	if err := sum.module(module{path: "shop.example", scopes: []scope{{"", set{true, true}}}}, "testdata/shop"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, st := range sum.statements {
		line := fmt.Sprintf("%-10s %s", st.Database, normal(st.SQL))
		for _, how := range rulings {
			v := st.Verdicts[how.name]
			line += " | " + strings.TrimSuffix(v.What+" "+v.Class, " ")
		}
		got = append(got, line)
	}
	slices.Sort(got)
	const list = "the fence column can't be added without a list of columns"
	const replace = "refused OR REPLACE may delete other rows or keep part of a failed statement"
	want := []string{
		"PostgreSQL delete from gap_table where price>1 | guarded | guarded | guarded | guarded | guarded",
		"PostgreSQL delete from readers where id=? | guarded | guarded | guarded | guarded | guarded",
		"PostgreSQL insert into books(isbn,title)values(?,?) | guarded | guarded | refused key: not named, VALUES: serial | refused key: not named, VALUES: serial | guarded",
		"PostgreSQL insert into prices select*from books | refused " + list + " | guarded | refused key: no list of columns, SELECT | refused key: no list of columns, SELECT | refused " + list,
		"PostgreSQL insert into readers(id,name)values(gen_random_uuid(),?) | guarded | guarded | refused key: VALUES of function gen_random_uuid() | refused key: VALUES of function gen_random_uuid() | guarded",
		"PostgreSQL insert into readers(id,name)values(?::uuid,?)returning id | guarded | guarded | guarded | guarded | guarded",
		"PostgreSQL update books set price=1;delete from prices" + strings.Repeat(" | guarded", 5),
		"PostgreSQL update books set price=?where id=? | guarded | guarded | guarded | guarded | guarded",
		"PostgreSQL update prices set price=?where book_id=? | guarded | guarded | guarded | guarded | guarded",
		"SQLite     delete from gap_table where price>1 | guarded | guarded | guarded | guarded | guarded",
		"PostgreSQL delete from gapbooks where id=? | guarded | guarded | guarded | guarded | guarded",
		"SQLite     delete from gapbooks where id=? | guarded | guarded | guarded | guarded | guarded",
		"SQLite     delete from readers where id=? | guarded | guarded | guarded | guarded | guarded",
		"SQLite     insert into books(isbn,title)values(?,?) | guarded | guarded | refused key: not named, VALUES: nothing (a trigger, or NULL) | refused key: not named, VALUES: nothing (a trigger, or NULL) | guarded",
		"SQLite     insert into prices select*from books | refused " + list + " | guarded | refused key: no list of columns, SELECT | refused key: no list of columns, SELECT | refused " + list,
		"SQLite     replace into books(id,title)values(?,?) | guarded | guarded | guarded | " + replace + " | guarded",
		"SQLite     update books set price=1;delete from prices" + strings.Repeat(" | guarded", 5),
		"SQLite     update books set price=?where id=? | guarded | guarded | guarded | guarded | guarded",
		"SQLite     update prices set price=?where book_id=? | guarded | guarded | guarded | guarded | guarded",
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// A text is counted once for each dialect that it may have.
	left := fmt.Sprint(sum.left)
	if want := "map[a gap that can be anything:2 in a .sql file that isn't queries by name:1 in migrations and schemas:4 the program appends to it:2 words rather than SQL:2]"; left != want {
		t.Errorf("left out:\n%s, want\n%s", left, want)
	}
}

// TestReport writes the collected counts and lists. counts.md must not contain SQL of other projects.
func TestReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	list := filepath.Join(dir, "modules.txt")
	if err := os.WriteFile(list, []byte("# the one\nshop.example@v1 postgres sqlite # both\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "shop.example@v1"), os.DirFS("testdata/shop")); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	if err := run(list, out, source{checkouts: dir}); err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for _, name := range []string{"counts.md", "report.md", "statements.jsonl"} {
		b, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		text[name] = string(b)
	}
	const sql = "VALUES ($1, $2)"
	if !strings.Contains(text["report.md"], sql) || !strings.Contains(text["statements.jsonl"], sql) || strings.Contains(text["counts.md"], sql) {
		t.Errorf("only counts.md is without SQL:\n%s", text["counts.md"])
	}
	if want := "| RowFence | 10 | 9 | 1 | 0 | 0 | 10.00 |"; !strings.Contains(text["counts.md"], want) {
		t.Errorf("no line %q in\n%s", want, text["counts.md"])
	}
}

// TestModules parses modules.txt.
func TestModules(t *testing.T) {
	t.Parallel()
	modules, err := readModules("modules.txt")
	if err != nil || len(modules) < 60 {
		t.Errorf("%d modules, %v", len(modules), err)
	}
	for line, want := range map[string]string{
		"x.example":             "want path@version",
		"x.example@v1":          "its databases",
		"x.example@v1 postgre":  `unknown database "postgre"`,
		"x.example@v1 postgres": "",
	} {
		name := filepath.Join(t.TempDir(), "list")
		if err := os.WriteFile(name, []byte(line), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := readModules(name)
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) && want != "" {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	m := module{scopes: []scope{{"", set{true, false}}, {"cache/", set{false, true}}, {"cache/both/", set{true, false}}, {"cache/both/", set{false, true}}}}
	for file, want := range map[string]set{
		"a.go": {true, false}, "cache/a.go": {false, true}, "cache/both/a.go": {true, true}, "cache/mysql/a.go": {},
		"cache/postgres/a.go": {}, "cache/both/postgres/a.go": {true, false},
	} {
		if got := databasesOf(m, file); got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
}

// TestJudge checks that judge reports a plan that contradicts the parser.
func TestJudge(t *testing.T) {
	t.Parallel()
	const sql = "UPDATE books SET price = 1"
	for want, writes := range map[string][]write{
		"guarded": {{table: "books"}},
		"passed":  {{table: "other"}},
		"wrong":   {{table: "books"}, {table: "other"}},
	} {
		if v, _ := judge(postgres{}, sql, reading{writes: writes}, nil, rulings[0]); v.What != want {
			t.Errorf("%v: %v, want %s", writes, v, want)
		}
	}
}

func TestFill(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"UPDATE \x00s SET a = 1":                        "UPDATE gap_table SET a = 1",
		"DELETE FROM a.\x00s WHERE b IN (\x00s)":        "DELETE FROM a.gap_name WHERE b IN (1)",
		`DELETE FROM "\x00s"`:                           `DELETE FROM "\x00s"`,
		"DELETE FROM \"\x00s\" LIMIT \x00d":             "DELETE FROM \"gap_name\" LIMIT 1",
		"DELETE FROM t_\x00s WHERE \x00s = 1":           "DELETE FROM t_gap WHERE gap_column = 1",
		"DELETE FROM \x00sbooks":                        "DELETE FROM gapbooks",
		"DELETE FROM t WHERE \x00s":                     "",
		"INSERT INTO t (\x00s) VALUES (\x00s)":          "",
		"INSERT INTO t (a) VALUES ($\x00d, $\x00d)":     "INSERT INTO t (a) VALUES ($1, $1)",
		"INSERT INTO \x00q (a) VALUES ('\x00s')":        `INSERT INTO "gap_name" (a) VALUES ('gap_name')`,
		"UPDATE t SET \x00s = 1, b = 2 WHERE c = \x00s": "",
	} {
		if got, _ := fill(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestNumbered(t *testing.T) {
	t.Parallel()
	const in = `UPDATE t SET a = ?, b = :b::text, c = '?' -- ?` + "\n" + `WHERE d = @d AND e = :b AND f = ?`
	const want = `UPDATE t SET a = $1, b = $2::text, c = '?' -- ?` + "\n" + `WHERE d = $3 AND e = $2 AND f = $4`
	if got := numbered(in); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
