package sqltext

import (
	"slices"
	"testing"
)

func TestBuilderWrites(t *testing.T) {
	for _, test := range []struct {
		d    Dialect
		want string
	}{
		{Postgres, "SELECT -7, 'a', true, $3::bigint, $1, $2"},
		{SQLite, "SELECT -7, 'a', 1, ?3, ?, ?"},
		{MySQL, "SELECT -7, _utf8mb4'a', TRUE, ?, ?, ?"},
	} {
		b := Builder{Dialect: test.d}
		b.Write("SELECT", " ")
		b.Int(-7)
		b.Write(", ")
		b.Text("a")
		b.Write(", ")
		b.Bool(true)
		b.Write(", ")
		b.Placeholder(3, Bigint)
		b.Write(", ")
		b.Arg("x")
		b.Write(", ")
		b.Arg(nil)
		if got := b.String(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
		if want := []any{"x", nil}; !slices.Equal(b.Args(), want) {
			t.Errorf("arguments %v, want %v", b.Args(), want)
		}
	}
}

// A statement is written piece by piece at the price of its text, by a builder that was
// used before.
func TestBuilderAllocatesTheText(t *testing.T) {
	for _, d := range All() {
		b := Builder{Dialect: d}
		b.Grow(100)
		got := testing.AllocsPerRun(100, func() {
			b.Reset()
			b.Write("a = ")
			b.Placeholder(70000, Text)
			b.Write(" OR b = ")
			b.Int(1 << 62)
			b.Write(" OR ")
			b.Bool(false)
			if text := b.String(); len(text) != b.Len() || b.Len() > b.Cap() {
				t.Errorf("%q has %d bytes, with room for %d", text, b.Len(), b.Cap())
			}
		})
		if got > 1 {
			t.Errorf("%T: %v allocations, want 1", d, got)
		}
	}
}

func TestRenderPieces(t *testing.T) {
	given := Fragments{
		"user":  Value("ada"),
		"by":    Raw("{now}"), // a column may be called so
		"mine":  SQL("{by} = {user}"),
		"twice": Func(func(x string) string { return x + " + " + x }),
	}
	for _, test := range []struct {
		text             string
		postgres, sqlite string
		args             int
	}{
		{"", "", "", 0},
		{"no piece", "no piece", "no piece", 0},
		{"{mine} OR {mine}", "{now} OPERATOR(pg_catalog.=) $1 OR {now} OPERATOR(pg_catalog.=) $2", "{now} = ? OR {now} = ?", 2},
		{"{twice a b}", "a b + a b", "a b + a b", 0},
		{"{user}, {twice {user}}, {user}", "$1, $2 + $2, $3", "?, ? + ?, ?", 3},
		{"SELECT '{}', '{1}', {}", "SELECT '{}', '{1}', {}", "SELECT '{}', '{1}', {}", 0},
		{"{ledger} {open", "fencing_tokens {open", "fencing_tokens {open", 0},
		{"{ledger", "{ledger", "{ledger", 0},
	} {
		for d, want := range map[Dialect]string{Postgres: test.postgres, SQLite: test.sqlite} {
			if got, args := Render(d, test.text, given); got != want || len(args) != test.args {
				t.Errorf("%T: %q is %q with %d arguments, want %q with %d", d, test.text, got, len(args), want, test.args)
			}
		}
	}
}

func TestTheFirstPieceOfANameDecides(t *testing.T) {
	got, _ := Render(SQLite, "{a} {b} {start}", Fragments{"a": Raw("1"), "start": Raw("s")}, Fragments{"a": Raw("2"), "b": SQL("{a}")})
	if got != "1 1 s" {
		t.Errorf("%q", got)
	}
}

func TestAPieceThatNobodyKnowsPanics(t *testing.T) {
	defer func() {
		if got := recover(); got != "sqltext: no piece is named {turn}" {
			t.Errorf("panicked with %v", got)
		}
	}()
	Render(SQLite, "SELECT {turn 'books'}")
}
