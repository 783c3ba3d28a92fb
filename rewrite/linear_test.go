package rewrite

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// A longText makes a statement of about n bytes that is hard to parse in one way.
type longText struct {
	name string
	d    databases.Dialect
	text func(n int) string

	numberedTwice bool // a condition's placeholders that aren't bare are repeated
}

// repeated puts units between two pieces, up to about n bytes.
func repeated(before, unit, after string) func(int) string {
	return func(n int) string { return before + strings.Repeat(unit, n/len(unit)) + after }
}

// numbered is repeated with each unit's number in the unit.
func numbered(before, format, after string) func(int) string {
	return func(n int) string {
		var b strings.Builder
		b.WriteString(before)
		for i := 1; b.Len() < n; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String() + after
	}
}

// nested repeats open before middle and close after it, and puts before in front of all.
func nested(before, open, middle, close string) func(int) string {
	return func(n int) string {
		n /= len(open) + len(close)
		return before + strings.Repeat(open, n) + middle + strings.Repeat(close, n)
	}
}

var longTexts = []longText{
	{"quotes", databases.Postgres, repeated("UPDATE books SET title = '", "''", "'"), false},
	{"quotes", databases.SQLite, repeated("UPDATE books SET title = '", "''", "'"), false},
	{"open quotes", databases.Postgres, repeated("UPDATE books SET title = ", "'", ""), false},
	{"strings", databases.Postgres, repeated("UPDATE books SET title = ", "E'a' \n ", ""), false},
	{"strings and blanks", databases.Postgres, repeated("UPDATE books SET title = ", "E'a' - ", "1"), false},
	{"strings and comments", databases.Postgres, repeated("UPDATE books SET title = ", "E'' --\n --\n --\n +", "1"), false},
	{"dollar quotes", databases.Postgres, repeated("UPDATE books SET title = ", "$a$ $b$ $a$ || ", "'x'"), false},
	{"open dollar quotes", databases.Postgres, numbered("UPDATE books SET title = ", "a $a%d$ ", ""), false},
	{"open brackets", databases.Postgres, repeated("DELETE FROM books WHERE ", "(", ""), false},
	{"brackets", databases.Postgres, nested("DELETE FROM books WHERE ", "(", "true", ")"), false},
	{"brackets", databases.SQLite, nested("DELETE FROM books WHERE ", "(", "1", ")"), false},
	{"brackets before a read", databases.Postgres, nested("", "(", "SELECT * FROM books", ")"), false},
	{"comments", databases.Postgres, repeated("UPDATE books SET ", "/**/", "price = 1"), false},
	{"nested comments", databases.Postgres, nested("UPDATE books SET ", "/*", "", "*/ price = 1"), false},
	{"open comments", databases.Postgres, repeated("UPDATE books SET price = 1", "/*", ""), false},
	{"open comments", databases.SQLite, repeated("UPDATE books SET price = 1", "/* ", ""), false},
	{"line comments", databases.SQLite, repeated("UPDATE books SET ", "--\n", "price = 1"), false},
	{"carriage returns", databases.Postgres, repeated("UPDATE books SET ", "--\r", "price = 1"), false},
	{"commas", databases.Postgres, repeated("UPDATE books SET a = 1", ",", ""), false},
	{"assignments", databases.Postgres, repeated("UPDATE books SET a = 1", ", a = 1", ""), false},
	{"columns", databases.Postgres, repeated("INSERT INTO books (a", ", a", ") VALUES (1)"), false},
	{"ANDs", databases.Postgres, repeated("DELETE FROM books WHERE a", " AND a", ""), false},
	{"ANDs and calls", databases.Postgres, repeated("DELETE FROM books WHERE a", " AND f(a) AND b", ""), false},
	{"ANDs and calls", databases.SQLite, repeated("DELETE FROM books WHERE a", " AND f(?) AND ?", ""), false},
	{"ORs", databases.Postgres, repeated("DELETE FROM books WHERE f(a)", " OR a", ""), false},
	{"BETWEENs", databases.Postgres, repeated("DELETE FROM books WHERE f(a)", " AND a BETWEEN b AND c", ""), false},
	{"BETWEENs without AND", databases.Postgres, repeated("DELETE FROM books WHERE f(a)", " BETWEEN b", ""), false},
	{"CASEs", databases.Postgres, nested("DELETE FROM books WHERE ", "CASE WHEN f(a) AND b THEN ", "c", " END"), false},
	{"ENDs", databases.Postgres, repeated("DELETE FROM books WHERE f(a)", " END AND a", ""), false},
	{"rows", databases.Postgres, repeated("INSERT INTO books (id) VALUES (1)", ", (1)", ""), false},
	{"rows of placeholders", databases.SQLite, repeated("INSERT INTO books (id, a) VALUES (?, ?)", ", (?, ?)", ""), false},
	{"numbered placeholders", databases.Postgres, numbered("DELETE FROM books WHERE id IN ($1", ", $%d", ")"), false},
	{"numbered placeholders", databases.SQLite, numbered("DELETE FROM books WHERE id IN (?1", ", ?%d", ")"), true},
	{"named placeholders", databases.SQLite, numbered("DELETE FROM books WHERE id IN (0", ", :a%[1]d, @a%[1]d", ")"), true},
	{"one named placeholder", databases.SQLite, repeated("DELETE FROM books WHERE id IN (0", ", :a", ")"), true},
	{"placeholders with suffixes", databases.SQLite, repeated("DELETE FROM books WHERE id IN (0", ", :a(b)", ")"), true},
	{"open placeholders", databases.SQLite, repeated("UPDATE books SET a = ", ":a(b", ""), false},
	{"rows of numbered placeholders", databases.SQLite, numbered("INSERT INTO books (id, a) VALUES (1, ?1)", ", (1, ?%d)", ""), false},
	{"rows of numbered placeholders", databases.Postgres, numbered("INSERT INTO books (id, a) VALUES (1, $1)", ", (1, $%d)", ""), false},
	{"lists of placeholders", databases.SQLite, repeated("DELETE FROM books WHERE id IN (?", ",     ?", ")"), false},
	{"lists of placeholders to update", databases.SQLite, repeated("UPDATE books SET a = ? WHERE id IN (?", ",     ?", ")"), false},
	{"assigned placeholders", databases.SQLite, repeated("UPDATE books SET b = ?", ", a = ?", " WHERE id = ?"), false},
	{"arms of placeholders", databases.SQLite, repeated("UPDATE books SET a = CASE id", " WHEN ? THEN ?", " END WHERE id = ?"), false},
	{"items of WITH", databases.Postgres, numbered("WITH a AS (SELECT 1)", ", a%d AS (UPDATE books SET price = 1)", " SELECT 1"), false},
	{"upsert", databases.SQLite, repeated("INSERT INTO books (id, a) VALUES (?, ?)", ", (?, ?)", " ON CONFLICT (id) DO UPDATE SET a = ?"), false},
	{"selects", databases.Postgres, repeated("INSERT INTO books (id) SELECT 1", " UNION SELECT 1", ""), false},
	{"conflicts", databases.SQLite, repeated("INSERT INTO books (id) VALUES (1)", " ON CONFLICT DO UPDATE SET a = 1", ""), false},
	{"conflicts with WHERE", databases.SQLite, repeated("INSERT INTO books (id) VALUES (1)", " ON CONFLICT (a) WHERE b DO UPDATE SET a = 1 WHERE c", ""), false},
	{"statements", databases.Postgres, repeated("", "SELECT * FROM books; ", ""), false},
	{"writes of others", databases.Postgres, repeated("", "DELETE FROM other WHERE a IN (SELECT 1 FROM books); ", ""), false},
	{"semicolons", databases.SQLite, repeated("SELECT 1 FROM books", ";", ""), false},
	{"names", databases.Postgres, repeated("SELECT ", "books, ", "1 FROM other"), false},
	{"starts of names", databases.Postgres, repeated("SELECT ", "book ", "books"), false},
	{"escaped name", databases.Postgres, repeated(`SELECT * FROM books, U&"`, `\0062`, `"`), false},
	{"joins", databases.Postgres, repeated("UPDATE books SET a = 1 FROM a", " JOIN b ON c", ""), false},
	{"DISTINCT FROM", databases.Postgres, repeated("UPDATE books SET a = b", " IS DISTINCT FROM b", ""), false},
	{"dots", databases.Postgres, repeated("UPDATE books SET a = 1", ".", ""), false},
	{"dots of a name", databases.Postgres, repeated("DELETE FROM books", ".a", ""), false},
}

