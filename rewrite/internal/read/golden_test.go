package read

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

var update = flag.Bool("update", false, "write what is read of the statements into the golden files")

var grammars = map[string]*lex.Grammar{"postgres": Postgres, "sqlite": SQLite, "mysql": MySQL}

// A sample of a golden file is
//
//	## what is special about it
//	a text
//	=>
//	what is read of it
type sample struct{ name, sql, want string }

func samples(t testing.TB, path string) (all []sample) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range strings.Split(string(content), "\n## ")[1:] {
		name, rest, _ := strings.Cut(s, "\n")
		sql, want, _ := strings.Cut(rest, "\n=>\n")
		all = append(all, sample{name, strings.TrimSuffix(sql, "\n"), strings.TrimSuffix(want, "\n")})
	}
	return all
}

func readAll(g *lex.Grammar, sql string) string {
	t, err := Open(g, sql, lex.EscapesUnknown)
	if err != nil {
		return "error: " + err.Error()
	}
	defer t.Close()
	return strings.TrimSuffix(show(t), "\n")
}

func TestGolden(t *testing.T) {
	if files, err := filepath.Glob(filepath.Join("testdata", "*.golden")); err != nil || len(files) != len(grammars) {
		t.Errorf("%d grammars for the files %v", len(grammars), files)
	}
	for name, g := range grammars {
		path := filepath.Join("testdata", name+".golden")
		var b strings.Builder
		b.WriteString("Texts, and what is read of them; see golden_test.go.\n")
		for _, s := range samples(t, path) {
			got := readAll(g, s.sql)
			if got != s.want && !*update {
				t.Errorf("%s: %s\n%s\ngot\n%s\nwant\n%s", name, s.name, s.sql, got, s.want)
			}
			b.WriteString("\n## " + s.name + "\n" + s.sql + "\n=>\n" + got + "\n")
		}
		if *update {
			if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// guarded returns the statements by which package rewrite is tested, or, for a dialect that package rewrite doesn't
// guard yet, this package's.
func guarded(t testing.TB, name string) (texts []string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "testdata", name+".golden"))
	if errors.Is(err, fs.ErrNotExist) {
		for _, s := range samples(t, filepath.Join("testdata", name+".golden")) {
			texts = append(texts, s.sql)
		}
		return texts
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range strings.Split(string(content), "\n## ")[1:] {
		_, rest, _ := strings.Cut(s, "\n")
		sql, _, _ := strings.Cut(rest, "\n=> ")
		texts = append(texts, sql)
	}
	return texts
}

// TestRoomIsNotSeen: the result of parsing doesn't depend on the earlier use of the memory, nor on concurrent parsers.
func TestRoomIsNotSeen(t *testing.T) {
	for name, g := range grammars {
		texts := guarded(t, name)
		if len(texts) < 100 {
			t.Fatalf("%d texts", len(texts))
		}
		want := make([]string, len(texts))
		for i, sql := range texts {
			if toks, err := lex.Scan(g.Lex, sql, lex.EscapesUnknown, nil); err == nil {
				fresh := &Text{Scanned: lex.Scanned{Src: sql, Tokens: toks, Rules: g.Lex}, grammar: g}
				want[i] = strings.TrimSuffix(show(fresh), "\n")
				checkSpans(t, fresh)
			} else {
				want[i] = readAll(g, sql)
			}
		}
		var wg sync.WaitGroup
		for worker := range 4 {
			wg.Go(func() {
				for i := range texts {
					n := (i*(worker+3) + worker) % len(texts)
					if got := readAll(g, texts[n]); got != want[n] {
						t.Errorf("%s\ngot\n%s\nwant\n%s", texts[n], got, want[n])
					}
				}
			})
		}
		wg.Wait()
	}
}

// checkSpans checks the places of the last statement of a text.
func checkSpans(t testing.TB, x *Text) {
	t.Helper()
	within := func(what string, s lex.Range, in lex.Range) {
		if s != (lex.Range{}) && (s.Lo < in.Lo || s.Hi > in.Hi || s.Lo > s.Hi) {
			t.Errorf("%s: %s %v is outside of %v", x.Src, what, s, in)
		}
	}
	for _, p := range x.Parts {
		within("part", p.Range, x.Range)
	}
	for i := range x.Writes {
		w := &x.Writes[i]
		places := []int32{w.At, w.Target.At, w.From, w.Where.At, w.Where.Hi, w.Limit, w.Insertion.List.Hi, w.Insertion.SourceAt, w.ConflictsAt, w.ConflictsEnd}
		for _, at := range places {
			within("place", lex.Range{Lo: at, Hi: at}, x.Range)
		}
		for _, a := range w.Set.Items {
			within("assignment", a.Range, x.Range)
		}
		for _, arm := range w.Insertion.Arms {
			for _, row := range arm.Rows {
				within("row", row, x.Range)
			}
			within("columns", arm.Columns, x.Range)
		}
		for _, c := range w.Conflicts {
			if c.Where.At > 0 {
				within("conflict", lex.Range{Lo: c.At, Hi: c.Where.End()}, x.Range)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	for name := range grammars {
		for _, sql := range guarded(f, name) {
			f.Add(sql)
		}
	}
	f.Fuzz(func(t *testing.T, sql string) {
		for _, g := range grammars {
			x, err := Open(g, sql, lex.EscapesUnknown)
			if err != nil {
				continue
			}
			x.NumberInputs()
			for x.Next() {
				checkSpans(t, x)
				useHelpers(x)
			}
			x.Close()
			plainIsNotSeen(t, g, sql)
		}
	})
}

// useHelpers calls the methods of a write, none of which may panic.
func useHelpers(x *Text) {
	x.ChangesEncoding()
	x.Rest()
	x.Find(x.Range, func(string) int { return -1 })
	for _, p := range x.Parts {
		if p.Class == Do {
			x.Code(p)
		}
	}
	for i := range x.Writes {
		w := &x.Writes[i]
		sets := []Assignments{w.Set}
		for _, c := range w.Conflicts {
			sets = append(sets, c.Set)
		}
		for _, a := range w.Arms {
			sets = append(sets, a.Set)
		}
		for _, set := range sets {
			for _, a := range set.Items {
				x.Assigns(a, "id")
				x.Value(a, "id")
				value := x.PlainValue(a)
				x.Constant(value)
				x.Qualified(value)
			}
			x.After(set.Hi)
		}
		if !w.Where.Empty() {
			x.Repeatable(w.Where.Range)
			_ = x.Source(w.Where.Range)
		}
		for _, arm := range w.Insertion.Arms {
			for _, row := range arm.Rows {
				for n := range 3 {
					x.Constant(x.Item(row, n))
				}
			}
		}
	}
}
