package rewrite

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// A longText makes a statement of about n bytes of one kind of trouble.
type longText struct {
	name string
	d    Dialect
	text func(n int) string
}

// repeated puts as many units between two pieces as make about n bytes.
func repeated(before, unit, after string) func(int) string {
	return func(n int) string { return before + strings.Repeat(unit, n/len(unit)) + after }
}

// numbered is repeated with units that hold their number.
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

// nested is repeated with something behind for each unit.
func nested(before, open, middle, close string) func(int) string {
	return func(n int) string {
		n /= len(open) + len(close)
		return before + strings.Repeat(open, n) + middle + strings.Repeat(close, n)
	}
}

var longTexts = []longText{
	{"quotes", Postgres, repeated("UPDATE books SET title = '", "''", "'")},
	{"quotes", SQLite, repeated("UPDATE books SET title = '", "''", "'")},
	{"open quotes", Postgres, repeated("UPDATE books SET title = ", "'", "")},
	{"strings", Postgres, repeated("UPDATE books SET title = ", "E'a' \n ", "")},
	{"strings and blanks", Postgres, repeated("UPDATE books SET title = ", "E'a' - ", "1")},
	{"strings and comments", Postgres, repeated("UPDATE books SET title = ", "E'' --\n --\n --\n +", "1")},
	{"dollar quotes", Postgres, repeated("UPDATE books SET title = ", "$a$ $b$ $a$ || ", "'x'")},
	{"open dollar quotes", Postgres, numbered("UPDATE books SET title = ", "a $a%d$ ", "")},
	{"open brackets", Postgres, repeated("DELETE FROM books WHERE ", "(", "")},
	{"brackets", Postgres, nested("DELETE FROM books WHERE ", "(", "true", ")")},
	{"brackets", SQLite, nested("DELETE FROM books WHERE ", "(", "1", ")")},
	{"brackets before a read", Postgres, nested("", "(", "SELECT * FROM books", ")")},
	{"comments", Postgres, repeated("UPDATE books SET ", "/**/", "price = 1")},
	{"nested comments", Postgres, nested("UPDATE books SET ", "/*", "", "*/ price = 1")},
	{"open comments", Postgres, repeated("UPDATE books SET price = 1", "/*", "")},
	{"open comments", SQLite, repeated("UPDATE books SET price = 1", "/* ", "")},
	{"line comments", SQLite, repeated("UPDATE books SET ", "--\n", "price = 1")},
	{"carriage returns", Postgres, repeated("UPDATE books SET ", "--\r", "price = 1")},
	{"commas", Postgres, repeated("UPDATE books SET a = 1", ",", "")},
	{"assignments", Postgres, repeated("UPDATE books SET a = 1", ", a = 1", "")},
	{"columns", Postgres, repeated("INSERT INTO books (a", ", a", ") VALUES (1)")},
	{"ANDs", Postgres, repeated("DELETE FROM books WHERE a", " AND a", "")},
	{"ANDs and calls", Postgres, repeated("DELETE FROM books WHERE a", " AND f(a) AND b", "")},
	{"ANDs and calls", SQLite, repeated("DELETE FROM books WHERE a", " AND f(?) AND ?", "")},
	{"ORs", Postgres, repeated("DELETE FROM books WHERE f(a)", " OR a", "")},
	{"BETWEENs", Postgres, repeated("DELETE FROM books WHERE f(a)", " AND a BETWEEN b AND c", "")},
	{"BETWEENs without AND", Postgres, repeated("DELETE FROM books WHERE f(a)", " BETWEEN b", "")},
	{"CASEs", Postgres, nested("DELETE FROM books WHERE ", "CASE WHEN f(a) AND b THEN ", "c", " END")},
	{"ENDs", Postgres, repeated("DELETE FROM books WHERE f(a)", " END AND a", "")},
	{"rows", Postgres, repeated("INSERT INTO books (id) VALUES (1)", ", (1)", "")},
	{"rows of placeholders", SQLite, repeated("INSERT INTO books (id, a) VALUES (?, ?)", ", (?, ?)", "")},
	{"numbered placeholders", Postgres, numbered("DELETE FROM books WHERE id IN ($1", ", $%d", ")")},
	{"numbered placeholders", SQLite, numbered("DELETE FROM books WHERE id IN (?1", ", ?%d", ")")},
	{"named placeholders", SQLite, numbered("DELETE FROM books WHERE id IN (0", ", :a%[1]d, @a%[1]d", ")")},
	{"one named placeholder", SQLite, repeated("DELETE FROM books WHERE id IN (0", ", :a", ")")},
	{"placeholders with suffixes", SQLite, repeated("DELETE FROM books WHERE id IN (0", ", :a(b)", ")")},
	{"open placeholders", SQLite, repeated("UPDATE books SET a = ", ":a(b", "")},
	{"selects", Postgres, repeated("INSERT INTO books (id) SELECT 1", " UNION SELECT 1", "")},
	{"conflicts", SQLite, repeated("INSERT INTO books (id) VALUES (1)", " ON CONFLICT DO UPDATE SET a = 1", "")},
	{"conflicts with WHERE", SQLite, repeated("INSERT INTO books (id) VALUES (1)", " ON CONFLICT (a) WHERE b DO UPDATE SET a = 1 WHERE c", "")},
	{"statements", Postgres, repeated("", "SELECT * FROM books; ", "")},
	{"writes of others", Postgres, repeated("", "DELETE FROM other WHERE a IN (SELECT 1 FROM books); ", "")},
	{"semicolons", SQLite, repeated("SELECT 1 FROM books", ";", "")},
	{"names", Postgres, repeated("SELECT ", "books, ", "1 FROM other")},
	{"starts of names", Postgres, repeated("SELECT ", "book ", "books")},
	{"escaped name", Postgres, repeated(`SELECT * FROM books, U&"`, `\0062`, `"`)},
	{"joins", Postgres, repeated("UPDATE books SET a = 1 FROM a", " JOIN b ON c", "")},
	{"DISTINCT FROM", Postgres, repeated("UPDATE books SET a = b", " IS DISTINCT FROM b", "")},
	{"dots", Postgres, repeated("UPDATE books SET a = 1", ".", "")},
	{"dots of a name", Postgres, repeated("DELETE FROM books", ".a", "")},
}