// work is the effort of planning and rendering a text, without the time, and the effort that the result causes in
// SQLite.
type work struct {
	size, output, edits, bytes, allocs, lookups int
}

// measure plans and renders a text, with as many tokens for each table.
func measure(t *testing.T, d databases.Dialect, tables []Table, sql string, v guard.PlanKind, tokens int) work {
	t.Helper()
	r, err := New(d, tables)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]Token, tokens)
	for i := range all {
		all[i] = Token{Name: fmt.Sprint("books/", i), Key: fmt.Sprint(i), Value: 42}
	}
	runtime.GC() // the second one empties the pools, whose room is not this text's
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := r.rules.Read(sql, v)
	w := work{size: len(sql)}
	var rendered string
	if p.Verdict == guard.Guard {
		v := Values{Literal: !p.Params, Tables: make([]TableValues, len(p.Tables))}
		for i := range v.Tables {
			if rulesOf(p, i).Fenced() {
				v.Tables[i].Tokens = all[:min(len(all), 1)]
			}
			if rulesOf(p, i).Key != "" {
				v.Tables[i].Tokens, v.Tables[i].Rows = all, make([]int, rowsOf(p, i))
				for row := range v.Tables[i].Rows {
					v.Tables[i].Rows[row] = row % len(all)
				}
			}
		}
		rendered = renderedOf(t, p, v).SQL
		w.output, w.edits = len(rendered), len(p.Source.Fragments)
	}
	runtime.ReadMemStats(&after)
	w.bytes, w.allocs = int(after.TotalAlloc-before.TotalAlloc), int(after.Mallocs-before.Mallocs)
	if d == databases.SQLite && rendered != "" {
		w.lookups = lookups(t, rendered) - lookups(t, sql)
	}
	return w
}