// work is what planning and rendering a text takes, apart from time.
type work struct {
	size, output, bytes, allocs int
}

func measure(t *testing.T, l longText, n int) work {
	t.Helper()
	r, err := New(l.d, []Table{rulesets["both"].table})
	if err != nil {
		t.Fatal(err)
	}
	sql := l.text(n)
	runtime.GC() // the second one empties the pools, whose room is not this text's
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := r.read(sql, false)
	w := work{size: len(sql)}
	if p.Verdict == Guard {
		w.output = len(p.rendered(t, Values{Tables: []TableValues{{Tokens: []Token{{Name: "books", Value: 42}}}}}).SQL)
	}
	runtime.ReadMemStats(&after)
	w.bytes, w.allocs = int(after.TotalAlloc-before.TotalAlloc), int(after.Mallocs-before.Mallocs)
	return w
}

// TestLinear shows that the work grows as the text does: what is allocated and
// written for eight times the text is at most about eight times as much.
func TestLinear(t *testing.T) {
	const small, factor = 16 << 10, 8
	for _, l := range longTexts {
		t.Run(l.d.String()+"/"+l.name, func(t *testing.T) {
			a, b := measure(t, l, small), measure(t, l, factor*small)
			const slack = 2 // buffers grow in steps
			if b.output > slack*factor*max(a.output, small) || b.bytes > slack*factor*max(a.bytes, small) || b.allocs > slack*factor*max(a.allocs, 64) {
				t.Errorf("%+v became %+v", a, b)
			}
			// A guard of its own for each of many short pieces is the worst case.
			if b.output > 32*b.size || b.bytes > 1000*b.size {
				t.Errorf("too much: %+v", b)
			}
		})
	}
}

// TestDeep shows that nesting costs no stack.
func TestDeep(t *testing.T) {
	for _, l := range longTexts {
		sql := l.text(4 << 20)
		if !strings.Contains(l.name, "brackets") && !strings.Contains(l.name, "CASE") {
			continue
		}
		r, err := New(l.d, []Table{rulesets["both"].table})
		if err != nil {
			t.Fatal(err)
		}
		if p := r.read(sql, false); p.Verdict == Refuse && p.Refusal.Reason == "" {
			t.Errorf("%s: got %+v", l.name, p)
		}
	}
}

// TestTooLong shows that a text too long to read is refused if it names a table.
func TestTooLong(t *testing.T) {
	if testing.Short() {
		t.Skip("64 MB")
	}
	s := sample{sql: "SELECT * FROM books" + strings.Repeat(" ", maxRead)}
	if p := s.plan(t, Postgres, "row"); p.Verdict != Refuse || p.Refusal.Table != -1 {
		t.Errorf("got %v %+v", p.Verdict, p.Refusal)
	}
	s.sql = s.sql[len("SELECT * FROM books"):]
	if p := s.plan(t, Postgres, "row"); p.Verdict != Pass {
		t.Errorf("a text that names none: got %v", p.Verdict)
	}
}