// lookups returns how many entries of its list of numbers and names SQLite compares as it
// reads the placeholders of a text.
//
// Source: sqlite3ExprAssignVarNumber and sqlite3VListNumToName in SQLite's src/expr.c and
// src/util.c.
func lookups(t *testing.T, sql string) (steps int) {
	highest, list := 0, make(map[string]int) // the place of each in the list
	for _, s := range tokenTexts(t, databases.SQLite, sql) {
		n, err := 0, error(nil)
		switch {
		case s == "?":
			highest++
			continue
		case len(s) == 0 || !strings.ContainsRune("?:@$#", rune(s[0])):
			continue
		case s[0] == '?':
			if n, err = strconv.Atoi(s[1:]); err != nil {
				return 0 // an error
			}
		}
		if n > highest {
			highest = n
		} else if at := list[s]; at > 0 {
			steps += at
			continue
		} else if steps += len(list); n == 0 {
			highest++
		}
		list[s] = len(list) + 1
	}
	return steps
}

// grows fails the test if a text that is factor times as long needs more than factor times the work.
func (w work) grows(t *testing.T, factor int, b work) {
	t.Helper()
	const slack = 2 // buffers grow in steps
	factor *= slack
	if b.output > factor*max(w.output, w.size) || b.edits > factor*max(w.edits, 64) || b.bytes > factor*max(w.bytes, w.size) ||
		b.allocs > factor*max(w.allocs, 64) || b.lookups > factor*max(w.lookups, w.size) {
		t.Errorf("%+v became %+v", w, b)
	}
}

// TestLinear checks that the work grows like the text: eight times the text needs at most about eight times the
// allocations, insertions and bytes. With -short each kind of text has one of the rulesets.
func TestLinear(t *testing.T) {
	oneGoroutine(t)
	const small, factor = 8 << 10, 8
	for i, rules := range []string{"both", "keyboth", "versionlock"} {
		for k, l := range longTexts {
			if testing.Short() && k%3 != i {
				continue
			}
			t.Run(l.d.String()+"/"+rules+"/"+l.name, func(t *testing.T) {
				of := func(n int) work {
					return measure(t, l.d, []Table{rulesets[rules].table}, l.text(n), variantOf(rules), 1)
				}
				a, b := of(small), of(factor*small)
				if l.numberedTwice { // SQLite's cost of a condition's numbers is the application's choice
					a.lookups, b.lookups = 0, 0
				}
				a.grows(t, factor, b)
				// The worst case is a text of many short pieces with a guard for each piece.
				if b.output > 64*b.size || b.bytes > 350*b.size {
					t.Errorf("too much: %+v", b)
				}
			})
		}
	}
}

// upserts are clauses that make an INSERT update.
var upserts = map[databases.Dialect]string{
	databases.Postgres: " ON CONFLICT (id) DO UPDATE SET price = excluded.price",
	databases.SQLite:   " ON CONFLICT (id) DO UPDATE SET price = excluded.price",
	databases.MySQL:    " ON DUPLICATE KEY UPDATE price = VALUES(price)",
}

// TestLinearTokens shows the same for the tokens of many rows and for the tables of many
// writes.
func TestLinearTokens(t *testing.T) {
	oneGoroutine(t)
	const small, factor = 100, 8
	keyed := rulesets["keyboth"].table
	for d, placeholder := range answers(t, map[databases.Dialect]string{databases.Postgres: "$%d", databases.SQLite: "?", databases.MySQL: "?"}) {
		rows := func(n int) string {
			var b strings.Builder
			b.WriteString("INSERT INTO books (id, price) VALUES ")
			for i := range n {
				fmt.Fprintf(&b, "%s(%d, %s)", [...]string{"", ", "}[min(i, 1)], i, strings.ReplaceAll(placeholder, "%d", strconv.Itoa(i+1)))
			}
			return b.String()
		}
		for name, of := range map[string]func(n int) work{
			"claims": func(n int) work {
				return measure(t, d, []Table{rulesets["claim"].table}, "UPDATE books SET price = 1 WHERE id > 1", 0, n)
			},
			"rows, each with its token": func(n int) work { return measure(t, d, []Table{keyed}, rows(n), 0, n) },
			"upsert": func(n int) work {
				return measure(t, d, []Table{keyed}, rows(n)+upserts[d], 0, n)
			},
			"update": func(n int) work {
				return measure(t, d, []Table{keyed}, "UPDATE books SET price = 1 WHERE id > "+strings.ReplaceAll(placeholder, "%d", "1"), 0, n)
			},
			"a list in a condition": func(n int) work {
				list := strings.TrimPrefix(rows(n), "INSERT INTO books (id, price) VALUES ")
				return measure(t, d, []Table{keyed}, "DELETE FROM books WHERE (id, price) IN ("+list+")", 0, n)
			},
		} {
			t.Run(d.String()+"/"+name, func(t *testing.T) { of(small).grows(t, factor, of(factor*small)) })
		}
	}
	tables := func(n int) work {
		var all []Table
		b := []string{"WITH a0 AS (SELECT 1)"}
		for i := range n {
			all = append(all, Table{Name: fmt.Sprint("t", i), FenceColumn: "fence", Ledger: true, Serial: "serial"})
			b = append(b, fmt.Sprintf("a%d AS (UPDATE t%d SET serial = serial + 2)", i+1, i))
		}
		return measure(t, databases.Postgres, all, strings.Join(b, ", ")+" SELECT 1", 0, 1)
	}
	tables(small).grows(t, factor, tables(factor*small))
}

// TestDeepNestingTakesNoStack checks that nesting takes no stack: 4 MiB of pairs of brackets would overflow the stack
// if each pair took 256 bytes. With -short the text and the stack's maximum are an eighth.
func TestDeepNestingTakesNoStack(t *testing.T) {
	oneGoroutine(t)
	size := 4 << 20
	if testing.Short() {
		size /= 8
		defer debug.SetMaxStack(debug.SetMaxStack(1_000_000_000 / 8))
	}
	for _, l := range longTexts {
		if !strings.Contains(l.name, "brackets") && !strings.Contains(l.name, "CASE") {
			continue
		}
		sql := l.text(size)
		r, err := New(l.d, []Table{rulesets["both"].table})
		if err != nil {
			t.Fatal(err)
		}
		if p := r.rules.Read(sql, 0); p.Verdict == guard.Refuse && p.Refusal.Reason == "" {
			t.Errorf("%s: got %+v", l.name, p)
		}
	}
}

// TestTooLong shows that a text too long to read is refused if it names a table.
func TestTooLong(t *testing.T) {
	if testing.Short() {
		t.Skip("64 MB")
	}
	s := sample{sql: "SELECT * FROM books" + strings.Repeat(" ", (64<<20))}
	if p := s.plan(t, databases.Postgres, "row"); p.Verdict != guard.Refuse || p.Refusal.Table != -1 {
		t.Errorf("got %v %+v", p.Verdict, p.Refusal)
	}
	s.sql = s.sql[len("SELECT * FROM books"):]
	if p := s.plan(t, databases.Postgres, "row"); p.Verdict != guard.Pass {
		t.Errorf("a text that names none: got %v", p.Verdict)
	}
}

// rowsOf returns how many rows of a plan's table have keys that show.
func rowsOf(p *Plan, i int) (rows int) {
	for _, t := range p.Targets {
		if t.Table == i {
			rows += len(t.Keys)
		}
	}
	return rows
}
